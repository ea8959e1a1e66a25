"""Drawn nights: faults, deaths and changes of mind at random, then a calm in which all must end well.

Each night is played from its seed alone, with a simulator and a clock of its own.
"""

import asyncio
import math
import os
import random
import signal
import tempfile
from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from asyncbench import read_attempts
from asyncbench.lanes.batches import context, lane
from asyncbench.lanes.batches.ledger import BatchLedger, Step
from asyncbench.planning.preflight import open_sources, sources_of
from asyncbench.planning.trials import sources_by_model
from asyncbench.run import opening, preparing
from asyncbench.run.options import RunOptions
from asyncbench.run.summary import Exit
from asyncbench.run.sweep_run import run_with_options
from asyncbench.simulator.batches.settings import KINDS, BatchFaultKind as Kind, BatchSettings, FaultName
from tests.servers.vendor_batches import VendorFault
from tests.sweep_files import Said, entry
from tests.world.batches import answers_in
from tests.world.cuts import CutError, cutting
from tests.world.direct import Simulated, Waiting

HOUR_S, DAY_S = 3600.0, 86_400.0
WAYS = (("simulated", "chat"), ("simulated", "responses"), ("simulated-anthropic", "messages"))
SIZES = (3, 5, 8)  # trials of a night
IDLE_S = 4 * HOUR_S  # the longest wait between two calls is an hour
STORM_S = 1.3 * DAY_S  # then a run that has not ended dies
CALLS = (
    "create",
    "upload",
    "uploaded",
    "recent",
    "retrieve",
    "download",
    "read",
    "delete_input",
    "custom_ids",
)
LINES = (
    *("prepared", "uploading", "uploaded", "submitting", "submitted", "refused", "ended", "downloading"),
    *("collected", "cleaning", "cleaned", "fencing", "fenced", "never_created", "struck"),
)
OTHER_VALUES = {
    VendorFault.CREATE_LATE: ("5", "200", "850"),
    VendorFault.CREATE_400: ("billing_hard_limit_reached", "something_odd"),
    Kind.FAILED: ("model_not_found", "invalid_json_line@2", "duplicate_custom_id@1", "empty_file"),
    VendorFault.UNLISTED: ("30", "120", "700"),
    VendorFault.UNKNOWN: ("30", "120", "3000"),
    Kind.EXPIRES: ("0", "0.3", "0.9"),
    Kind.SLOW_START: ("14400", "90000"),
    VendorFault.LINE_LONG: ("20000",),
}
OPENAIS = frozenset(  # faults that Anthropic's batches cannot have
    {
        VendorFault.UPLOAD_DROPPED,
        VendorFault.UPLOAD_REPLY_DROPPED,
        VendorFault.UPLOAD_500,
        Kind.FAILED,
        VendorFault.FAILED_UNEXPLAINED,
        VendorFault.POOL_FULL,
        VendorFault.POOL_HELD,
        VendorFault.POOL_COUNTS_REPLIES,
        VendorFault.TOKEN_LIMIT_AT_CREATE,
        VendorFault.LINE_MISSING,  # each request has one line
        VendorFault.LINE_LOST,
        VendorFault.WITHOUT_COMMAS,
        VendorFault.INPUT_NEEDED,
        Kind.EMPTY_IDS,
        VendorFault.OUTPUT_LATE,
    }
)
# All faults, in the order from which nights are drawn.
ORDER = """
upload_dropped upload_reply_dropped upload_500 create_dropped create_reply_dropped create_late create_500
create_429 create_400 create_twice cancel_500 unlisted unknown unknown_again results_unknown skipped
list_behind failed failed_unexplained pool_full pool_held pool_counts_replies token_limit_at_create
without_commas slow_start stuck_validating stuck_finalizing expires never_expires input_needed cancel_slow
cancel_completes shuffled empty_ids empty_error_file output_late file_expired results_elsewhere
content_502 content_cut content_cut_in_line content_reset content_wrong_length line_too_long line_400
line_429 line_no_quota line_500 line_504 line_expired line_canceled line_status_0 line_error_200
line_missing line_lost line_twice line_foreign line_broken line_separators line_long
"""
FAULTS = [KINDS[name] for name in ORDER.split()]
FAULTS_OF: dict[str, list[FaultName]] = {
    "simulated": [kind for kind in FAULTS if kind is not VendorFault.RESULTS_ELSEWHERE],
    "simulated-anthropic": [kind for kind in FAULTS if kind not in OPENAIS],
}
ENDED = frozenset({Step.CLEANED, Step.NEVER_CREATED, Step.GIVEN_UP})
PRICE = {"input": 1.0, "output": 5.0, "batch": 0.5}


@dataclass(kw_only=True)
class Plan:
    """What is drawn of a night before it begins."""

    seed: int
    vendor: str
    api: str
    many: int
    batch: dict[str, Any]
    play: dict[str, Any]  # of the simulator
    faults: tuple[str, ...]
    storms: list["Storm"]
    budget_usd: float | None


@dataclass(kw_only=True)
class Storm:
    """One run that comes before the calm."""

    limit: int
    cut: str | None = None  # the point at which the process dies
    dies_s: float = STORM_S  # or after so long
    leaves_s: float | None = None  # Ctrl-C after so long
    keys: dict[str, Any] = field(default_factory=dict)  # of the sweep, for this run
    alias: str | None = None  # the model's, for this run
    wrong_s: float = 0.0  # by which the computer's clock is ahead
    tears: bool = False  # the last line of the ledger, after its death


def drawn(seed):
    """Draw a night."""
    draw = random.Random(f"batches/{seed}")
    vendor, api = draw.choice(WAYS)
    many = draw.choice(SIZES)
    kinds = draw.sample(FAULTS_OF[vendor], draw.choice((0, 1, 1, 2, 2, 3, 4, 6)))
    budget_usd = draw.choice((None, None, 0.0015, 0.004, 1.0))
    return Plan(
        seed=seed,
        vendor=vendor,
        api=api,
        many=many,
        batch={
            "max_requests": draw.randint(2, 6),
            "rounds": draw.choice((1, 2, 2, 9)),
            "fallback": draw.choice(("realtime", "none", "none")),
            **draw.choice(
                ({}, {}, {"max_bytes": draw.randint(500, 1500)}, {"enqueued_tokens": draw.randint(60, 400)})
            ),
        },
        play={
            "latency_s": draw.choice((50, 50, 600, 1800, 20_000, 100_000)),
            "latency_sigma": draw.choice((0, 0, 1)),
            **draw.choice(
                (
                    {},
                    {},
                    {},
                    {"enqueued_tokens": draw.randint(60, 400)},
                    {"waiting_requests": draw.randint(4, 12)},
                    {"creates_per_hour": draw.randint(1, 3)},
                )
            ),
        },
        faults=tuple(_fault(draw, kind) for kind in kinds),
        storms=[_storm(draw, many) for _ in range(draw.choice((0, 1, 1, 1, 2, 3)))],
        budget_usd=budget_usd,
    )


def _fault(draw, kind):
    value = draw.choice((kind.usual, *OTHER_VALUES.get(kind, ())))
    places = ",".join(map(str, sorted(draw.sample(range(1, 7), draw.randint(1, 3)))))
    rate = f"{draw.uniform(0, 0.5):.3f}"
    which = (
        f"#{places}" if kind is VendorFault.SKIPPED or draw.random() < 0.5 else rate
    )  # a list skips an entry once
    return f"{kind}={which}:{value}" if value else f"{kind}={which}"


def _storm(draw, many):
    what = draw.choice((*CALLS, *(f"line {step}" for step in LINES)))
    when = "before" if what == "read" else draw.choice(("before", "after"))
    end = draw.choice(
        (
            *(4 * [{"cut": f"{when} {what} {draw.randint(1, 4)}"}]),
            {"dies_s": draw.expovariate(1 / HOUR_S)},
            {"leaves_s": draw.expovariate(1 / HOUR_S)},
            {},
        )
    )
    keys = draw.choice(
        (*(5 * [{}]), {"mode": "realtime"}, {"batch": {"max_requests": 3, "on_doubt": "wait"}})
    )
    return Storm(
        limit=draw.choice((many, many, draw.randint(1, many))),
        keys=keys,
        alias=draw.choice((*(7 * [None]), "renamed")),
        wrong_s=draw.choice((*(6 * [0.0]), -HOUR_S, HOUR_S)),
        tears=draw.random() < 0.2,
        **end,
    )


class HangError(Exception):
    """A run would not end by itself, and takes no step."""


class Leaving(Waiting):
    """A clock that presses Ctrl-C, or lets the process die, after some time."""

    def __init__(self, simulated, *, wrong_s=0.0, leaves_s=None, dies_s=None, cutter=None):
        super().__init__(simulated, wrong_s=wrong_s)
        self._began, self._leaves_s, self._dies_s, self._cutter = self._clock.now(), leaves_s, dies_s, cutter
        self._points, self._heard_s = 0, 0.0

    async def sleep(self, seconds):
        await super().sleep(seconds)
        passed_s = self._clock.now() - self._began
        if len(self._cutter.points) > self._points:
            self._points, self._heard_s = len(self._cutter.points), passed_s
        if passed_s - self._heard_s > IDLE_S:
            raise HangError("a run goes on though it does nothing")
        if self._leaves_s is not None and passed_s >= self._leaves_s:
            self._leaves_s = None
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0)
        if self._dies_s is not None and passed_s >= self._dies_s:
            self._cutter.cut = True
            raise CutError


async def inline(call, *given, **named):
    """Do what `asyncio.to_thread` does, in this thread: a night is the same whenever it is played."""
    await asyncio.sleep(0)
    return call(*given, **named)


def _without_needless(patch):
    """Leave out what costs time and is not about batches; nights over HTTP have all of it."""

    def opened(sweep, models):
        place = next(iter(sources_of(sweep, models))).place
        if place not in _OPENED:
            _OPENED[place] = open_sources(sweep, models)
        return _OPENED[place]

    patch.setattr(asyncio, "to_thread", inline)
    patch.setattr(opening, "open_sources", opened)
    patch.setattr(
        preparing, "sets_in_folder", lambda sweep, models, sets, _: sources_by_model(sweep, models, sets)
    )
    patch.setattr(preparing, "write_forecast", lambda _run: None)
    patch.setattr(preparing, "describe", lambda *_: None)
    patch.setattr(os, "posix_fallocate", lambda *_: None)  # no reserve for a full disk


_OPENED: dict[str, Any] = {}


class DrawnNight:
    """A night that is played."""

    def __init__(self, plan, problems, folder):
        self.plan, self.out = plan, folder / "out"
        folder.mkdir(parents=True, exist_ok=True)
        self.simulated = Simulated(
            problems, folder / "server", batch=BatchSettings(**plan.play, faults=plan.faults)
        )
        self.screen = Said()
        self.raw = {
            "name": "night",
            "problems": [str(problems)],
            "models": [],
            "out": str(self.out),
            "mode": "batch",
            "batch": {**plan.batch, "on_doubt": "wait"},
            **({} if plan.budget_usd is None else {"budget_usd": plan.budget_usd}),
        }
        self.told = []  # what happened
        self._over_http = False

    def run(self, *, alias=None, cutter=None, limit=None, retry=(), keys=(), **clock):
        """Run the sweep once."""
        server: Any = self.simulated
        model = entry(
            server,
            f"{self.plan.vendor}/noisy",
            max_tokens=20,
            price=PRICE,
            **({"alias": alias} if alias else {}),
        )
        if self.plan.vendor == "simulated":
            model["api"] = self.plan.api
        raw = {**self.raw, "models": [model], **dict(keys)}
        options = RunOptions(
            limit=limit or self.plan.many, retry=retry, clock=Leaving(self.simulated, cutter=cutter, **clock)
        )
        with nullcontext() if self._over_http else self.simulated.reached():
            return asyncio.run(run_with_options(raw, options, env={}, screen=self.screen))

    def play(self, *, over_http=False):
        """Play all storms, then the calm; raises AssertionError where a rule was broken."""
        random.seed(self.plan.seed)
        self._over_http = over_http
        with ExitStack() as stack:
            patch = stack.enter_context(pytest.MonkeyPatch.context())
            patch.setattr(context, "_OLD_S", HOUR_S)  # fewer polls of old batches
            patch.setattr(lane, "RETRY_S", 900.0)
            if over_http:
                stack.enter_context(self.simulated.listening())
            else:
                _without_needless(patch)
            for storm in self.plan.storms:
                self._play(storm)
                self._check_money()
            self._calm()
        self._check()

    def _play(self, storm):
        with cutting(storm.cut) as cutter:
            try:
                summary = self.run(
                    limit=storm.limit,
                    alias=storm.alias,
                    keys=storm.keys,
                    cutter=cutter,
                    wrong_s=storm.wrong_s,
                    leaves_s=storm.leaves_s,
                    dies_s=storm.dies_s,
                )
                self.told.append(f"ended: {summary.exit.name}")
            except (CutError, ExceptionGroup):
                if not cutter.cut:
                    raise
                self.told.append(f"died: {cutter.points[-1:]}, {cutter.at}")
            if cutter.cut and storm.tears:
                self._tear()

    def _tear(self):
        """Take a part of the last line from the ledger: the power failed while it was written."""
        segments = sorted((self.out / "batches" / "ledger").glob("*.wal"))
        if segments and not (written := segments[-1].read_bytes()).endswith(b"torn"):
            segments[-1].write_bytes(written + b'12345678 {"part":"torn')

    def _calm(self):
        """Let nothing go wrong any more, and run until nothing is open."""
        quiet = BatchSettings(latency_s=self.plan.play["latency_s"] % 80_000)
        service = self.simulated.service
        service.settings = replace(service.settings, batch=quiet)
        for batch in [*service.storage.batches.values()]:
            settings = replace(batch.settings, faults=())
            met: dict[str, str] = {**batch.met}
            met.pop(VendorFault.INPUT_NEEDED, None)
            service.storage.keep(replace(batch, settings=settings, met=met))
        if self.plan.budget_usd is not None:
            self.raw["budget_usd"] = 10.0
        if self._ends() or self._ends(later_s=32 * DAY_S):
            return
        unknown = [part for part in self.parts if part.in_doubt]
        assert unknown, "something is open of which there is no doubt"
        made = self._made()
        told = {
            custom_id[32:]
            for part in unknown
            for batch in made.get(part.key, ())
            for custom_id in self.simulated.told(batch)
        }
        assert not told & {part.key for part in unknown}, (
            "a batch of a part in doubt exists, and was not found"
        )
        self.raw["batch"] |= {"on_doubt": "resubmit"}
        assert self._ends(), "something is open though nobody waits"

    def _ends(self, *, later_s=0.0):
        """Run until all is complete, or no run changes anything; whoever has open parts is asked."""
        self.simulated.clock.forward(later_s)
        for _ in range(3):
            renamed = any(part.alias == "renamed" and part.step not in ENDED for part in self.parts)
            for alias in ["renamed", None] if renamed else [None]:
                with cutting() as cutter:
                    summary = self.run(alias=alias, dies_s=5 * DAY_S, cutter=cutter, retry=("failed",))
                self.told.append(f"calm: {summary.exit.name}")
            if summary.exit is Exit.COMPLETE:
                return True
            still = [part for part in self.parts if part.open]
            if still and all(part.in_doubt for part in still):
                return False
        return False

    # ── what must hold ───────────────────────────────────────────────────────────────────────

    @property
    def parts(self):
        return list(BatchLedger(self.out).parts.values())

    @property
    def attempts(self):
        return read_attempts(self.out).to_pylist()

    def _made(self):
        """By the key of a part: the batches that were made of it."""
        made: dict[str, Any] = {}
        for batch in self.simulated.batches():
            made.setdefault(self.simulated.key_of(batch), []).append(batch)
        return made

    def _billed(self):
        """By trial and key: whether the answer that is billed can be read."""
        billed: dict[tuple[str, str], bool] = {}
        for batch in self.simulated.batches():
            told = self.simulated.told(batch)
            for line in self.simulated.executed(batch):
                if line["billed"]:
                    place = line["custom_id"][:32], line["custom_id"][32:]
                    billed[place] = billed.get(place, False) or line["custom_id"] in told
        return billed

    def _spent(self):
        """Return what is billed by now, USD; a batch that the vendor made twice counts once."""
        spent = {}
        for batch in self.simulated.batches():
            for line in self.simulated.executed(batch):
                usd = line["input_tokens"] * PRICE["input"] + line["output_tokens"] * PRICE["output"]
                spent[line["custom_id"]] = usd * PRICE["batch"] * 1e-6
        real = (row["cost_usd"] or 0.0 for row in self.attempts if row["mode"] == "realtime")
        return math.fsum([*spent.values(), *real])

    def _check_money(self):
        if self.plan.budget_usd is not None and self.out.exists():
            assert self._spent() <= self.plan.budget_usd + 1e-9, "more was spent than the budget"

    def _check(self):
        assert not self.simulated.broken
        self.simulated.clock.forward(5 * DAY_S)
        billed, rows = self._billed(), self.attempts
        assert self.answers == undisturbed(self.simulated.problems, self.plan), "the answers differ"
        calls = Counter((row["trial_id"], row["attempt"]) for row in rows)
        assert set(calls.values()) == {1}, "an attempt stands twice"
        real = Counter(row["trial_id"] for row in rows if row["mode"] == "realtime" and row["status"] == "ok")
        paid = real + Counter(trial_id for (trial_id, _), told in billed.items() if told)
        assert set(paid.values()) <= {1}, "an answer that can be read was paid twice"
        assert paid.keys() <= self.answers.keys()
        lost = {trial_id for (trial_id, _), told in billed.items() if not told}
        assert self.answers.keys() <= paid.keys() | lost, "an answer that nobody gave"
        known = math.fsum(row["cost_usd"] or 0.0 for row in rows)
        assert known <= self._spent() + 1e-9, "more is written down than was billed"
        if not lost:
            assert known == pytest.approx(self._spent()), "less is written down than was billed"
        assert not [part for part in self.parts if part.open]
        left = {path.suffix for path in (self.out / "batches").glob("*.*")} - {".manifest", ".strange"}
        assert not left, "files are left"

    @property
    def answers(self):
        return answers_in(self.out)


_UNDISTURBED: dict[tuple[str, str, int], Any] = {}


def undisturbed(problems, plan):
    """Return the answers that a night without any fault brings, in real time."""
    place = plan.vendor, plan.api, plan.many
    if place not in _UNDISTURBED:
        with tempfile.TemporaryDirectory() as folder:
            night = DrawnNight(replace(plan, faults=(), storms=[], budget_usd=None), problems, Path(folder))
            night.run(keys={"mode": "realtime"})
            _UNDISTURBED[place] = night.answers
        assert len(_UNDISTURBED[place]) == plan.many
    return _UNDISTURBED[place]
