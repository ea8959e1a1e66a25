"""What a run knows of each of its workers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerCounts:
    """How one worker stands."""

    name: str  # "1", "2" …: one that is started in the place of another has its name; of a cluster "w001-e1"
    pid: int
    in_flight: int  # calls that it is making
    calls: int  # that it ended, those of earlier processes of its name too
    calls_per_s: float  # over the last ten seconds
    lag_s: float  # the worst that its event loop was late in the last ten seconds
    deaths: int  # processes of its name that ended before the run did
    host: str = ""  # of a cluster: its machine
