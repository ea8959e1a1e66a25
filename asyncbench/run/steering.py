"""Steer a run while it goes on: pause it, resume it, set other limits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, Final

from asyncbench.engine.scheduler import AnyLane, Scheduler, SteeredLane, note_change
from asyncbench.errors import ConfigError
from asyncbench.files import quoted
from asyncbench.planning.preflight import open_files_for
from asyncbench.records import Limits, waits
from asyncbench.run.control import KINDS, Peer, Talk, checked_limits
from asyncbench.run.lanes import loads_in
from asyncbench.run.picture import what_holds
from asyncbench.run.state import Run

UNITS: Final = {
    "requests": "rpm",
    "tokens": "tpm",
    "input_tokens": "input_tpm",
    "output_tokens": "output_tpm",
}
ALMOST_ALL: Final = 0.999  # of a limit: told ones are compared with it


class Steering:
    """Answers requests about one run."""

    def __init__(self, run: Run, scheduler: Scheduler) -> None:
        self._run, self._scheduler = run, scheduler
        self._paused_by = ""  # whom, and when; empty: it is not

    def answer(self, request: Talk, peer: Peer) -> Talk:
        """Do what a request says; return what was done, and the state of each lane and each worker.

        Raises:
            ConfigError: it cannot be done.
            LookupError, AttributeError, TypeError: it is no request.
        """
        if request["do"] != "look" and (self._scheduler.stopped or not self._scheduler.going):
            raise ConfigError("the run is stopping. It sends nothing new any more")
        handlers = {"pause": self._pause, "resume": self._resume, "set": self._set}
        notes = () if request["do"] == "look" else handlers[request["do"]](request, peer)
        return {
            "paused": bool(self._paused_by),
            "notes": list(notes),
            "lanes": [_lane_status(lane) for lane in self._scheduler.going],
            "workers": [asdict(worker) for worker in self._run.workers.counts()],
        }

    # ── pausing

    def _pause(self, _: Talk, peer: Peer) -> Sequence[str]:
        """Send nothing new; return what goes on all the same, and how to resume."""
        if self._paused_by:
            return (f"It is paused already, {self._paused_by}.",)
        self._log(self._scheduler.going, "pause", peer)
        self._paused_by = f"by {peer.name} at {datetime.now(UTC):%H:%M:%S} UTC"
        self._heed(paused=True)

        # A model may have two lanes: one collects its batches.
        lanes = self._scheduler.going
        by_alias = {client.model.alias: client.counters for lane in lanes for client in lane.clients}
        in_flight = sum(counters.in_flight for counters in by_alias.values())
        in_batches = sum(counters.in_batches for counters in by_alias.values())
        calls = f" {in_flight:,} calls in flight end." if in_flight else ""
        notes = [f"Paused: nothing new is sent.{calls}"]
        if in_batches:
            notes.append(
                f"Batches go on at the provider, with {in_batches:,} trials. Their results are collected."
            )
        if any(lane.interrupted for lane in loads_in(lanes)):
            notes.append(
                "The step under way is incomplete. It is measured again, as a whole, when you resume."
            )
        if self._run.within_s is not None:
            notes.append("Its deadline still ends it.")
        return [*notes, f"To go on: asyncbench resume {quoted(self._run.sweep.out)}"]

    def _resume(self, _: Talk, peer: Peer) -> Sequence[str]:
        if not self._paused_by:
            return ("It is not paused.",)
        self._log(self._scheduler.going, "resume", peer)
        since, self._paused_by = self._paused_by, ""
        self._heed(paused=False)
        return (f"It goes on. It was paused {since}.",)

    def _heed(self, *, paused: bool) -> None:
        """Have every lane wait, or go on."""
        for lane in self._scheduler.lanes:
            for client in lane.clients:
                client.counters.paused = paused
                if client.counters.waits_for == waits.RESUME:  # until its lane wakes up
                    client.counters.waits_for = None
        for lane in self._scheduler.going:
            lane.apply_pause()

    # ── limits

    def _set(self, request: Talk, peer: Peer) -> Sequence[str]:
        """Set limits for one model, or for all of them; return what changed."""
        limits, alias, going = checked_limits(request["limits"]), request["model"], self._scheduler.going
        aliases = dict.fromkeys(client.model.alias for lane in going for client in lane.clients)
        if alias is not None and alias not in aliases:
            raise ConfigError(f"model {alias!r} is not asked now. This run asks {', '.join(aliases)}")
        chosen = [
            lane
            for lane in going
            if alias is None or alias in {client.model.alias for client in lane.clients}
        ]
        lanes = [lane.steered for lane in chosen if lane.steered is not None]
        if not lanes:
            why = (
                "calls of a load go when they are due" if loads_in(chosen) else "batches have no such limits"
            )
            raise ConfigError(f"{', '.join(lane.name for lane in chosen)}: no limit can be set, for {why}")

        # Nothing is changed unless all lanes together find enough open files.
        new_limits = [(lane, _changed_limits(lane, limits)) for lane in lanes]
        steered = (lane.steered for lane in going if lane.steered is not None)
        others = (lane.limits for lane in steered if lane not in lanes)
        calls = [limits.most_in_flight for limits in (*others, *(limits for _, limits in new_limits))]
        open_files_for(sum(calls))
        notes = [note for lane, limits in new_limits for note in self._apply(lane, limits, peer)]
        unlimited = [lane.name for lane in chosen if lane.steered is None]
        return [*notes, *(f"{name}: left as it is, for it has no such limits." for name in unlimited)]

    def _apply(self, lane: SteeredLane, limits: Limits, peer: Peer) -> Iterator[str]:
        """Set the limits of one lane, and yield what changed."""
        before, configured = lane.limits, lane.clients[0].model.limits
        names = [name for name in KINDS if getattr(limits, name) != getattr(before, name)]
        changes = [f"{name} {_limit_text(limits, name)}, was {_limit_text(before, name)}" for name in names]
        if names:
            self._log([lane], "; ".join(changes), peer)
            lane.set_limits(limits)
        aliases = [client.model.alias for client in lane.clients]
        title = lane.name if aliases == [lane.name] else f"{lane.name} ({', '.join(aliases)})"
        yield f"{title}: {'; '.join(changes) or 'no change'}"

        # The new limits beside those of the sweep, and beside what the provider reports.
        for name in names:
            of_sweep, now = getattr(configured, name), getattr(limits, name)
            if of_sweep is not None and (now is None or now > of_sweep):
                yield f"{lane.name}: that is more than the {name} of your sweep, {of_sweep:,.10g}."
        for what, in_force in lane.limits_in_force().items():
            limit = limits.per_minute[what]
            if UNITS[what] in names and limit and in_force < limit * limits.fraction * ALMOST_ALL:
                amount = f"{in_force:,.10g} {UNITS[what]}"
                yield f"{lane.name}: the provider reports {amount}; the lower limit holds."

    # ── log of changes

    def _log(self, lanes: Sequence[AnyLane], what: str, peer: Peer) -> None:
        """Write a change down in the table `lanes`, and show it."""
        names, now = ", ".join(lane.name for lane in lanes), datetime.now(UTC)
        for lane in lanes:
            note_change(lane, f"{now.isoformat(timespec='milliseconds')} {peer}: {what}")
            for client in lane.clients:
                client.counters.changed = f"{now:%H:%M:%S} UTC by {peer.name}: {names}: {what}"
        self._run.screen.say(f"{names}: {what}, by {peer}")


def _changed_limits(lane: SteeredLane, limits: Mapping[str, float | None]) -> Limits:
    """Return the limits of a lane after a change; raises ConfigError."""
    now: dict[str, Any] = dict(limits)  # Any: fields of `Limits`
    connections = lane.clients[0].model.limits.connections
    if (calls := now.get("concurrency")) is not None:
        if calls > connections:
            raise ConfigError(
                f"concurrency={calls:.10g}: this run opens at most {connections:,} connections to "
                f"{lane.name}. Set no more, or stop it and set `concurrency` in the sweep file"
            )
        now["concurrency"] = int(calls)
    return replace(lane.limits, **now)


def _lane_status(lane: AnyLane) -> dict[str, object]:
    """Return the state of a lane: what limits it, its limits, and its calls in flight."""
    all_counters = [client.counters for client in lane.clients]
    going = [counters for counters in all_counters if counters.open and not counters.over] or all_counters
    cause = next((counters.waits_for for counters in going if counters.waits_for), None)
    steered = lane.steered
    limits = {} if steered is None else steered.limits_in_force()
    return {
        "lane": lane.name,
        "models": [client.model.alias for client in lane.clients],
        "limited_by": what_holds(going[0]) or (waits.WORDS[cause] if cause else ""),
        "limits": {UNITS[what]: limit for what, limit in limits.items()},
        "concurrency": None if steered is None else steered.limits.concurrency,
        "in_flight": sum(counters.in_flight for counters in all_counters),
    }


def _limit_text(limits: Limits, name: str) -> str:
    value = getattr(limits, name)
    return "none" if value is None else f"{value:,.10g}"
