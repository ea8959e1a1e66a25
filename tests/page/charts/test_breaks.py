"""Where each breaks and what each can do, counted by hand; names, colours, labels that do not meet."""

import itertools
import json
import math
import re
import xml.etree.ElementTree as ET

import pytest
import vl_convert

from asyncbench.analysis.curves import fit
from asyncbench.analysis.entrants import (
    LONGEST_SHORT,
    Asked,
    NamedEntrant,
    NamedKind,
    distinct_names,
    short_names,
)
from asyncbench.page.charts.breaks import (
    LEAST_TRIALS,
    MOST_BINS,
    MOST_LENGTHS,
    MOST_POINTS,
    MOST_STEPS,
    KindCurve,
    break_rows,
    half_rows,
    length_bins,
    range_in,
)
from asyncbench.page.charts.catalogue import drawn
from asyncbench.page.charts.chart import DARK, LIGHT, THEMES, colours_of, style_rows

FALLING = [(1, 20, 20), (2, 18, 20), (3, 10, 20), (4, 2, 20), (5, 0, 20)]  # length, right, trials


def curve(points, *, kind=0, asked=0, repeats=1.0):
    lengths = [length for length, _, _ in points]
    return KindCurve(
        kind=kind,
        entrant=asked,
        curve=fit(points),
        repeats=repeats,
        shortest=min(lengths),
        longest=max(lengths),
    )


def by_sort(rows):
    return {
        sort: [row for row in rows if row["sort"] == sort] for sort in dict.fromkeys(r["sort"] for r in rows)
    }


# ── points, lines, halves ────────────────────────────────────────────────────────────────────


def test_curves_that_lie_on_each_other_share_a_path():
    curves = [curve(FALLING), curve(FALLING, asked=1), curve(FALLING[:4], asked=2), curve(FALLING, kind=1)]
    paths = {(row["kind"], row["asked"]): row["path"] for row in break_rows(curves)}
    assert paths == {(0, 0): 0, (0, 1): 0, (0, 2): 1, (1, 0): 2}


def test_a_curve_has_its_points_a_line_within_them_and_a_mark_at_a_half():
    found = by_sort(break_rows([curve(FALLING)]))
    assert [(row["length"], row["value"], row["trials"]) for row in found["point"]] == [
        (length, right / 20, 20) for length, right, _ in FALLING
    ]
    line = found["line"]
    assert (line[0]["length"], line[-1]["length"]) == (1, 5)
    fitted = fit(FALLING)
    assert fitted
    for row in line:
        assert (row["value"], row["low"], row["high"]) == pytest.approx(
            fitted.share_at(row["length"]), abs=1e-3
        )
    assert [(row["label"], row["value"]) for row in found["half"]] == [("3.0", 0.5)]


def test_a_point_stands_for_eight_trials_or_more_and_no_trial_is_lost():
    few = [(length, length % 2, 3) for length in range(1, 12)]
    points = by_sort(break_rows([curve(few)]))["point"]
    assert [(row["from"], row["to"], row["trials"]) for row in points] == [(1, 3, 9), (4, 6, 9), (7, 11, 15)]
    assert all(row["trials"] >= LEAST_TRIALS for row in points)
    assert not break_rows([curve([(1, 3, 3), (2, 1, 4)])])  # seven in all


@pytest.mark.parametrize("lengths", [40, 600])
def test_a_curve_is_as_long_as_it_may_be_however_many_lengths_it_has(lengths):
    many = [(n, 10 - 10 * n // (lengths + 1), 10) for n in range(1, lengths + 1)]
    found = by_sort(break_rows([curve(many)]))
    assert len(found["point"]) == MOST_POINTS
    assert sum(row["trials"] for row in found["point"]) == 10 * lengths
    assert len(found["line"]) <= MOST_STEPS


def test_a_line_is_drawn_where_it_is_steep_even_between_two_lengths():
    steep = [(1, 50, 50), (10, 49, 50), (11, 1, 50), (20, 0, 50)]
    line = by_sort(break_rows([curve(steep)]))["line"]
    assert sum(10 < row["length"] < 11 for row in line) >= 8
    assert all(one["length"] < other["length"] for one, other in itertools.pairwise(line))


def test_where_no_best_line_exists_the_step_is_drawn():
    right = by_sort(break_rows([curve([(1, 9, 9), (2, 9, 9)])]))["line"]
    assert [row["value"] for row in right] == [1, 1]
    step = by_sort(break_rows([curve([(1, 9, 9), (2, 9, 9), (3, 9, 9), (4, 0, 9), (5, 0, 9), (6, 0, 9)])]))
    assert [(row["length"], row["value"]) for row in step["line"]] == [(1, 1), (3, 1), (4, 0), (6, 0)]


def test_repeats_of_a_problem_make_no_interval_narrower():
    often = [(length, 3 * right, 3 * trials) for length, right, trials in FALLING]
    once, again = break_rows([curve(FALLING)]), break_rows([curve(often, repeats=3.0)])
    for one, other in zip(once, again, strict=True):
        for end in ("value", "low", "high"):
            assert one[end] == pytest.approx(other[end], abs=1e-4)


def test_everybody_has_its_length_at_a_half_or_a_bound_or_the_reason_why_not():
    silent = KindCurve(kind=0, entrant=5, curve=None, repeats=1.0, shortest=2, longest=4)
    curves = [
        curve(FALLING, asked=0),
        curve([(1, 9, 9), (2, 9, 9)], asked=1),
        curve([(1, 0, 9), (2, 0, 9)], asked=2),
        curve([(1, 9, 9), (2, 0, 9)], asked=3),
        curve([(1, 4, 9)], asked=4),
        silent,
    ]
    found = [(row["asked"], row["at"], row["bound"], row["label"]) for row in half_rows(curves)]
    assert found == [
        (0, pytest.approx(3.0), "within", "3.0"),
        (1, 2, "above", "> 2"),
        (3, 1.5, "between", "1 to 2"),
        (2, 1, "below", "< 1"),
        (4, None, None, "one length"),
        (5, None, None, "no reply"),
    ]
    assert all(row["low"] <= row["at"] <= row["high"] for row in half_rows(curves[:1]))


# ── bins of lengths ──────────────────────────────────────────────────────────────────────────


def binned(lengths, of=""):
    return {length: span for (_, length), span in length_bins((of, length) for length in lengths).items()}


@pytest.mark.long
def test_few_lengths_stay_themselves_and_many_are_put_into_bins_that_keep_ranges_whole():
    assert binned([3, 1, 3]) == {1: (1, 1), 3: (3, 3)}
    assert len(binned(range(MOST_LENGTHS))) == MOST_LENGTHS
    many = binned([*range(1, 101), 101, 999])
    assert [many[n] for n in (1, 10, 11, 20, 95, 101, 999)] == [
        *((1, 1), (10, 10), (11, 20), (11, 20), (91, 100)),
        *((101, 101), (999, 999)),
    ]
    by_task = {
        (range_in("nupa", "max", "", form, n), n) for form in ("integer", "fraction") for n in range(1, 101)
    }
    for (of, _), span in length_bins(by_task).items():
        assert {(of, length) for length in span} <= by_task
    assert len({*binned(range(1, 10**6)).values()}) <= MOST_BINS


# ── names and colours ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["groq/llama-3", "groq/qwen-3"], ["llama-3", "qwen-3"]),
        (["gpt-4", "gpt-5"], ["gpt-4", "gpt-5"]),  # nobody is called 4
        (["a/b", "a/c"], ["a/b", "a/c"]),  # nor by one letter
        (["gpt-4.1-mini", "gpt-4.1-nano"], ["mini", "nano"]),
        (["gpt-4.1", "gpt-4.1-nano"], ["gpt-4.1", "gpt-4.1-nano"]),  # nobody is called by nothing
        (["m (low)", "m (high)"], ["low", "high"]),
        (["alone/m"], ["alone/m"]),
        ([], []),
    ],
)
def test_names_are_told_without_what_all_begin_with(names, short):
    assert [*short_names(names).values()] == short


def test_short_names_are_short_harmless_and_told_apart():
    names = [f"{'a' * 40}{middle}{'z' * 40}" for middle in ("1", "2", "3" * 9)] + ["x\x1b[31m"]
    short = short_names(names)
    assert len({*short.values()}) == 4
    assert max(map(len, short.values())) <= LONGEST_SHORT
    assert short["x\x1b[31m"] == r"x\x1b[31m"


def test_a_name_without_its_middle_keeps_what_tells_it_from_others():
    names = [f"provider/a-model-of-some-length-{size}-instruct-turbo-preview" for size in ("8b", "70b")]
    assert [*distinct_names(names, longest=24).values()] == [
        "provider/a…8b…bo-preview",
        "provider/…70b…bo-preview",
    ]
    far = ["provider/a-model-of-some-length-" + "1234567890" * n + "-instruct-turbo-preview" for n in (2, 3)]
    assert [*distinct_names(far, longest=12).values()] == ["provid…eview", "pro…iew (2)"]


@pytest.mark.parametrize(("colours", "theme"), [(LIGHT, "light"), (DARK, "dark")])
def test_colours_stand_out_from_their_ground_and_from_each_other(colours, theme):
    ground = luminance(THEMES[theme]["background"])
    for colour in colours:
        high, low = sorted((luminance(colour), ground), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3, colour
    apart = {pair: math.dist(*map(oklab, pair)) for pair in itertools.combinations(colours, 2)}
    assert min(apart.values()) > 0.06
    assert min(math.dist(*map(oklab, pair)) for pair in itertools.combinations(colours[:12], 2)) > 0.1
    assert len(LIGHT) == len(DARK)
    assert colours_of(0) == colours_of(len(LIGHT)) == (LIGHT[0], DARK[0])


def linear(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour):
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def oklab(colour):
    """Ottosson's OKLab, in which distances are about as they are seen."""
    red, green, blue = linear(colour)
    cones = [
        (a * red + b * green + c * blue) ** (1 / 3)
        for a, b, c in (
            (0.4122214708, 0.5363325363, 0.0514459929),
            (0.2119034982, 0.6806995451, 0.1073969566),
            (0.0883024619, 0.2817188376, 0.6299787005),
        )
    ]
    return [
        sum(part * cone for part, cone in zip(row, cones, strict=True))
        for row in (
            (0.2104542553, 0.7936177850, -0.0040720468),
            (1.9779984951, -2.4285922050, 0.4505937099),
            (0.0259040371, 0.7827717662, -0.8086757660),
        )
    ]


def made_asked(models=2, kinds=2):
    return Asked(
        entrants=tuple(
            NamedEntrant(
                run="r",
                model=f"m{n}",
                condition="c",
                name=f"model-{n}",
                short=f"m{n}",
                folder="",
                effort=None,
                style=None,
                simulated=False,
                trials=1,
            )
            for n in range(models)
        ),
        kinds=tuple(
            NamedKind(suite="s", task=f"t{n}", variant="", representation="", called=f"task {n}")
            for n in range(kinds)
        ),
    )


def test_rows_are_dressed_with_what_their_places_stand_for():
    asked = made_asked()
    (row,) = style_rows([{"asked": 1, "kind": 0, "value": 0.5}], asked, theme="dark", lit=[0])
    assert row == {
        "asked": 1,
        "kind": 0,
        "value": 0.5,
        "model": "m1",
        "colour": DARK[1],
        "task": "task 0",
        "lit": False,
    }
    (pair,) = style_rows([{"a": 1, "b": 0, "tied": True}], asked)
    told = (pair["pair"], pair["model"], pair["other"], pair["colour"], pair["asked"])
    assert told == ("m1 − m0", "m1", "m0", LIGHT[0], 0)


# ── drawn ────────────────────────────────────────────────────────────────────────────────────


def drawn_texts(spec):
    """Return (text, x, y) of all texts of a drawing, in its pixels."""
    root = ET.fromstring(vl_convert.vegalite_to_svg(json.dumps(spec)))  # noqa: S314  our own
    found = []

    def walk(node, x, y):
        moved = re.match(r"translate\(([-\d.]+),\s*([-\d.]+)\)", node.get("transform", ""))
        x, y = (x + float(moved[1]), y + float(moved[2])) if moved else (x, y)
        if node.tag.endswith("text"):
            found.append(("".join(node.itertext()), x, y))
        for child in node:
            walk(child, x, y)

    walk(root, 0.0, 0.0)
    return found


@pytest.mark.long
@pytest.mark.parametrize("lengths", [[(1, 50, 50), (5, 50, 50)], [(1, 40, 50), (3, 9, 50), (5, 0, 50)]])
def test_labels_at_the_ends_of_lines_never_meet_and_faint_lines_have_none(lengths):
    asked = made_asked(models=10, kinds=1)
    rows = style_rows(break_rows(curve(lengths, asked=n) for n in range(10)), asked, lit=range(8))
    labels = [(y, text) for text, _, y in drawn_texts(drawn("curves", rows)) if re.fullmatch(r"m\d", text)]
    assert {text for _, text in labels} == {f"m{n}" for n in range(8)}
    heights = sorted(y for y, _ in labels)
    assert min(b - a for a, b in itertools.pairwise(heights)) > 11
    assert heights[-1] - heights[0] < 260


@pytest.mark.long
def test_every_model_has_its_row_of_dots_in_the_order_of_its_rank():
    asked = made_asked(models=3)
    rows = [
        {"asked": n, "place": place, "value": value, "low": value - 0.1, "high": value + 0.05, "trials": 9}
        for n, place, value in ((2, 1, 0.9), (0, 2, 0.5), (1, 2, 0.49))
    ]
    texts = drawn_texts(drawn("dots", style_rows(rows, asked)))
    names = sorted((y, text) for text, _, y in texts if re.search(r"m\d", text))
    assert [text.split() for _, text in names] == [["1", "m2"], ["2", "m0"], ["2", "m1"]]
    assert {"90.0%", "50.0%", "49.0%"} <= {text for text, _, _ in texts}


def test_a_map_has_a_figure_in_every_cell_and_a_hundred_only_where_all_is_right():
    asked = made_asked()
    shares = {(0, 0): 1.0, (0, 1): 0.996, (1, 0): 0.99, (1, 1): 0.0}
    rows = [{"asked": a, "kind": k, "value": v, "trials": 9} for (k, a), v in shares.items()]
    texts = [text for text, _, _ in drawn_texts(drawn("task_map", style_rows(rows, asked)))]
    assert {"100", ">99", "99", "0"} <= {*texts}
