"""What a page is made of, without a browser: figures that SQL gives, in blocks that hold what they hold."""

import base64
import gzip
import hashlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from runpy import run_path

import pytest
from typer.testing import CliRunner

from asyncbench import sql
from asyncbench.analysis import pairing
from asyncbench.analysis.choosing import chosen
from asyncbench.analysis.counting import counted
from asyncbench.analysis.curves import GROUP, curves_by
from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.page import writing
from asyncbench.page.blocks import BLOCKS
from asyncbench.page.charts.breaks import LEAST_TRIALS
from asyncbench.page.first_screen import head_block
from asyncbench.page.writing import LARGE, data_block, element, write_page
from asyncbench.reports.standings.report import HARDEST, standings_of
from asyncbench.store.rows import encode_json
from asyncbench.store.schema import ENTRANT
from tests.page.conftest import blocks_of
from tests.reports.answered import Asked, folder_of

pytestmark = pytest.mark.long

# ── blocks ───────────────────────────────────────────────────────────────────────────────────

CLOSERS = ["</script>", "<!--", "<script", "\u2028", "&lt;", "]]>"]


@pytest.mark.parametrize("many", [1, LARGE], ids=["plain", "packed"])
def test_no_text_ends_the_block_it_is_in_and_it_is_read_back_as_it_was(many):
    value = {"texts": CLOSERS * (many // 10 + 1)}
    found = re.fullmatch(
        r'<script type="application/(json|gzip)" id="x">([^<>&]*)</script>', data_block("x", value)
    )
    assert found
    text = found[2] if found[1] == "json" else gzip.decompress(base64.b64decode(found[2]))
    assert json.loads(text) == value


def test_code_that_would_end_its_own_element_is_refused():
    with pytest.raises(ValueError, match="cannot be embedded"):
        element("script", 'const x = "</SCRIPT>";')


def test_the_policy_names_the_scripts_that_are_there_and_nothing_else(night):
    page = (night / "report.html").read_text("utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    policy = policy.replace("&#x27;", "'")
    codes = re.findall(r"<script>(.*?)</script>", page, re.DOTALL) + re.findall(
        r"<style>(.*?)</style>", page, re.DOTALL
    )
    digests = {
        f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}" for code in codes
    }
    assert set(re.findall(r"'(sha256-[^']+)'", policy)) == digests
    assert len(digests) == 3
    assert "default-src 'none'" in policy
    assert not re.search(r"unsafe|https?:|data:|blob:", policy)


def test_our_own_script_never_makes_markup_of_text():
    own = "\n".join(path.read_text("utf-8") for path in Path(writing.__file__).parent.glob("app/*.js"))
    assert "createElement" in own
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser", own
    )


# ── figures ──────────────────────────────────────────────────────────────────────────────────

KIND = ("suite", "task", "variant", "representation")
IN_SQL = """
SELECT run, model, condition, suite, task, variant, representation, count(*) AS trials,
    count(*) FILTER (outcome = 'correct') / count(*) AS accuracy,
    1000 * sum(cost_usd) / count(cost_usd) AS cost
FROM trials GROUP BY ALL
"""


@pytest.fixture(scope="module", params=["night", "recorded"])
def folder(request):
    if request.param == "night":
        return request.getfixturevalue("night")
    return request.getfixturevalue("recorded_runs") / "results"


@pytest.fixture(scope="module")
def blocks(folder):
    return blocks_of(folder)


def named(blocks, row):
    """Return of whom and of what a row is."""
    who, what = blocks["head"]["entrants"][row["asked"]], blocks["head"]["kinds"][row["kind"]]
    kind = (what[name] for name in ("suite", "task", "variant", "representation"))
    return (*(who[name] for name in ENTRANT), *kind)


def rows_of(table):
    return [
        dict(zip(table["columns"], row, strict=True)) for row in zip(*table["columns"].values(), strict=True)
    ]


def test_what_each_can_do_is_what_sql_counts(folder, blocks):
    found = {named(blocks, row): row for row in blocks["heat"]["rows"]}
    counted_in_sql = sql(folder, IN_SQL).to_pylist()
    assert len(found) == len(counted_in_sql)
    for row in counted_in_sql:
        key = (*(row[name] for name in ENTRANT), *(row[name] or "" for name in KIND))
        assert found[key]["trials"] == row["trials"]
        assert found[key]["values"]["accuracy"][0] == pytest.approx(row["accuracy"])
        if row["cost"] is not None:
            assert found[key]["values"]["cost"][0] == pytest.approx(row["cost"])
    by_length = Counter[tuple[int, int]]()
    for row in rows_of(blocks["heat"]["lengths"]):
        by_length[row["asked"], row["kind"]] += row["trials"]
    assert by_length == {(row["asked"], row["kind"]): row["trials"] for row in found.values()}


def test_the_standings_are_those_of_the_report(folder, blocks, monkeypatch):
    monkeypatch.setattr(pairing, "MOST_IN_MEMORY", -1)  # as of a folder that is read query by query
    rankings = [ranking for ranking in counted(folder, standings_of).rankings if not ranking.alone]
    shown = [
        ranking
        for ranking in blocks["standings"]["rankings"]
        if not ranking["alone"] and ranking["kind"] is None
    ]
    assert len(rankings) == len(shown) > 0
    assert blocks["standings"]["rules"] == [*counted(folder, standings_of).rules]
    assert HARDEST in blocks["standings"]["rules"]
    for ranking, block in zip(rankings, shown, strict=True):
        assert block["problems"] == ranking.problems
        for line, row in zip(ranking.lines, block["lines"], strict=True):
            who = blocks["head"]["entrants"][row["asked"]]
            assert tuple(who[name] for name in ENTRANT) == (line.run, line.model, line.condition)
            assert (row["place"], row["value"], (row["low"], row["high"])) == (
                *(line.place, line.share),
                line.interval,
            )
            assert (row["lost"], row["cost_usd"]) == (line.accuracy.lost, line.cost_usd)
        leads = [pair for pair in ranking.pairs if pair.a == ranking.lines[0].name]
        assert [pair["difference"] for pair in block["pairs"]] == [pair.counts.difference for pair in leads]


def test_the_ranking_of_a_kind_is_that_of_the_report_on_its_task_alone(night, tmp_path):
    asked = [
        Asked(model=model, outcomes=outcomes, first=first, task=task)
        for model, first in (("a", 0), ("b", 5))
        for task, outcomes in (("add", "+++++"), ("sub", "+-+--" if model == "a" else "-----"))
    ]
    unpaired = folder_of(tmp_path / "unpaired", asked)
    for folder, suite in ((night, "llm_arithmetic"), (unpaired, "nupa")):
        head, standings = (counted(folder, BLOCKS[name]) for name in ("head", "standings"))
        kinds = {head["kinds"][ranking["kind"]]["task"]: ranking for ranking in of_kinds(standings, suite)}
        assert len(kinds) == (8 if suite == "llm_arithmetic" else 2)
        for task, block in [*kinds.items()][::3]:
            (ranking,) = counted(chosen(folder, suite=suite, task=task), standings_of).rankings
            assert (block["problems"], block["paired"]) == (ranking.problems, ranking.paired)
            lines = {(line.model, line.place, line.share, line.interval) for line in ranking.lines}
            assert lines == {
                (
                    head["entrants"][row["asked"]]["model"],
                    row["place"],
                    row["value"],
                    (row["low"], row["high"]),
                )
                for row in block["lines"]
            }


def of_kinds(standings, suite):
    return [
        ranking
        for ranking in standings["rankings"]
        if ranking["kind"] is not None and ranking["suite"] == suite
    ]


def test_every_entrant_has_its_length_at_a_half_of_every_kind_it_was_asked(folder, blocks):
    at_50 = {
        key: curve.length_at(0.5)
        for key, curve in curves_by(sql(folder, "FROM accuracy").to_pylist(), by=GROUP).items()
    }
    found = {named(blocks, row): row for row in blocks["breaks"]["halves"]}
    assert {*found} == {named(blocks, row) for row in rows_of(blocks["heat"]["lengths"])}
    assert {*at_50} <= {*found}
    for key, half in at_50.items():
        row = found[key]
        assert (row["low"], row["high"], row["longest"]) == (half.low, half.high, half.longest)
        assert (row["bound"] is None) == (half.why is not None)
        if not half.why:
            assert row["label"] == str(half).partition(" (")[0]
        if half.value is not None:
            assert row["at"] == half.value
    assert {found[key]["label"] for key in {*found} - {*at_50}} <= {"no reply"}


def test_points_of_curves_hold_all_trials_with_a_reply(blocks):
    replied = {
        named(blocks, row): row["trials"]
        for row in blocks["breaks"]["halves"]
        if row["trials"] >= LEAST_TRIALS
    }
    found = Counter[tuple[str, ...]]()
    for row in rows_of(blocks["breaks"]["rows"]):
        found[named(blocks, row)] += row["trials"]
        assert row["sort"] != "point" or row["trials"] >= LEAST_TRIALS
    assert found == replied


def test_every_row_of_a_block_is_of_somebody_and_all_is_json(blocks):
    head = blocks["head"]
    assert json.loads(encode_json(blocks)) is not None
    assert "NaN" not in encode_json(blocks).decode()
    for row in [*rows_of(blocks["breaks"]["rows"]), *blocks["heat"]["rows"]]:
        assert row["asked"] < len(head["entrants"])
        assert row["kind"] < len(head["kinds"])
    assert sum(entrant["trials"] for entrant in head["entrants"]) == head["trials_in_all"]
    assert len({entrant["short"] for entrant in head["entrants"]}) == len(head["entrants"])


def test_a_head_says_what_was_varied_and_whether_anybody_was_asked(night, simulated, tmp_path):
    head = counted(night, head_block)
    assert (head["mark"], head["varied"], len(head["entrants"])) == ("", ["condition"], 4)
    assert [entrant["short"] for entrant in head["entrants"]] == [
        entrant["name"] for entrant in head["entrants"]
    ]
    rehearsal = counted(simulated, head_block)
    assert rehearsal["mark"] == "SIMULATED"
    assert rehearsal["mark_words"].startswith("SIMULATED: these replies came from")
    both = counted([night, simulated], head_block)  # whose note begins with the name of one of them
    assert (both["mark"], "SIMULATED: these" in both["mark_words"]) == ("SIMULATED", True)
    asked = [Asked(model="m", outcomes="+-", effort=effort, condition=effort) for effort in ("low", "high")]
    efforts = counted(folder_of(tmp_path / "f", asked), head_block)
    assert efforts["varied"] == ["condition", "effort"]


# ── the command ──────────────────────────────────────────────────────────────────────────────


def test_the_command_writes_the_page_where_it_is_told_and_needs_no_extra(night, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)  # the library is ready made
    out = tmp_path / "sub" / "page.html"
    done = CliRunner().invoke(app, ["report", str(night), "--html", "--out", str(out)])
    assert done.exit_code == 0
    assert "all 504 trials" in done.stdout
    assert 1_000_000 < out.stat().st_size < 2_000_000


def test_options_that_do_not_go_together_are_refused(night, tmp_path):
    for options, words in (
        (["--out", str(tmp_path / "x.html")], "--html"),
        (["--html", "--by", "model"], "--by cannot be combined with --html"),
        (["--html", "--json"], "--json cannot be combined with --html"),
    ):
        done = CliRunner().invoke(app, ["report", str(night), *options])
        assert isinstance(done.exception, ConfigError)
        assert words in str(done.exception)


def test_two_models_whose_names_begin_and_end_alike_are_two_on_the_page(tmp_path):
    aliases = [f"{'a' * 40}{middle}{'z' * 40}" for middle in "12"]
    folder = folder_of(tmp_path / "f", [Asked(model=alias, outcomes="+" * 12) for alias in aliases])
    head = counted(folder, head_block)
    shorts = [entrant["short"] for entrant in head["entrants"]]
    assert len({*shorts}) == 2
    assert max(map(len, shorts)) <= 28


def test_a_place_that_cannot_be_written_is_refused_and_what_stood_there_is_kept(tmp_path):
    folder, place = folder_of(tmp_path / "f", [Asked(model="m", outcomes="+-")]), tmp_path / "place"
    place.mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_page(folder, place)
    assert list(place.iterdir()) == []


def test_the_library_is_what_would_be_bundled_now():
    made = run_path(str(Path(__file__).parents[2] / "data" / "page.py"))["made"]()
    assert writing.library() == made, "run `python data/page.py`"


def test_the_page_tells_by_which_test_models_are_ranked(tmp_path):
    ranked = {"paired": 0, "unpaired": 5}  # then the second model is asked other problems of that length
    for name, first in ranked.items():
        asked = [Asked(model="a", outcomes="+" * 5), Asked(model="b", outcomes="+-+-+", first=first)]
        folder = folder_of(tmp_path / name, asked)
        rules = " ".join(counted(folder, BLOCKS["standings"])["rules"])
        assert ("exact paired tests" in rules) == (name == "paired")
        assert ("unpaired" in rules) == (name == "unpaired")
