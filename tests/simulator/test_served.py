"""A served model charges what its limits count, and remembers what they did."""

import pyarrow.parquet as pq
import pytest

from asyncbench.simulator.answers import MadeUp, oracle
from asyncbench.simulator.limits import LIMIT_MODELS
from asyncbench.simulator.questions import Questions
from asyncbench.simulator.served import Served, Worsening
from asyncbench.simulator.settings import AnswerPace, Settings
from asyncbench.simulator.vendors import OWN, VENDORS
from asyncbench.simulator.wire import RefusedError, WireAnswer, WireRequest
from tests.sweep_files import problem_set


def served(**settings):
    source = MadeUp("oracle", oracle, Questions(()), seed=0)
    return Served("oracle", source, VENDORS[OWN], Settings(**settings), at_s=0)


def refused_s(model, at_s=0.0, *, characters=40, max_tokens=None, output_tokens=5):
    """Ask for ten tokens and be answered five, unless told otherwise; return the wait, None: admitted."""
    asked = WireRequest(
        model="oracle", question="", prompt_characters=characters, max_tokens=max_tokens, stream=False
    )
    answer = WireAnswer(
        model="oracle", text="", cut=False, input_tokens=characters // 4, output_tokens=output_tokens
    )
    try:
        model.admit(asked, answer, at_s)
    except RefusedError as refused:
        return refused.retry_after_s
    return None


@pytest.mark.parametrize(
    ("name", "admitted", "wait_s"),
    [
        ("token_bucket", 10, 0.1),
        ("gcra", 10, 0.1),
        ("fixed_window", 600, 60),
        ("sliding_window", 600, 60),
        ("quanta", 10, 1),
    ],
)
def test_requests_are_limited_by_the_model_that_was_chosen(name, admitted, wait_s):
    model = served(rpm=600, limit_model=name)
    waits_s = [refused_s(model) for _ in range(1000)]

    assert waits_s.count(None) == admitted
    assert waits_s[-1] == pytest.approx(wait_s)
    assert refused_s(model, waits_s[-1]) is None


def test_every_model_of_a_limit_is_tried_here():
    assert set(LIMIT_MODELS) == {"token_bucket", "gcra", "fixed_window", "sliding_window", "quanta"}


@pytest.mark.parametrize("burst_s", [0.5, 2])
@pytest.mark.parametrize("name", ["token_bucket", "gcra"])
def test_a_bucket_holds_the_burst_that_was_chosen(name, burst_s):
    model = served(rpm=600, limit_model=name, burst_s=burst_s)

    assert [refused_s(model) for _ in range(100)].count(None) == 10 * burst_s


@pytest.mark.parametrize(
    ("settings", "asked", "wait_s"),
    [
        ({}, {"max_tokens": 1000}, 0.15),  # 15 used of 100 a second
        ({"tokens_counted": "demanded"}, {"max_tokens": 80}, 0.8),
        ({"tokens_counted": "demanded"}, {"max_tokens": 8, "characters": 200}, 0.5),
        ({"tokens_counted": "demanded"}, {"characters": 200}, 0.5),
    ],
    ids=["used", "max_tokens", "a quarter of the characters", "no max_tokens"],
)
def test_tokens_are_counted_as_used_or_as_demanded(settings, asked, wait_s):
    model = served(tpm=6000, **settings)
    assert refused_s(model, characters=400, output_tokens=0) is None  # all that the bucket holds
    model_free_s = refused_s(model, 0.0, **asked)

    assert model_free_s == pytest.approx(wait_s)


@pytest.mark.parametrize(
    ("limits", "wait_s"),
    [({"input_tpm": 600}, 1), ({"output_tpm": 300}, 1), ({"input_tpm": 600, "output_tpm": 60}, 5)],
    ids=["input", "output", "both"],
)
def test_input_and_output_are_limited_each_by_itself(limits, wait_s):
    model = served(**limits)
    assert refused_s(model) is None

    # An output that is more than a second's worth waits for a full bucket after its debt.
    assert refused_s(model, 0.0) == pytest.approx(wait_s)


def test_what_limits_did_is_counted_second_by_second():
    model = served(rpm=120)
    for at_s in (5.0, 5.1, 5.2, 5.9, 9.0, 9.0):
        refused_s(model, at_s)

    cost = {"requests": 1, "tokens": 15, "input-tokens": 10, "output-tokens": 5}
    thrice, twice = ({what: count * amount for what, amount in cost.items()} for count in (3, 2))
    assert list(model.seconds.rows) == [
        {"at_s": 5, "accepted": 3, "rejected": 1, "charged": thrice},
        {"at_s": 9, "accepted": 2, "rejected": 0, "charged": twice},
    ]


def test_without_limits_seconds_are_counted_all_the_same():
    model = served()

    assert refused_s(model, 1.0) is None
    assert [row["accepted"] for row in model.seconds.rows] == [1]


@pytest.mark.parametrize(
    ("limit", "calls_per_s", "spoilt"),
    [
        ({"worse_above_rate": 20}, 20, False),
        ({"worse_above_rate": 20}, 25, True),
        ({"worse_in_flight": 0}, 1, False),  # the one that is being answered is not counted here
        ({}, 500, False),
    ],
)
def test_answers_worsen_above_a_rate_over_the_last_second(limit, calls_per_s, spoilt):
    worsening, pace = Worsening(), AnswerPace(**limit, worse_share=0.5)
    shares = [worsening.share(pace, 0, 10.0 + n / calls_per_s) for n in range(3 * calls_per_s)]
    assert shares[:20] == [0.0] * min(20, len(shares))
    assert set(shares[30:]) <= {0.5 if spoilt else 0.0}
    assert worsening.share(pace, 0, 60.0) == 0.0  # it has nothing to do any more


def test_answers_worsen_above_a_number_of_calls_in_flight():
    pace = AnswerPace(worse_in_flight=8)
    assert [Worsening().share(pace, calls, 0.0) for calls in (8, 9)] == [0.0, 0.2]


def test_a_share_of_questions_is_spoilt_and_always_the_same_ones(tmp_path):
    questions = Questions((problem_set(tmp_path, trials=3),))
    asked = [
        WireRequest(
            model="oracle", question=row["question"], prompt_characters=9, max_tokens=99, stream=False
        )
        for row in pq.read_table(tmp_path / "problems.parquet", columns=["question"]).to_pylist()
    ]
    source = MadeUp("oracle", oracle, questions, seed=0)
    right = [source.take(request).answer.text for request in asked]
    worse, again = ([source.take(request, 0.3).answer.text for request in asked] for _ in range(2))
    assert worse == again
    assert 0.2 < sum(a != b for a, b in zip(right, worse, strict=True)) / len(asked) < 0.4
