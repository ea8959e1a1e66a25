"""What a change of one field does to the golden files, and in which words it is told."""

from copy import deepcopy

from tests.contracts.changes import change_lines
from tests.contracts.shapes import Node, Shapes, figure_lines

RANKING = {"model": "steady", "accuracy": 0.9, "answers": 10}
REPORT = {"rankings": [RANKING, {**RANKING, "model": "quick"}], "best": RANKING}
NAMES = {"steady", "quick"}


def key_lines(*documents):
    shapes = Shapes()
    for n, document in enumerate(documents):
        node = Node()
        node.add(document, NAMES)
        shapes.add(f"command {n}", node)
    return shapes.lines()


def with_field(report):
    changed = deepcopy(report)
    for row in (*changed["rankings"], changed["best"]):
        row["score"] = 0.5
    return changed


def test_a_new_field_changes_one_line_of_names_in_however_many_commands_it_stands():
    before, now = key_lines(REPORT, RANKING), key_lines(with_field(REPORT), {**RANKING, "score": 0.5})
    assert [line for line in now if line not in before] == ["  score: number"]
    assert [line for line in before if line not in now] == []


def test_a_figure_stands_once_though_two_reports_show_it():
    shown = set[str]()
    assert figure_lines(REPORT, NAMES, shown)
    assert figure_lines({"standings": REPORT["rankings"]}, NAMES, shown) == []


def test_a_changed_figure_is_told_with_both_values():
    before = ["## report", "rankings[model=steady].accuracy: 0.9", "rankings[model=steady].rank: 1"]
    now = ["## report", "rankings[model=steady].accuracy: 0.8", "rankings[model=steady].score: 0.5"]
    assert change_lines("figures-night.txt", before, now) == [
        "changed figure of report: rankings[model=steady].accuracy: 0.9  →  0.8",
        "new figure of report: rankings[model=steady].score: 0.5",
        "no longer there, figure of report: rankings[model=steady].rank: 1",
    ]


def test_a_new_column_is_told_with_its_table():
    before, now = (
        ["grades, version 1:", "  answer: string?"],
        ["grades, version 1:", "  answer: string?", "  score: double?"],
    )
    assert change_lines("tables.txt", before, now) == ["new column of grades, version 1: score: double?"]


def test_another_order_is_told():
    assert change_lines("tables.txt", ["a", "b"], ["b", "a"]) == [
        "the same lines in another order, from 'b' on"
    ]
