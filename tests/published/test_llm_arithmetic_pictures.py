"""The pictures of llm_arithmetic: of recorded and published runs, and of what a sweep varied."""

from collections import Counter, defaultdict
from dataclasses import replace
from math import inf

import pytest

from asyncbench import published_table
from asyncbench.published.llm_arithmetic.names import facets_of, words_of
from asyncbench.published.llm_arithmetic.pictures import entries_of
from asyncbench.published.llm_arithmetic.report import llm_arithmetic_report_on
from asyncbench.records import Condition, Usage
from asyncbench.suites.llm_arithmetic import ARITHMETIC_TASKS
from tests.published.test_llm_arithmetic_report import many, problem, result
from tests.recorded import rows as corpus
from tests.store.made import results_folder


def pictures_of(folder, **options):
    return {picture.name: picture for picture in llm_arithmetic_report_on(folder, **options).pictures()}


@pytest.fixture(scope="module")
def drawn(recorded_runs):
    """The pictures of all recorded runs and of those of the README of 2025-06-30, by name."""
    return pictures_of(recorded_runs / "results", grader="legacy", published=True)


@pytest.fixture(scope="module")
def printed():
    """The rows of that README; of two of one name the first."""
    rows = published_table("llm_arithmetic_2025-06-30_overview").to_pylist()
    return {row["model"]: row for row in reversed(rows)}


def plain(name):
    """A name where a colour tells that it is published."""
    return name.replace(" (published)", "")


def of_published(picture):
    return [row for row in picture.rows if "(published)" in str(row["model"])]


PADDED = (
    *("o4-mini-2025-04-16-medium", "deepseek-r1", "qwen3-14b@iq4_xs-ctx32k-thinking"),
    *("claude-sonnet-3.7-20250219", "gpt-4.1-2025-04-14"),
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("picture", "column", "key", "scale"),
    [
        ("l-1-padding", "accuracy", "correct_percent", 100),
        ("l-1-tokens", "output tokens", "completion_tokens", 1),
    ],
)
def test_padding_is_a_slope_for_each_published_pair(drawn, printed, picture, column, key, scale):
    found = defaultdict[str, dict[str, float]](dict)
    for row in of_published(drawn[picture]):
        found[row["model"]][row["padding"]] = row[column]
    wanted = [[float(printed[f"{name}{by}"][key]) / scale for by in ("", "-4k")] for name in PADDED]
    assert sorted([ends["0k"], ends["4k"]] for ends in found.values()) == sorted(wanted)


@pytest.mark.long
def test_efforts_are_joined_against_dollars_and_tokens(drawn, printed):
    for name, key, column in (
        ("l-2-effort-cost", "cost_usd", "cost, USD"),
        ("l-2-effort-tokens", "completion_tokens", "output tokens"),
    ):
        found = {
            (row["model"].removesuffix(" (published)"), row["effort"]): (row[column], row["accuracy"])
            for row in of_published(drawn[name])
        }
        assert found == {
            (model, effort): (
                float(printed[f"{model}-{effort}"][key]),
                float(printed[f"{model}-{effort}"]["correct_percent"]) / 100,
            )
            for model, efforts in {
                "o3-2025-04-16": ("low", "medium"),
                "o4-mini-2025-04-16": ("low", "medium", "high"),
                "o3-mini-2025-01-31": ("low", "medium"),
            }.items()
            for effort in efforts
        }


@pytest.mark.parametrize(
    ("name", "off", "on"),
    [
        ("claude-sonnet-4-20250514", "", "-thinking16000"),
        ("claude-opus-4-20250514", "", "-thinking16000"),
        ("claude-sonnet-3.7-20250219", "", "-thinking4096"),
        ("qwen3-32b@cerebras", "", "-thinking"),
        ("qwen3-14b@iq4_xs-ctx32k", "", "-thinking"),
    ],
)
def test_thinking_is_a_dumbbell_whose_ends_show_their_nan(drawn, printed, name, off, on):
    models = {"off": printed[name + off], "on": printed[name + on]}
    label = name.replace("@iq4_xs", "") + (" iq4_xs" if "@iq4" in name else "")
    rows = [row for row in drawn["l-3-thinking"].rows if row["model"] == f"{label} (published)"]
    assert {row["thinking"]: (row["accuracy"], row["NaN"]) for row in rows} == {
        end: (float(row["correct_percent"]) / 100, float(row["nan_percent"]) / 100)
        for end, row in models.items()
    }
    for row in rows:
        assert row["high"] - row["low"] == pytest.approx(row["NaN"])


def test_quantisations_are_ties(drawn):
    rows = drawn["l-4-quantisation"].rows
    assert [row["pair"].partition(",")[0] for row in rows] == [
        "q8_0 − iq4_xs",
        "q8_0 − q4_k_m",
        "iq4_xs − q4_k_m",
    ]
    assert [round(row["difference"], 4) for row in rows] == [0.0125, 0.0146, 0.0021]
    assert all(row["low"] < 0 < row["high"] for row in rows)
    assert {row["paired"] for row in rows} == {"no"}


def test_who_has_no_known_price_is_named_and_not_drawn(drawn, printed):
    rows = of_published(drawn["l-5-cost"])
    assert len(rows) == 51 - 12
    assert min(row["cost, USD"] for row in rows) == float(
        min(row["cost_usd"] for row in printed.values() if row["cost_usd"])
    )
    note, *_ = drawn["l-5-cost"].notes
    assert "o1-2024-12-17 (published)" in note


def test_tokens_and_dollars_that_lack_the_reasoning_are_marked(drawn):
    lacking = {
        "gemini-2.5-pro, run azure_gemini-2.5-pro_2025-06-20_07-54 *",  # not that of 2026, which has them
        "grok-3-mini-beta-high *",
        *("gemini-2.5-pro (published) *", "gemini-2.5-pro-preview-03-25 (published) *"),
        *("grok-3-mini-beta-high (published) *", "xai/grok-3-mini-beta (published) *"),
    }
    for name in ("l-5-cost", "l-6-tokens", "l-8-classes"):
        marked = [row for row in drawn[name].rows if row["model"].endswith("*")]
        assert {row["model"] for row in marked} == lacking
        assert "* Its tokens and dollars are too low: they lack the reasoning." in drawn[name].notes
    assert {plain(name) for name in lacking} <= {row["name"] for row in drawn["l-5-cost"].rows}


@pytest.mark.long
def test_every_point_is_named_or_numbered_and_those_that_nobody_beats_first(drawn):
    from asyncbench.page.charts.catalogue import place_names

    picture = drawn["l-5-cost"]
    compared = [row for row in picture.rows if not row["model"].endswith(("*", "†"))]
    front = {
        row["model"]
        for row in compared
        if not any(
            one["cost, USD"] <= row["cost, USD"] and one["accuracy"] >= row["accuracy"] and one is not row
            for one in compared
        )
    }
    assert {row["model"] for row in compared if row["first"]} == front
    placed = place_names(picture)
    numbers = [int(row["text"]) for row in placed if row["text"] != row["name"]]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert 0 < len(numbers) < len(placed) == len(picture.rows)
    keys = {row["key"].partition(" ")[2] for row in placed if "key" in row}
    assert keys | {row["text"] for row in placed} >= {row["name"] for row in placed}


def test_an_incomplete_run_is_marked_everywhere_and_takes_no_name_from_complete_ones(tmp_path):
    """It was asked less, so it is cheaper and better than a complete run that nobody beats."""
    partial = asked(["2"] * 3 + ["9"], alias="p")
    folder = results_folder(tmp_path, *partial, *asked(["2"] * 5 + ["9"] * 3, alias="c"))
    pictures = pictures_of(folder)
    for name in ("l-5-cost", "l-6-tokens", "l-6-truncated", "l-7-errors", "l-8-classes"):
        assert {row["model"] for row in pictures[name].rows} == {"c", "p †"}, name
        assert any(note.startswith("† Incomplete") for note in pictures[name].notes), name
    entries = entries_of(llm_arithmetic_report_on(folder).rows, range(11))
    assert [(entry.model, entry.comparable) for entry in entries] == [("c", True), ("p", False)]


@pytest.mark.long
def test_no_incomplete_run_stands_on_the_line_of_those_that_nobody_beats(drawn, recorded_runs):
    incomplete = {
        row.name for row in llm_arithmetic_report_on(recorded_runs / "results").rows if not row.complete
    }
    rows = drawn["l-5-cost"].rows
    assert {row["model"] for row in rows if row["model"].endswith(" †")} <= {
        f"{name} †" for name in incomplete
    }
    compared = [row for row in rows if not row["model"].endswith(("*", "†"))]
    beaten = [
        any(
            one["cost, USD"] <= row["cost, USD"]
            and one["accuracy"] >= row["accuracy"]
            and (one["cost, USD"], one["accuracy"]) != (row["cost, USD"], row["accuracy"])
            for one in compared
        )
        for row in compared
    ]
    assert all(row["first"] for row, is_beaten in zip(compared, beaten, strict=True) if not is_beaten)


def test_tokens_are_divided_by_right_answers(drawn, printed):
    found = {row["model"]: row["tokens per right answer"] for row in drawn["l-6-tokens"].rows}
    row = printed["magistral-small-2506"]
    right = round(480 * float(row["correct_percent"]) / 100)
    assert found["magistral-small-2506 (published)"] == pytest.approx(
        row["completion_tokens"] / right, rel=0.01
    )


def test_the_stack_stands_as_the_table_does(drawn):
    rows = of_published(drawn["l-8-classes"])
    models = list(dict.fromkeys(row["model"] for row in rows))
    assert len(models) == 51
    correct = [row["share of trials"] for row in rows if row["class"] == "Correct"]
    assert correct == sorted(correct, reverse=True)
    for model in models:
        assert sum(row["share of trials"] for row in rows if row["model"] == model) == pytest.approx(
            1, abs=2e-4
        )


# ── of the recorded replies, cell by cell ────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def by_layered(recorded_runs):
    return llm_arithmetic_report_on(recorded_runs / "results")


OVERALL = [(task, depth) for task in ARITHMETIC_TASKS for depth in range(2, 11)]


@pytest.mark.long
def test_every_cell_of_the_heatmaps_is_that_of_the_recorded_classes(golden, by_layered):
    trials, classes = Counter[tuple[str, str, int]](), Counter[tuple[str, str, int, str]]()
    for row in corpus(golden):
        cell = (row["source_file"].removesuffix(".jsonl"), row["variant"], row["depth"])
        trials[cell] += 1
        classes[(*cell, row["classification"])] += 1
    whole = {run for run, *_ in trials if all((run, *cell) in trials for cell in OVERALL)}
    assert len(whole) == 23
    pictures = {picture.name: picture for picture in by_layered.pictures()}
    often = Counter(row.label for row in by_layered.rows)
    models = {
        row.label if often[row.label] == 1 else f"{row.label}, run {row.run}": row.run
        for row in by_layered.rows
    }
    for name, column, of_class in (
        ("la-9-correct", "Correct %", "Correct"),
        ("la-9-dev", "Dev %", "Deviate"),
        ("la-9-nan", "NaN %", "NaN"),
    ):
        drawn_rows = pictures[name].rows
        overall, rows = drawn_rows[: len(OVERALL)], drawn_rows[len(OVERALL) :]
        assert {(row["variant"], row["depth"]) for row in overall} == set(OVERALL)
        for row in overall:
            cells = [(run, row["variant"], row["depth"]) for run in whole]
            right = sum(classes[(*cell, of_class)] for cell in cells)
            assert row[column] == right / sum(trials[cell] for cell in cells)
        found = {(models[row["model"]], row["variant"], row["depth"]): row[column] for row in rows}
        assert found == {cell: classes[(*cell, of_class)] / count for cell, count in trials.items()}


@pytest.mark.long
def test_the_distribution_of_errors_is_that_of_the_recorded_ones(golden, by_layered):
    run = "gpt-4.1-nano-2025-04-14_2025-05-11_16-04"
    errors = sorted(
        abs(float(row["error"]) / float(row["correct"])) if float(row["correct"]) else 0.0
        for row in corpus(golden)
        if row["source_file"] == f"{run}.jsonl" and row["depth"] >= 5 and row["classification"] == "Deviate"
    )
    picture = next(picture for picture in by_layered.pictures() if picture.name == "l-7-errors")
    rows = [row for row in picture.rows if row["model"] == "gpt-4.1-nano-2025-04-14"]
    assert rows[0]["wrong"] == len(errors)
    (median,) = (row["relative error"] for row in rows if row["share of Dev"] == 0.5)
    assert median == pytest.approx(errors[(len(errors) - 1) // 2], rel=1e-9)
    assert rows[-1]["relative error"] == pytest.approx(errors[-1])


# ── what a sweep varied ──────────────────────────────────────────────────────────────────────


def asked(texts, *, alias, model_id="m", condition=None, run="sweep", **params):
    """Closed trials of a model with parameters."""
    made = many(texts, model=alias, run=run, usage=Usage(input_tokens=1, output_tokens=10), cost_usd=0.5)
    return [
        replace(
            one,
            trial=replace(
                one.trial,
                trial_id=f"{ord(alias):08x}{condition is None:08x}{n:016x}",
                model=replace(one.trial.model, model_id=model_id, **params),
                condition=condition or one.trial.condition,
            ),
        )
        for n, one in enumerate(made)
    ]


@pytest.mark.long
def test_what_a_sweep_varied_is_read_from_its_columns(tmp_path):
    padded = Condition(name="padded", described={"context": "2k"})
    results = [
        *asked(["2", "2"], alias="a", effort="low"),
        *asked(["2", "3"], alias="b", effort="high"),
        *asked(["2", "3"], alias="c", model_id="o"),
        *asked(["3", "?"], alias="c", model_id="o", condition=padded),
        *asked(["2", "3"], alias="d", model_id="t"),
        *asked(["2", "?"], alias="e", model_id="t", thinking_tokens=1000),
        *asked(["2", "2"], alias="f", model_id="q@q8_0"),
        *asked(["2", "3"], alias="g", model_id="q@q4_k_m"),
    ]
    found = pictures_of(results_folder(tmp_path, *results))
    assert {(row["model"], row["effort"], row["cost, USD"]) for row in found["l-2-effort-cost"].rows} == {
        ("m", "low", 1.0),
        ("m", "high", 1.0),
    }
    padding = {(row["model"], row["padding"]) for row in found["l-1-padding"].rows}
    assert padding == {("c", "0k"), ("c", "2k")}
    thinking = {(row["thinking"], row["NaN"]) for row in found["l-3-thinking"].rows}
    assert thinking == {("off", 0.0), ("on", 0.5)}
    (pair,) = found["l-4-quantisation"].rows
    assert (pair["pair"], pair["difference"], pair["paired"]) == ("q8_0 − q4_k_m, q", 0.5, "yes")


def test_quantisations_are_compared_on_the_problems_that_both_were_asked(tmp_path):
    """Each is half right: on the same ten of twenty problems, which tells more than two halves do."""
    problems = [replace(problem(), problem_id=f"{n:032x}") for n in range(20)]
    made = [
        replace(one, trial=replace(one.trial, model=replace(one.trial.model, model_id=model)))
        for base, model in ((100, "q@q8_0"), (200, "q@q4_k_m"))
        for n, asked_for in enumerate(problems)
        for one in [result(base + n, asked_for, "2" if n < 10 else "3", model=model)]
    ]
    (row,) = pictures_of(results_folder(tmp_path, *made))["l-4-quantisation"].rows
    assert (row["difference"], row["paired"]) == (0, "yes")
    assert -0.15 < row["low"] <= 0 <= row["high"] < 0.15  # unpaired it is as wide as 0.6


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("o4-mini-2025-04-16-medium-4k", ("o4-mini-2025-04-16", 4, "medium", False, None)),
        ("mistral-medium-2505", ("mistral-medium-2505", 0, None, False, None)),
        ("qwen3-14b@iq4_xs-ctx32k-thinking-4k", ("qwen3-14b-ctx32k", 4, None, True, "iq4_xs")),
        ("claude-opus-4-6_thinking-high", ("claude-opus-4-6", 0, "high", True, None)),
        ("gemini-2.5-flash-no-thinking", ("gemini-2.5-flash", 0, None, False, None)),
        ("qwen3-32b@cerebras-thinking", ("qwen3-32b@cerebras", 0, None, True, None)),
    ],
)
def test_a_published_name_tells_what_was_varied(name, told):
    assert facets_of(name)[:5] == told


def test_what_else_was_asked_keeps_rows_apart(tmp_path):
    results = [
        *asked(["2"], alias="a", effort="low", temperature=0.0),
        *asked(["2"], alias="b", effort="high", temperature=1.0),
    ]
    assert not pictures_of(results_folder(tmp_path, *results))["l-2-effort-cost"].rows


PADDED_ONCE = Condition(name="padded", described={"context": "2k"})


def low_and_high(names, **about):
    """Trials at two efforts, and of the lower one padded."""
    low, high = names
    return [
        *asked(["2", "2"], alias=low, effort="low", **about),
        *asked(["2", "3"], alias=low, effort="low", condition=PADDED_ONCE, **about),
        *asked(["2", "3"], alias=high, effort="high", **about),
    ]


def points_of(pictures):
    """The series of paddings and of efforts, each with what it has along its line."""
    found = defaultdict[tuple[str, str], list[str]](list)
    for name, column in (("l-1-padding", "padding"), ("l-2-effort-tokens", "effort")):
        for row in pictures[name].rows:
            found[column, row["model"]].append(row[column])
    return {series: sorted(points) for series, points in found.items()}


@pytest.mark.long
def test_each_folder_has_lines_of_its_own(tmp_path):
    folders = [results_folder(tmp_path / name, *low_and_high("ab")) for name in ("la", "la2")]
    assert points_of(pictures_of(folders)) == {
        **{("padding", f"a in {folder}"): ["0k", "2k"] for folder in ("la", "la2")},
        **{("effort", f"m {folder}"): ["high", "low"] for folder in ("la", "la2")},
    }


@pytest.mark.long
def test_folders_that_share_nothing_are_set_beside_each_other(tmp_path):
    folders = [
        results_folder(tmp_path / effort, *asked(["2"], alias=effort[0], effort=effort))
        for effort in ("low", "high")
    ]
    assert points_of(pictures_of(folders)) == {("effort", "m"): ["high", "low"]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("one", "other"),
    [({"provider": "x"}, {"provider": "y"}), ({"run": "x"}, {"run": "y"})],
)
def test_one_model_of_two_origins_has_two_lines(tmp_path, one, other):
    results = [*low_and_high("ab", **one), *low_and_high("cd", **other)]
    assert points_of(pictures_of(results_folder(tmp_path, *results))) == {
        **{("padding", alias): ["0k", "2k"] for alias in "ac"},
        **{("effort", f"m {origin}"): ["high", "low"] for origin in "xy"},
    }


def test_one_model_id_under_two_aliases_has_two_lines(tmp_path):
    results = [
        *(one for alias in "ab" for one in asked(["2"], alias=alias)),
        *(one for alias in "ab" for one in asked(["3"], alias=alias, condition=PADDED_ONCE)),
    ]
    found = points_of(pictures_of(results_folder(tmp_path, *results)))
    assert found == {("padding", alias): ["0k", "2k"] for alias in "ab"}


def test_options_are_words():
    options = {"stop": ["x", "y"], "a": {"b": 1, "c": {}}, "top_k": 5}
    assert words_of(options) == "a.b 1, stop x y, top_k 5"


@pytest.mark.long
def test_a_legend_has_aliases_or_words_and_no_json(tmp_path):
    """Two efforts of one alias under conditions, and two of an id under aliases, all with options."""
    efforts = [Condition(name=one, described={"effort": one, "top_p": 0.5}) for one in ("low", "high")]
    results = [
        *(one for effort in efforts for one in asked(["2"], alias="a", condition=effort, effort=effort.name)),
        *asked(["2"], alias="b", model_id="o", effort="low", temperature=0.5),
        *asked(["3"], alias="c", model_id="o", effort="high", temperature=0.5),
    ]
    found = points_of(pictures_of(results_folder(tmp_path, *results)))
    assert found == {("effort", name): ["high", "low"] for name in ("a", "o temperature 0.5")}


@pytest.mark.parametrize(
    ("name", "series", "x"),
    [
        ("l-1-padding", "model", "padding"),
        ("l-2-effort-tokens", "model", "effort"),
        ("l-3-thinking", "model", "thinking"),
    ],
)
def test_no_line_has_two_points_of_one_kind(drawn, name, series, x):
    often = Counter((row[series], row[x]) for row in drawn[name].rows)
    assert often
    assert set(often.values()) == {1}


def test_an_infinite_error_is_left_out_of_a_scale_of_logs(tmp_path):
    folder = results_folder(tmp_path, *many(["3", "9" * 400]))
    errors = [row["relative error"] for row in pictures_of(folder)["l-7-errors"].rows]
    assert errors
    assert inf not in errors
