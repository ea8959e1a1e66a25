"""The rows of NUPA's pictures, cell by cell: of recorded replies, of made ones, beside printed figures."""

import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from statistics import fmean, stdev

import pytest

from asyncbench import import_files, published_table, report
from asyncbench.analysis.folder_report import ReportOfChosen
from asyncbench.published.nupa.pictures import laid
from asyncbench.published.reports import PublishedReport
from asyncbench.records import Condition, Reply, Usage
from asyncbench.store.folder import Store
from asyncbench.suites.nupa.tasks import TASKS
from tests.papers import needs_pdflatex, printed_paper
from tests.published.test_nupa_report import SUM, problems, result, right
from tests.recorded import nupa_outputs
from tests.store.made import AT, ended, keep, results_folder as made_folder, trial_id

RANGES = {
    20: ((4, "S"), (8, "M"), (14, "L"), (20, "XL")),
    100: ((10, "S"), (20, "M"), (60, "L"), (100, "XL")),
}
FIGURES = {"figure-5": "exact_match", "figure-6": "digit_match", "figure-7": "dlength"}


def pictures_of(folder, **options):
    found = report(folder, "nupa", **options)
    found = found.whole if isinstance(found, ReportOfChosen) else found
    assert isinstance(found, PublishedReport)
    return {picture.name: picture for picture in found.pictures()}


def called(task):
    return f"{task.task}{' ' if task.variant else ''}{task.variant}, {task.representation}"


def range_of(length, task):
    return next((name for most, name in RANGES[task.length_class] if length <= most), None)


# ── recorded replies: 6,408 outputs whose figures the published code told ────────────────────


@pytest.fixture(scope="module")
def recorded(golden):
    """Each recorded output, with its task, length and figures as the published code has them."""
    return nupa_outputs(golden)


@pytest.fixture(scope="module")
def imported(recorded, tmp_path_factory):
    """The pictures of these outputs, imported as a model's file of replies."""
    place = tmp_path_factory.mktemp("recorded")
    texts, told = defaultdict(list), {}
    for problem, output in recorded:
        told[problem["id"]] = problem
        texts[problem["id"]].append(output["output"])
    lines = [
        {
            "task": told[name]["task_name"],
            "digit": told[name]["digit"],
            "question": told[name]["question"],
            "groundtruth": told[name]["groundtruth"],
            "generated_text": its,
        }
        for name, its in texts.items()
    ]
    (place / "recorded.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    done = import_files("nupa", [place / "recorded.jsonl"], place / "results")
    assert (done.runs[0].trials, done.left_out) == (len(recorded), ())
    return pictures_of(place / "results")


def figures_of(output):
    strict = output["strict_chat"]
    return {
        "exact_match": Fraction(strict["exact_match"]),
        "digit_match": Fraction(strict["digits_right"], strict["digits_total"]),
        "dlength": Fraction(strict["dlength_by_part"]),
    }


def means(recorded, key):
    """The mean of each figure over the outputs that have the same key; None: it counts nowhere."""
    found = defaultdict(list)
    for problem, output in recorded:
        if None not in (place := key(TASKS[problem["task_name"]], problem["digit"])):
            found[place].append(figures_of(output))
    return {
        place: {name: float(sum(one[name] for one in those) / len(those)) for name in those[0]}
        for place, those in found.items()
    }


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_every_bar_and_cell_of_a_figure_is_the_mean_of_the_recorded_answers(recorded, imported, name):
    figure = FIGURES[name]
    expected = means(recorded, lambda task, length: (called(task), range_of(length, task)))
    bars = [row for key, picture in imported.items() if key.startswith(f"{name}-") for row in picture.rows]
    mapped = [row for row in imported[f"{name}-map"].rows if row[figure] is not None]
    assert len(expected) == len(mapped) > 150
    for row in bars:
        found = expected.get((row["task"], row["range"]))
        assert row[figure] == (None if found is None else found[figure])
    assert {(row["task"], row["range"]) for row in mapped} == expected.keys()
    assert sum(row["answers"] for row in imported[f"{name}-sums"].rows) > 100


@pytest.mark.parametrize(
    ("name", "figure", "passes"),
    [
        ("table-7", "exact_match", lambda mean: (mean >= 0.9, mean >= 0.1)),
        ("table-8", "digit_match", lambda mean: (mean >= 0.9, mean >= 0.5)),
        ("table-9", "dlength", lambda mean: (mean <= 0.1, mean <= 1)),
    ],
)
def test_every_cell_of_a_table_of_digits_is_the_longest_length_that_passes(
    recorded, imported, name, figure, passes
):
    at = means(recorded, lambda task, length: (called(task), length if length <= task.length_class else None))
    expected = {task: [0, 0] for task, _ in at}
    for (task, length), found in at.items():
        for place, passed in enumerate(passes(found[figure])):
            expected[task][place] = max(expected[task][place], length if passed else 0)
    rows = imported[name].rows
    assert {row["task"]: [row["well_learned"], row["preserving"]] for row in rows} == expected
    assert all(row["digits"] == f"{row['well_learned']} / {row['preserving']}" for row in rows)
    assert any(well for well, _ in expected.values())


def test_the_frame_has_the_41_cells_of_the_paper(imported):
    letters = {
        name: {(row["task"], row["representation"]): row["letter"] for row in imported[name].rows}
        for name in ("table-4", "table-5", "table-6")
    }
    assert {len(cells) for cells in letters.values()} == {41}
    assert letters["table-4"]["get_digit", "float"] == "i"
    assert letters["table-5"]["truediv", "integer"] == "Fr"
    hard = [cell for cell, letter in letters["table-6"].items() if letter == "H"]
    kinds = [kind for _, kind in hard]
    assert [kinds.count(kind) for kind in ("integer", "float", "fraction", "scientific")] == [6, 3, 7, 3]
    for name in ("table-1", *letters):
        shown = imported[name]
        assert [*shown.x_order][-3:] == ["to_float", "to_scient", "sig"]
        drawn = shown.drawn_rows()
        assert len(drawn) == 17 * 4 * len({row.get("panel") for row in drawn})
        assert Counter(row["lacking"] for row in drawn if row["value"] is None)["–"] == 27


# ── made replies: examples, repeats, times and rules ─────────────────────────────────────────


FLOATS = "add_Float_Float_Float"
FIVE = Condition(name="5-shot", shots=5, described={"shots": 5})
RULES = Condition(name="rules", style="rules")


def asked_again(problem, texts, **about):
    """A result a repeat."""
    for repeat, text in enumerate(texts):
        made = result(problem, text, **about)
        yield replace(made, trial=replace(made.trial, repeat=repeat))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two repeats with and without examples, a model at two speeds, and rules: pictures by name."""
    floats = problems(FLOATS, {5: 2, 6: 1})
    sums = problems(SUM, {3: 1, 4: 1})
    results = []
    for condition, texts in ((Condition(), ["The answer is 1.5", None]), (FIVE, [None, None])):
        for one in (*floats, *sums):
            texts = ["so what?", None] if condition != FIVE and one in sums else texts
            said = [right(one) if text is None else text for text in texts]
            results += asked_again(one, said, model="m", condition=condition)
    results += [result(one, "so what?", model="fast", condition=FIVE) for one in sums]
    results += [result(one, "so what?", model="slow") for one in sums]
    steps = "step\n" * 3
    for one, tokens in zip(sums, (10, 2000), strict=True):  # the second does not fit
        text, usage = f"{steps}So the answer is {one.expected}", Usage(input_tokens=10, output_tokens=tokens)
        results.append(replace(result(one, text, condition=RULES), reply=Reply(text=text, usage=usage)))
    waits = [{"fast": 1, "slow": 4}.get(one.trial.model.alias, 2) for one in results]
    return pictures_of(kept(tmp_path_factory.mktemp("made") / "night", results, waits))


def kept(folder, results, waits_s):
    """A folder of these results; of two calls the second begins when the first has ended."""
    with Store.open(folder, sweep="night") as store:
        for number, (one, wait_s) in enumerate(zip(results, waits_s, strict=True)):
            closed = replace(one, trial=replace(one.trial, trial_id=trial_id(number)))
            call = ended(closed.trial, closed.reply)
            times = {"started_at": AT + wait_s * (number % 2), "latency_s": wait_s}
            keep(store, replace(call, attempt=replace(call.attempt, **times)), closed)
        store.write_manifest({})
    return folder


def rows_of(picture, *columns, **wanted):
    return [
        tuple(row[column] for column in columns)
        for row in picture.rows
        if all(row[name] == value for name, value in wanted.items())
    ]


def test_examples_stand_beside_none_of_the_same_model(made):
    found = rows_of(made["figure-8"], "model", "exact_match", task="add, integer", range="S")
    assert set(found) == {("m (plain)", 0.5), ("m (5-shot)", 1.0), ("m (rules)", 1.0), ("fast", 0.0)}


def test_a_mean_over_repeats_has_its_standard_error(made):
    repeats = [0.0, 1.0]
    error = stdev(repeats) / sqrt(2)
    found = made["table-3"].rows
    assert {(row["length"], row["model"]) for row in found} == {
        (length, model) for length in (5, 6) for model in ("m (plain)", "m (5-shot)")
    }
    for row in found:
        right_share = 1.0 if row["model"] == "m (5-shot)" else fmean(repeats)
        spread = 0.0 if right_share == 1 else error
        assert (row["exact_match"], row["standard_error"], row["repeats"]) == (
            right_share,
            pytest.approx(spread),
            2,
        )
        assert row["high"] - row["low"] == pytest.approx(2 * spread)


def asked_at(folder, *calls):
    """Table 2 of one who was asked sums: condition, second of the start and seconds of each call."""
    asked = problems(SUM, {3: len(calls)})
    with Store.open(folder, sweep="night") as store:
        for number, (one, (condition, start, wait)) in enumerate(zip(asked, calls, strict=True)):
            made = result(one, right(one), condition=Condition(name=condition))
            closed = replace(made, trial=replace(made.trial, trial_id=trial_id(number)))
            call = ended(closed.trial, closed.reply)
            at = replace(call.attempt, started_at=AT + start, latency_s=wait)
            keep(store, replace(call, attempt=at), closed)
        store.write_manifest({})
    pictures = pictures_of(folder)
    names = [*pictures["table-2-seconds"].rows, *pictures["table-2-digits"].rows]
    found = defaultdict[str, dict[str, object]](dict)
    for row in names:
        found[row["model"]] |= row
    return found


def test_seconds_a_sample_are_those_in_which_calls_were_in_flight(made):
    found = dict(rows_of(made["table-2-seconds"], "model", "seconds_per_sample"))
    assert (found["fast"], found["slow"]) == (1.0, 4.0)
    digits = dict(rows_of(made["table-2-digits"], "model", "digits_per_second"))
    assert digits["fast"] == pytest.approx(4 * digits["slow"])


def test_the_night_between_two_starts_is_no_time_of_a_sample(tmp_path):
    # 0-4, 1-2 and 3-5 overlap: 5 s; then 2 s on the next day
    calls = [("plain", 0, 4.0), ("plain", 1, 1.0), ("plain", 3, 2.0), ("plain", 86_400, 2.0)]
    (row,) = asked_at(tmp_path / "two-starts", *calls).values()
    assert (row["seconds_per_sample"], row["answers"], row["mean_latency_s"]) == (7 / 4, 4, 9 / 4)
    assert row["digits_per_second"] > 0


def test_conditions_that_are_asked_in_turn_share_the_time(tmp_path):
    calls = [("short", 0, 1.0), ("long", 1, 3.0), ("short", 4, 1.0), ("long", 5, 3.0)]
    found = asked_at(tmp_path / "in-turn", *calls)
    assert {name: row["seconds_per_sample"] for name, row in found.items()} == {
        "m (short)": 1.0,
        "m (long)": 3.0,
    }


def test_the_longest_problem_whose_rule_and_reply_fit(made):
    assert rows_of(made["table-19"], "model", "task", "representation", "longest") == [
        ("m (rules)", "add", "integer", 3)
    ]


def test_a_wrong_answer_is_laid_under_the_right_one_as_digit_match_counts():
    assert laid("12.50", "112.5", "decimal") == (" 12.50", "112.5 ")
    assert laid("7/13", "7/3", "fraction") == ("7/13", "7/ 3")
    assert laid("1.25e9", "1.2e10", "scientific") == ("1.25e 9", "1.2 e10")


def test_models_stand_best_first_in_all_pictures_which_say_so(tmp_path):
    """The better model was asked last, and lacks the first task."""
    sums, floats = problems(SUM, {3: 2}), problems(FLOATS, {5: 2})
    answers = [
        *((problem, "worse", "The answer is 1") for problem in sums),
        *(
            (problem, "worse", right(problem) if n else "The answer is 1.5")
            for n, problem in enumerate(floats)
        ),
        *((problem, "better", right(problem)) for problem in floats),
    ]
    results = [result(problem, text, model=model) for problem, model, text in answers]
    shown = pictures_of(kept(tmp_path / "night", results, [1.0] * len(results)))
    orders = [(shown["range-S"].x_order), shown["figure-5-sums"].series_order, shown["table-7"].x_order]
    assert orders == [["better", "worse"]] * 3
    assert [row["model"] for row in shown["table-2-seconds"].rows] == ["better", "worse"]
    note = "Best model first, by mean exact match over the task that all were asked."
    assert all(note in shown[name].notes for name in ("range-M", "figure-5-sums", "table-7", "table-1"))
    assert not any(note in shown[name].notes for name in ("table-4", "figure-1"))  # of none, and of one


def test_the_wrong_answer_that_is_shown_is_the_nearest_to_8_digits_that_most_failed_or_the_one_asked_for(
    tmp_path,
):
    short, *both, long = problems(SUM, {3: 1, 7: 2, 15: 1})
    wrong = {"a": (short, *both, long), "b": (both[1], long)}
    results = [
        result(problem, "The answer is 1" if problem in failed else right(problem), model=model)
        for model, failed in wrong.items()
        for problem in (short, *both, long)
    ]
    folder = kept(tmp_path / "night", results, [1.0] * len(results))
    rows = pictures_of(folder)["figure-1"].rows
    assert {(row["example"], row["problem"]) for row in rows} == {
        (f"add, integer, 7 digits: {model}", both[1].problem_id) for model in wrong
    }
    chosen = pictures_of(folder, where=f"problem_id = '{long.problem_id}'")["figure-1"].rows
    assert {row["problem"] for row in chosen} == {long.problem_id}
    assert {row["example"] for row in chosen} == {f"add, integer, 15 digits: {model}" for model in wrong}


# ── what was chosen: several folders, filters ────────────────────────────────────────────────


ASKED = (SUM, FLOATS, "max_Integer_Integer_Integer")


@pytest.fixture(scope="module")
def chosen_from(tmp_path_factory):
    """Import files of replies, of these models to these tasks, as a folder."""
    place = tmp_path_factory.mktemp("chosen")

    def folder(name, models, tasks=ASKED, lengths=(3, 5)):
        files = []
        for model in models:
            lines = [
                {
                    "task": task,
                    "digit": one.length,
                    "question": one.question,
                    "groundtruth": one.expected,
                    "generated_text": [f"The answer is {one.operands[-1]}", right(one)],
                }
                for task in tasks
                for one in problems(task, {5: 3} if task == FLOATS else dict.fromkeys(lengths, 3))
            ]
            (place / name).mkdir(exist_ok=True)
            files.append(place / name / f"{model}.jsonl")
            files[-1].write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
        if not (place / name / "results").exists():
            import_files("nupa", files, place / name / "results")
        return place / name / "results"

    return folder


def drawn(folder, **options):
    return {name: picture.rows for name, picture in pictures_of(folder, **options).items()}


@pytest.mark.long
def test_pictures_of_two_folders_are_those_of_one_that_holds_both(chosen_from):
    apart = [chosen_from("of-a", ["a"]), chosen_from("of-b", ["b"])]
    found = drawn(apart)
    assert found == drawn(chosen_from("both", ["a", "b"]))
    assert {row["model"] for row in found["figure-2"]} == {"a", "b"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("filters", "models", "tasks", "lengths"),
    [
        ({"models": ["a"]}, ["a"], ASKED, (3, 5)),
        ({"task": "max"}, ["a", "b"], ASKED[2:], (3, 5)),
        ({"where": "length = 5"}, ["a", "b"], ASKED, (5,)),
    ],
    ids=["models", "task", "where"],
)
def test_filtered_pictures_are_those_of_a_folder_in_which_nothing_else_was_asked(
    chosen_from, filters, models, tasks, lengths
):
    found = drawn(chosen_from("much", ["a", "b"]), **filters)
    assert found == drawn(chosen_from(f"alone-{'-'.join(filters)}", models, tasks, lengths))
    assert found["table-3" if "task" not in filters else "figure-1"]


@pytest.mark.long
def test_columns_of_a_table_stand_in_order_whoever_comes_first(tmp_path):
    """The first model lacks a range that the second has."""
    import vl_convert

    from asyncbench.page.charts.catalogue import published_drawn

    results = [
        result(one, right(one), model=model)
        for model, lengths in (("first", {3: 1, 10: 1}), ("second", {3: 1, 6: 1}))
        for one in problems(SUM, lengths)
    ]
    shown = pictures_of(made_folder(tmp_path / "night", *results))["table-18"]
    labels = re.findall(r">(add, integer [SML]+)<", vl_convert.vegalite_to_svg(published_drawn(shown)))
    assert labels == ["add, integer S", "add, integer M", "add, integer L"]


# ── beside the printed figures ───────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """One answer to each task, beside everything that the paper prints."""
    lengths = {name: {task.lengths[-1]: 1} for name, task in TASKS.items() if "released" in task.sets}
    lengths[FLOATS] = {5: 1}
    asked = [one for name, some in lengths.items() for one in problems(name, some)]
    results = [result(one, right(one)) for one in asked]
    folder = kept(tmp_path_factory.mktemp("beside") / "night", results, [1.0] * len(results))
    return pictures_of(folder, published=True)


def printed_rows(picture, *columns):
    return {
        tuple(row[column] for column in columns)
        for row in picture.rows
        if row["model"].endswith(" (published)") and row[picture.value] is not None
    }


def of_models(folder, count):
    """A folder of so many models with long names, each asked each released task once."""
    asked = [one for name, task in TASKS.items() if "released" in task.sets for one in problems(name, {7: 1})]
    models = [f"maker/A-Model-of-{billions}B-Instruct-v0.1" for billions in range(count)]
    results = [result(one, right(one), model=model) for model in models for one in asked]
    return kept(folder, results, [1.0] * len(results))


@pytest.mark.long
@needs_pdflatex
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
@pytest.mark.parametrize(("models", "most_pages"), [(2, 10), (12, 13), (40, 34)])
def test_the_tables_of_models_are_set_within_the_line_on_full_pages(tmp_path, columns, models, most_pages):
    body = report(of_models(tmp_path / "night", models), "nupa").as_latex()
    paper = printed_paper(tmp_path / "paper", body, options=columns)
    assert not paper.overfull
    assert paper.pages <= most_pages
    assert min(paper.full[:-1]) > 0.5, paper.full


@pytest.mark.parametrize("number", [7, 8, 9])
def test_every_printed_cell_of_the_tables_of_digits_stands_beside(beside, number):
    tasks = {(task.task, task.variant, task.representation): called(task) for task in TASKS.values()}
    expected = {
        (
            f"{row['model']} (published)",
            tasks[row["task"], row["variant"], row["representation"]],
            f"{row['well_learned_digits']} / {row['performance_preserving_digits']}",
        )
        for row in published_table(f"nupa_table_{number}").to_pylist()
        if row.get("repeats_block_1") != "yes"
    }
    assert printed_rows(beside[f"table-{number}"], "model", "task", "digits") == expected


def gaps(picture, model):
    """The places of a model without a figure, by the sign that stands there."""
    drawn = [row for row in picture.drawn_rows() if row["value"] is None and model in str(row.values())]
    across = "series" if picture.kind == "bars" else "x" if picture.x != "model" else "y"
    return {
        sign: {(row.get("panel"), row[across], row["x"]) for row in drawn if row["lacking"] == sign}
        for sign in {row["lacking"] for row in drawn}
    }


def test_each_place_without_a_figure_says_its_own_reason(beside, made):
    sevens = gaps(beside["table-7"], "(published)")
    misprints = {
        (row["model"], row["task"], row["variant"], row["representation"])
        for row in published_table("nupa_table_7").to_pylist()
        if row["repeats_block_1"] == "yes"
    }
    assert len(sevens["?"]) <= len(misprints) == 315
    assert "–" not in sevens
    said = beside["table-7"].signs()
    assert said["?"] == "the paper prints the digits of other tasks here, by mistake"

    # Table 3: what the paper's model could not hold; the folder was asked one of the lengths
    assert gaps(beside["table-3"], "RF CoT (published)")["×"] == {
        ("add, float", "RF CoT (published)", 7),
        ("multiply, fraction", "RF CoT (published)", 4),
        ("mod, integer", "RF CoT (published)", 8),
    }
    assert beside["table-3"].signs()["×"] == "exceeds the context, as the paper says"

    # Table 10 has four ranges a task and no digits; all of what it has is printed
    columns = beside["table-10"].x_order
    assert len(columns) == 12
    assert not any("learned" in column or "preserving" in column for column in columns)
    assert not gaps(beside["table-10"], "(published)")
    assert made["table-10"].signs() == {"–": "was not asked"}


def test_a_map_of_models_is_printed_with_a_column_a_model_and_its_signs_in_the_caption(beside):
    table = beside["table-7"].paper_sheet()
    assert (table.head[:2], table.labels) == (["task", "m"], 1)
    assert "GPT-4o (published)" in table.head
    assert [row[0] for row in table.rows] == [
        called(task) for task in TASKS.values() if "released" in task.sets
    ]
    cells = dict(zip(table.head, table.rows[0], strict=True))
    assert (cells["m"], cells["GPT-4o-mini (published)"]) == ("20/20", "5/20")
    assert "? the paper prints the digits of other tasks here, by mistake." in table.legend
    assert "Shaded" not in table.legend

    # Without an order of its own, places are named as the map has them; tasks that nobody asked are left out.
    frame = beside["table-1"].paper_sheet()
    assert frame.head == ["representation", "task", "m"]
    assert len(frame.rows) == 41
    names = [row[0] for row in frame.rows]
    assert [name for name in names if name] == [
        "integer",
        "float",
        "fraction",
        "scientific",
    ]  # where each begins
    integers = {task: cell for _, task, cell in frame.rows[: names.index("float")]}
    assert (integers["min"], integers["sub"]) == ("✓", "100")
    caption = next(line for line in beside["table-1"].as_latex().splitlines() if "caption" in line)
    assert r"\ensuremath{\surd} is in the paper's test, and was not asked here." in caption
    assert "`" not in caption


def test_who_was_asked_and_has_no_answer_is_not_called_unasked(tmp_path):
    asked, failed = problems(SUM, {3: 1, 9: 1})
    results = [result(asked, right(asked)), result(failed, None)]
    shown = pictures_of(kept(tmp_path / "night", results, [1.0, 1.0]))
    drawn = {row["x"]: row["lacking"] for row in shown["table-10"].drawn_rows() if row["value"] is None}
    assert {column.split()[-1]: sign for column, sign in drawn.items() if column.startswith("add")} == {
        "M": "–",
        "L": "*",
        "XL": "–",
    }
    assert shown["table-10"].signs()["*"] == "was asked, and has no graded answer"


def test_every_printed_cell_of_table_10_stands_beside(beside):
    expected = {
        (
            f"{row['model']}, {row['shots']} examples (published)",
            f"{row['task']}, {row['representation']} {row['range']}",
            str(row["exact_match"]),
        )
        for row in published_table("nupa_table_10").to_pylist()
    }
    assert len(expected) == 72
    assert printed_rows(beside["table-10"], "model", "task and range", "figure") == expected


def test_every_printed_cell_of_table_18_stands_beside(beside):
    ends = {"s": "S", "m": "M", "l": "L", "xl": "XL"}
    columns = {f"exact_match_{end}": name for end, name in ends.items()}
    columns |= {"well_learned_digits": "well learned", "performance_preserving_digits": "preserving"}
    expected = {
        (
            f"{row['configuration']} (published)",
            f"{row['task']}{' easy' if row['variant'] else ''}, {row['representation']} {of}",
            str(row[column]),
        )
        for row in published_table("nupa_table_18").to_pylist()
        for column, of in columns.items()
    }
    assert len(expected) == 168
    assert printed_rows(beside["table-18"], "model", "task and range", "figure") == expected


def test_every_printed_cell_of_tables_2_and_3_stands_beside(beside):
    speeds = {
        (f"{row['method']}, batch {row['batch_size']} (published)", float(row["seconds_per_sample"]))
        for row in published_table("nupa_table_2").to_pylist()
    }
    assert printed_rows(beside["table-2-seconds"], "model", "seconds_per_sample") == speeds
    expected = {
        (
            f"{row['model']} (published)",
            f"{row['task']}, {row['representation']}",
            row["digits"],
            float(row["exact_match"]),
            None if row["standard_error"] is None else float(row["standard_error"]),
        )
        for row in published_table("nupa_table_3").to_pylist()
        if row["exact_match"] is not None
    }
    found = printed_rows(beside["table-3"], "model", "task", "length", "exact_match", "standard_error")
    assert found == expected


def test_without_being_asked_for_nothing_printed_stands_there(made):
    assert not any("(published)" in str(row) for picture in made.values() for row in picture.rows)
