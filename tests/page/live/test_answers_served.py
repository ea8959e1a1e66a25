"""What a server of `asyncbench view` answers is what `report` and `sql` say."""

from collections import Counter
from urllib.parse import quote

import orjson
import pytest

from asyncbench import sql
from asyncbench.analysis.anatomy.counts import examined_in
from asyncbench.analysis.counting import counted
from asyncbench.page.answers import whole_trials
from asyncbench.page.blocks import BLOCKS
from asyncbench.store.rows import encode_json
from tests.page.conftest import unpacked
from tests.page.live.conftest import serving
from tests.processes import until

pytestmark = pytest.mark.long

DIFFER = "SELECT trial_id FROM grades GROUP BY ALL HAVING count(DISTINCT outcome) > 1"
MIDDLE = 1_767_225_600_000
TEXTS = "concat_ws('|', expected, answer, reply_text, reasoning_text, error_message)"
ASKED = "problem_id IN (SELECT problem_id FROM problems WHERE question ILIKE '%{0}%')"
SEARCH = f"{TEXTS} ILIKE '%{{0}}%' OR starts_with(trial_id, '{{0}}') OR {ASKED}"
DIFFERS_FROM_MIDDLE = (
    "problem_id IN (SELECT problem_id FROM trials WHERE model IN ('large', 'middle') AND condition = 'plain'"
    " GROUP BY ALL HAVING bool_or(outcome = 'correct') <> bool_and(outcome = 'correct'))"
)
QUERIES = {
    "": "true",
    "outcome=wrong": "outcome = 'wrong'",
    "outcome=wrong&outcome=failed": "outcome IN ('wrong', 'failed')",
    "from=5&to=7": "length BETWEEN 5 AND 7",
    "from=8": "length >= 8",
    "to=2&outcome=correct": "length <= 2 AND outcome = 'correct'",
    **{
        f"text={quote(text)}": SEARCH.format(text) for text in ("77", "E1", "would RATHER", "busy", "the two")
    },
    "asked=0&versus=1": f"model = 'large' AND {DIFFERS_FROM_MIDDLE}",
    "disagree=1": f"trial_id IN ({DIFFER})",
    "since={middle}": "epoch_ms(finished_at) >= {middle}",
    "until={middle}": "epoch_ms(finished_at) <= {middle}",
}


def ids_by_sql(folders, where):
    rows = sql(folders, f"SELECT trial_id FROM trials WHERE {where}")  # noqa: S608  ours
    return Counter(rows["trial_id"].to_pylist())


def ids_served(server, query):
    until(lambda: server.get(f"/trials?{query}").status != 202)  # errors are examined, graders compared
    until(lambda: server.get(f"/trials?{query}").value["searched"] == 1)
    first = server.get(f"/trials?{query}").value
    pages = [server.get(f"/trials?{query}&page={n}").value for n in range(1, first["pages"] + 1)]
    ids = [row["id"] for page in pages for row in page["rows"]]
    assert len(ids) == first["found"]
    assert all(len(page["rows"]) <= 50 for page in pages)
    return Counter(ids)


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_a_block_is_that_of_the_file_to_mail(live, blocks, name):
    served = unpacked(live.block(name).value)
    expected = orjson.loads(encode_json(blocks[name]))
    if name == "head":
        assert served["live"] is True
        served |= {"live": False, "made_at": expected["made_at"]}
    assert served == expected


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_what_sql_finds(live, night, query):
    middle = sql(night, "SELECT median(epoch_ms(finished_at))::BIGINT AS at FROM trials")["at"][0].as_py()
    where = QUERIES[query].format(middle=middle)
    assert ids_served(live, query.format(middle=middle)) == ids_by_sql(night, where)


def test_every_entrant_and_kind_has_its_own_trials(live, night):
    head = live.block("head").value
    who, what = ("run", "model", "condition"), ("suite", "task", "variant", "representation")
    rows = sql(night, f"SELECT {', '.join((*who, *what))} FROM trials").to_pylist()  # noqa: S608  ours
    counts = Counter(tuple(row.values()) for row in rows)
    for asked, entrant in enumerate(head["entrants"]):
        for kind, about in enumerate(head["kinds"]):
            group = (*(entrant[name] for name in who), *(about[name] for name in what))
            page = live.get(f"/trials?asked={asked}&kind={kind}").value
            assert page["found"] == counts[group]
            assert {(row["asked"], row["kind"]) for row in page["rows"]} <= {(asked, kind)}


def test_errors_are_found_by_kind_and_by_place(live, night):
    live.block("loads")
    found = counted(night, lambda views: [*examined_in(views).values()])
    answers = [answer for group in found for answer in group.answers]
    kind = Counter(answer.kind for answer in answers).most_common(1)[0][0]
    assert ids_served(live, f"error={kind}") == Counter(a.trial_id for a in answers if a.kind == kind)
    for end, name in (("first", "wrong_from_left"), ("last", "wrong_from_right")):
        wanted = Counter(a.trial_id for a in answers if 2 in getattr(a, name))
        assert ids_served(live, f"end={end}&position=2") == wanted
    assert "examined" in live.get(f"/trials?error={kind}").value["note"]


def test_a_trial_and_a_question_are_shown_whole(live, night):
    row = live.get("/trials?outcome=wrong").value["rows"][0]
    (expected,) = counted(night, lambda views: whole_trials(views, [row["id"]]))
    shown = orjson.loads(encode_json(expected)) | {"answers": 4, "entrants": 4}
    assert live.get(f"/trial/{row['id']}").value == shown
    assert expected["grades"]
    asked = live.get(f"/question/{row['question']}").value
    answers = asked["trials"]
    where = f"problem_id = '{row['question']}'"
    assert Counter(answer["id"] for answer in answers) == ids_by_sql(night, where)
    assert asked["of"] == len(answers) > 1
    assert live.get("/trial/nobody").status == 404
    assert live.get("/question/nobody").value == {"of": 0, "trials": []}
    assert live.get("/trials?question=nobody").value["found"] == 0


def test_beyond_the_last_page_is_the_last(live):
    last = live.get("/trials").value["pages"]
    assert last > 1
    assert live.get("/trials?page=999").value == live.get(f"/trials?page={last}").value


@pytest.mark.parametrize("query", ["outcome=brilliant", "from=x", "asked=one"])
def test_a_query_that_means_nothing_is_refused(live, query):
    assert live.get(f"/trials?{query}").status == 400


def test_a_block_is_sent_again_only_when_it_has_changed(live):
    block = live.block("heat")
    tag = block.headers["ETag"]
    again = live.get("/blocks/heat", **{"If-None-Match": tag})
    assert (again.status, again.body) == (304, b"")
    assert "no-cache" in block.headers["Cache-Control"]  # a browser that keeps nothing asks for no tag
    assert live.get("/blocks/nothing").status == 404
    assert set(live.get("/blocks/specs").value) == {"specs", "themes"}


def test_several_folders_and_filters_are_those_of_report(night, simulated):
    folders = [night, simulated]
    with serving(*folders, "--where", "length > 8", "--models", "large,small") as server:
        head = server.block("head").value
        assert {entrant["folder"] for entrant in head["entrants"]} == {"night", "rehearsal"}
        where = "length > 8 AND (starts_with(model, 'large') OR starts_with(model, 'small'))"
        assert ids_served(server, "") == ids_by_sql(folders, where)
        model = head["entrants"][0]["model"]
        assert ids_served(server, "asked=0") == ids_by_sql(folders, f"{where} AND model = '{model}'")
        row = server.get("/trials?asked=1").value["rows"][0]
        whole = server.get(f"/trial/{quote(row['id'])}").value
        assert {name: whole[name] for name in row} == row
        assert whole["asked"] == 1
        for words in (row["id"], row["id"].partition("/")[2]):
            assert row["id"] in ids_served(server, f"text={quote(words)}")
        until(lambda: server.get("/now").value["models"])
        models = {entrant["model"] for entrant in head["entrants"]}
        assert models <= {model["model"] for model in server.get("/now").value["models"]}
