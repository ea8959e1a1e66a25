"""What workers do for a sweep: the calls a second that its limits allow, beside what processes carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asyncbench.fleet import CallCost
from asyncbench.shown import number_of

HELPS: Final = 1.05  # times what one process carries: less is not worth a process
NEARLY: Final = 0.98  # of the most that any number of workers carries
_NAMED: Final = 3  # lanes
_PACKAGED: Final = "a package's own code makes all calls"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersPlan:
    """What the limits of a sweep allow and what processes carry; rates are calls a second."""

    wanted: int  # workers that the sweep or a person asks for
    cores: int  # that can be used
    allowed_per_s: float | None  # by all limits that are known; None: of no lane one is
    unlimited: tuple[str, ...]  # lanes of which no limit is set or known
    untimed: tuple[str, ...] = ()  # lanes that make so many calls at a time, of which no latency is known
    cost: CallCost | None  # of a call of this sweep, on average; None: nobody measured it here
    load: bool = False  # what is allowed is what the steps of a load ask
    packaged: bool = False  # the own code of packages makes all calls: no worker can
    auto: bool = False  # one worker fewer is wanted than there are cores
    why: str | None = None  # nobody could measure it

    @property
    def one_process_per_s(self) -> float | None:
        """What a run without workers carries; None: it was not measured."""
        return None if self.cost is None else self.cost.per_s

    @property
    def workers_per_s(self) -> float | None:
        """What the workers that are wanted carry; None: it was not measured."""
        return self.carried_by(self.wanted)

    @property
    def enough(self) -> int:
        """The fewest workers that carry all that is allowed, or nearly as much as any number would."""
        rates = [self.carried_by(count) or 0.0 for count in range(1, self.cores + 1)]
        needed = NEARLY * max(rates)
        if self.allowed_per_s is not None and self._unknown is None:
            needed = min(needed, self.allowed_per_s)
        return next(count for count, rate in enumerate(rates, 1) if rate >= needed)

    @property
    def help(self) -> bool | None:
        """Whether workers make the sweep faster: those wanted, or as many as are enough. None: unknown."""
        one, many = self.one_process_per_s, self.carried_by(self.wanted or self.enough)
        if self.cores < 2 or self.packaged:
            return False
        if one is None or many is None:
            return None
        if many < HELPS * one:
            return False
        if self.allowed_per_s is not None and self.allowed_per_s > HELPS * one:
            return True
        return False if self._unknown is None else None

    def as_mapping(self) -> dict[str, object]:
        """Return all figures, by name."""
        return {
            "wanted": self.wanted,
            "cores": self.cores,
            "allowed_per_s": self.allowed_per_s,
            "unlimited": self.unlimited,
            "untimed": self.untimed,
            "one_process_per_s": self.one_process_per_s,
            "workers_per_s": self.workers_per_s,
            "enough": self.enough,
            "enough_per_s": self.carried_by(self.enough),
            "help": self.help,
            "why": self.why,
        }

    @property
    def said(self) -> str | None:
        """What a person should know, a sentence or two; None: nobody asked, and workers are of no use."""
        if self.auto and not self.wanted:
            return "workers: auto starts none here, for only one core can be used."
        if not self.wanted:
            return self._advice if self.help and self.allowed_per_s is not None else None
        return f"workers: {self.wanted}{self._verdict}"

    @property
    def in_full(self) -> str:
        """All that is known, in sentences."""
        said = [f"{number_of(self.cores, 'core')} can be used."]
        if self.cost is not None:
            more = self._with(self.enough) if self.cores > 1 else ""
            said.append(f"One process carries about {_calls(_about(self.cost.per_s))}{more}.")
        elif self.why is not None:
            said.append(f"How many calls a second one process carries is not known: {self.why}.")
        if self.allowed_per_s is not None:
            said.append(f"{_sentence(self._allowed)}.")
        if self._unknown is not None:
            said.append(f"{_sentence(self._unknown)}.")
        if self.packaged:
            said.append(f"{_sentence(_PACKAGED)}.")
        helps = f"Workers help: `--workers {self.enough}`." if self.help else "Workers cannot help."
        return " ".join([*said, "Nobody can tell whether workers help." if self.help is None else helps])

    @property
    def _advice(self) -> str:
        figures = f"{'; '.join(self._figures)}{self._with(self.enough)}"
        return f"Workers help: {figures}. Set `--workers {self.enough}`."

    @property
    def _verdict(self) -> str:
        if self.help is False:
            only = [*["only one core can be used"] * (self.cores < 2), *[_PACKAGED] * self.packaged]
            return f", but workers cannot help here: {'; '.join([*only, *self._figures])}{self._no_more}."
        if self.cost is None:
            way_out = self.why or "`asyncbench doctor SWEEP --capacity` measures it"
            return f". What one process carries is not measured, so nobody knows if they help: {way_out}."
        unsure = "" if self.help else f" {_sentence(self._unknown or '')}, so they may not help."
        return f". {_sentence('; '.join(self._figures))}{self._with(self.wanted)}.{unsure}"

    @property
    def _figures(self) -> Sequence[str]:
        """What is allowed and what one process carries, as far as that is known."""
        one = self.one_process_per_s
        if self.allowed_per_s is None:
            return [] if one is None else [f"one process carries about {_calls(_about(one))}"]
        carried = [] if one is None else [f"one process carries about {_rate(_about(one))}"]
        others = (*self.unlimited, *self.untimed)
        return [f"{self._allowed}{f' besides {_some(others)}' if others else ''}", *carried]

    @property
    def _unknown(self) -> str | None:
        """What is missing to tell all that is allowed; None: nothing."""
        missing = {"limit": self.unlimited, "latency": self.untimed}
        said = [f"no {what} of {_some(names)}" for what, names in missing.items() if names]
        return f"{' and '.join(said)} is known" if said else None

    @property
    def _allowed(self) -> str:
        what = "the steps of this load ask for" if self.load else "the limits of this sweep allow"
        return f"{what} {_calls(self.allowed_per_s or 0.0)}"

    def _with(self, workers: int) -> str:
        return f", and {number_of(workers, 'worker')} about {_rate(_about(self.carried_by(workers) or 0.0))}"

    @property
    def _no_more(self) -> str:
        """That the workers wanted carry no more than one process, where that is why they do not help."""
        one, many = self.one_process_per_s, self.workers_per_s
        if self.cores < 2 or one is None or many is None or many >= HELPS * one:
            return ""
        return f", and {number_of(self.wanted, 'worker')} no more"

    def carried_by(self, workers: int) -> float | None:
        """Return what a run with so many workers carries; None: it was not measured."""
        return None if self.cost is None else self.cost.carried_by(workers, self.cores)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 else f"{per_s:.2g}"


def _calls(per_s: float) -> str:
    rate = _rate(per_s)
    return f"{rate} {'call' if rate == '1' else 'calls'} a second"


def _about(per_s: float) -> float:
    """Return a measured rate with two digits: it is not surer than that."""
    return float(f"{per_s:.2g}")


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
