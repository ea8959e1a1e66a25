"""A results folder whose every foreign text tries to be more than text."""

from dataclasses import replace
from pathlib import Path

from asyncbench.errors import ErrorKind, ProviderError
from asyncbench.problems.making import write_problems
from asyncbench.records import Grade, Outcome, Problem, Reply, Result, Trial
from asyncbench.store.folder import Store
from tests.page.made import result_of, trial_of
from tests.store.made import AT, keep, with_calls

ATTACKS = {
    "script": "<script>window.hacked = 1</script>",
    "end": "</script><script>window.hacked = 2</script>",
    "comment": "<!-- <script> --><![CDATA[",
    "handler": "<img src=x onerror='window.hacked = 3'>",
    "svg": "<svg onload='window.hacked = 4'><style>*{display:none}</style>",
    "frame": "\"'><iframe srcdoc='<script>parent.hacked = 5</script>'></iframe>",
    "link": '<a href="javascript:window.hacked = 6">[x](javascript:alert(1))</a>',
    "places": "{{data}} {{scripts}} ${window.hacked = 7} \\u003cscript>",
    "escapes": "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "direction": "12\u202e34\u2066 5\u2069\u200f\u061c",
    "unseen": "nul\x00 soft\u00ad wide\ufeff line\u2028 tag\U000e0041",
    "surrogate": "half \ud800 of a pair",
}
LONG = "9" * 1_000_000


def make_hostile(folder: Path) -> Path:
    with Store.open(folder, sweep="night") as store:
        texts = {**ATTACKS, "long": LONG}
        trials = [_trial(n, name, text) for n, (name, text) in enumerate(texts.items())]
        for trial, text in zip(trials, texts.values(), strict=True):
            keep(store, *with_calls(_result(trial, text)))
        store.write_manifest({})
    write_problems((trial.problem for trial in trials), folder / "problems" / "custom.parquet")
    return folder


def _trial(n: int, name: str, text: str) -> Trial:
    problem = Problem(
        problem_id=f"{n:032x}",
        suite="custom",
        task=_storable(text[:200]),
        representation="text",
        length=n,
        operands=(),
        question=f"{name}: {_storable(text)}",
        expected=_storable(text),
        answer_type="text",
        extra='{"grader": "exact"}',
    )
    trial = trial_of(n, problem, model=_storable(text[:60]))
    return replace(trial, trial_id=f"{n:032x}")


def _storable(text: str) -> str:
    """Half a pair cannot be in a problem file; a model can still send it."""
    return text.encode("utf-8", "replace").decode()


def _result(trial: Trial, text: str) -> Result:
    headline = Grade(
        grader="exact",
        grader_version=1,
        headline=True,
        answer=text + "!",
        classification=text[:100],
        reason=text[:100],
        outcome=Outcome.WRONG,
        exact_match=False,
        flags=(text[:100],),
    )
    reply = Reply(text=text, reasoning=text, finish_reason=text[:100], model_served=text[:100])
    graded = replace(result_of(trial, reply, cost_usd=0.0, at=AT), grades=(headline,))
    if int(trial.trial_id, 16) % 2 == 0:
        return graded
    failed = replace(headline, answer=None, outcome=Outcome.FAILED)
    return replace(
        graded, reply=None, error=ProviderError(ErrorKind.BAD_REQUEST, text[:5000]), grades=(failed,)
    )
