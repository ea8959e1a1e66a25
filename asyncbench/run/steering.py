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
        """Do what is asked; return what was done, and how each lane and each worker stands.

        Raises:
            ConfigError: it cannot be done.
            LookupError, AttributeError, TypeError: it is no request.
        """
        if request["do"] != "look" and (self._scheduler.stopped or not self._scheduler.going):
            raise ConfigError("the run is stopping. It sends nothing new any more")
        ways = {"pause": self._pause, "resume": self._resume, "set": self._set}
        notes = () if request["do"] == "look" else ways[request["do"]](request, peer)
        return {
            "paused": bool(self._paused_by),
            "notes": list(notes),
            "lanes": [_status_of(lane) for lane in self._scheduler.going],
            "workers": [asdict(one) for one in self._run.workers.counts()],
        }

    # ── pausing

    def _pause(self, _: Talk, peer: Peer) -> Sequence[str]:
        if self._paused_by:
            return (f"It is paused already, {self._paused_by}.",)
        self._log(self._scheduler.going, "pause", peer)
        self._paused_by = f"by {peer.name} at {datetime.now(UTC):%H:%M:%S} UTC"
        self._heed(paused=True)
        return [*_on_pause(self._scheduler.going), *self._way_on()]

    def _resume(self, _: Talk, peer: Peer) -> Sequence[str]:
        if not self._paused_by:
            return ("It is not paused.",)
        self._log(self._scheduler.going, "resume", peer)
        since, self._paused_by = self._paused_by, ""
        self._heed(paused=False)
        return (f"It goes on. It was paused {since}.",)

    def _heed(self, *, paused: bool) -> None:
        for lane in self._scheduler.lanes:
            for client in lane.clients:
                client.counters.paused = paused
                if client.counters.waits_for == waits.RESUME:  # until its lane wakes up
                    client.counters.waits_for = None
        for lane in self._scheduler.going:
            lane.apply_pause()

    def _way_on(self) -> Iterator[str]:
        if self._run.within_s is not None:
            yield "Its deadline still ends it."
        yield f"To go on: asyncbench resume {quoted(self._run.sweep.out)}"

    # ── limits

    def _set(self, request: Talk, peer: Peer) -> Sequence[str]:
        limits, alias = checked_limits(request["limits"]), request["model"]
        chosen = self._lanes_of(alias)
        lanes = [lane.steered for lane in chosen if lane.steered is not None]
        if not lanes:
            why = (
                "calls of a load go when they are due" if loads_in(chosen) else "batches have no such limits"
            )
            raise ConfigError(f"{', '.join(lane.name for lane in chosen)}: no limit can be set, for {why}")
        wanted = [(lane, _changed(lane, limits)) for lane in lanes]
        steered = (lane.steered for lane in self._scheduler.going if lane.steered is not None)
        others = (lane.limits for lane in steered if lane not in lanes)
        calls = [limits.most_in_flight for limits in (*others, *(limits for _, limits in wanted))]
        open_files_for(sum(calls))
        notes = [note for lane, limits in wanted for note in self._apply(lane, limits, peer)]
        unlimited = [lane.name for lane in chosen if lane.steered is None]
        return [*notes, *(f"{name}: left as it is, for it has no such limits." for name in unlimited)]

    def _apply(self, lane: SteeredLane, limits: Limits, peer: Peer) -> Iterator[str]:
        before, configured = lane.limits, lane.clients[0].model.limits
        names = [name for name in KINDS if getattr(limits, name) != getattr(before, name)]
        changes = [f"{name} {_text(limits, name)}, was {_text(before, name)}" for name in names]
        if names:
            self._log([lane], "; ".join(changes), peer)
            lane.set_limits(limits)
        yield f"{_title(lane)}: {'; '.join(changes) or 'no change'}"
        for name in names:
            own, now = getattr(configured, name), getattr(limits, name)
            if own is not None and (now is None or now > own):
                yield f"{lane.name}: that is more than the {name} of your sweep, {own:,.10g}."
        for what, in_force in lane.limits_in_force().items():
            most = limits.per_minute[what]
            if UNITS[what] in names and most and in_force < most * limits.fraction * ALMOST_ALL:
                amount = f"{in_force:,.10g} {UNITS[what]}"
                yield f"{lane.name}: the provider reports {amount}; the lower limit holds."

    def _lanes_of(self, alias: str | None) -> list[AnyLane]:
        going = self._scheduler.going
        known = dict.fromkeys(client.model.alias for lane in going for client in lane.clients)
        if alias is not None and alias not in known:
            raise ConfigError(f"model {alias!r} is not asked now. This run asks {', '.join(known)}")
        return [
            lane
            for lane in going
            if alias is None or alias in {client.model.alias for client in lane.clients}
        ]

    # ── log of changes

    def _log(self, lanes: Sequence[AnyLane], what: str, peer: Peer) -> None:
        """Write a change down in the table `lanes`, and show it."""
        names, now = ", ".join(lane.name for lane in lanes), datetime.now(UTC)
        for lane in lanes:
            note_change(lane, f"{now.isoformat(timespec='milliseconds')} {peer}: {what}")
            for client in lane.clients:
                client.counters.changed = f"{now:%H:%M:%S} UTC by {peer.name}: {names}: {what}"
        self._run.screen.say(f"{names}: {what}, by {peer}")


def _changed(lane: SteeredLane, limits: Mapping[str, float | None]) -> Limits:
    """Return the limits of a lane with others in them; raises ConfigError."""
    now: dict[str, Any] = dict(limits)  # Any: fields of `Limits`
    most = lane.clients[0].model.limits.connections
    if (calls := now.get("concurrency")) is not None:
        if calls > most:
            raise ConfigError(
                f"concurrency={calls:.10g}: this run opens at most {most:,} connections to {lane.name}. Set "
                "no more, or stop it and set `concurrency` in the sweep file"
            )
        now["concurrency"] = int(calls)
    return replace(lane.limits, **now)


def _on_pause(lanes: Sequence[AnyLane]) -> Iterator[str]:
    # A model may have two lanes: one collects its batches.
    models = {client.model.alias: client.counters for lane in lanes for client in lane.clients}.values()
    in_flight = sum(counters.in_flight for counters in models)
    calls = f" {in_flight:,} calls in flight end." if in_flight else ""
    yield f"Paused: nothing new is sent.{calls}"
    if batches := sum(counters.in_batches for counters in models):
        yield f"Batches go on at the provider, with {batches:,} trials. Their results are collected."
    if any(lane.interrupted for lane in loads_in(lanes)):
        yield "The step under way is incomplete. It is measured again, as a whole, when you resume."


def _status_of(lane: AnyLane) -> dict[str, object]:
    """Return how a lane stands."""
    counters = [client.counters for client in lane.clients]
    going = [one for one in counters if one.open and not one.over] or counters
    cause = next((one.waits_for for one in going if one.waits_for), None)
    steered = lane.steered
    limits = {} if steered is None else steered.limits_in_force()
    return {
        "lane": lane.name,
        "models": [client.model.alias for client in lane.clients],
        "limited_by": what_holds(going[0]) or (waits.WORDS[cause] if cause else ""),
        "limits": {UNITS[what]: limit for what, limit in limits.items()},
        "concurrency": None if steered is None else steered.limits.concurrency,
        "in_flight": sum(one.in_flight for one in counters),
    }


def _title(lane: SteeredLane) -> str:
    aliases = [client.model.alias for client in lane.clients]
    return lane.name if aliases == [lane.name] else f"{lane.name} ({', '.join(aliases)})"


def _text(limits: Limits, name: str) -> str:
    value = getattr(limits, name)
    return "none" if value is None else f"{value:,.10g}"
