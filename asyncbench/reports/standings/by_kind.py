"""The rankings of a suite, kind by kind: additions on the additions that all were asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from asyncbench.analysis.counting import FolderViews
from asyncbench.analysis.entrants import Entrant, KindKey
from asyncbench.analysis.pairing import Bits, Marked, Marks, bits_by_kind, in_common, marks_in
from asyncbench.records import Outcome
from asyncbench.reports.standings.rankings import Ranking, paired_lines, share_of, unpaired
from asyncbench.stats.paired import tied
from asyncbench.stats.proportions import Accuracy

Lengths = Mapping[int | None, Bits]  # length → the problems of a kind that have it


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRankingRow:
    """One line of the ranking of a kind."""

    entrant: Entrant
    place: int
    share: float
    interval: tuple[float, float]
    accuracy: Accuracy  # over the same problems


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRanking:
    """The entrants of a suite's ranking on its problems of one kind."""

    kind: KindKey
    problems: int
    paired: bool
    lines: tuple[KindRankingRow, ...]  # the best first


def kind_bits(views: FolderViews) -> Mapping[KindKey, Lengths]:
    """Return the problems of each kind; the first time while the table `answers` is there."""
    return views.once("kind_bits", lambda: bits_by_kind(views, marks_in(views)))


def rankings_by_kind(views: FolderViews, rankings: Sequence[Ranking]) -> Iterator[KindRanking]:
    """Yield the rankings of the kinds of each ranking of one suite, where it has several.

    Args:
        views: of which standings were made by kind.
        rankings: of these standings.
    """
    bits, trials = kind_bits(views), marks_in(views)
    for ranking in rankings:
        kinds = {kind: lengths for kind, lengths in bits.items() if kind[0] == ranking.suite}
        if ranking.alone or len(kinds) < 2:
            continue
        for kind, lengths in kinds.items():
            if made := _of_kind(ranking, kind, lengths, trials):
                yield made


def _of_kind(ranking: Ranking, kind: KindKey, lengths: Lengths, trials: Marked) -> KindRanking | None:
    """Return a ranking on the problems of a kind; None: not everybody was asked any."""
    who = {line.name: (line.run, line.model, line.condition) for line in ranking.lines}
    marks = _marks(ranking, who, trials, reduce(lambda a, b: a | b, lengths.values()))
    if not all(its.trials for its in marks.values()):
        return None
    best_first = sorted(marks, key=lambda name: -marks[name].correct / marks[name].trials)
    pairs = paired_lines(best_first, marks) if ranking.paired else ()
    unlike = {} if ranking.paired else marks
    of_lengths = {
        name: {length: its.within(bits).by_problem() for length, bits in lengths.items()}
        for name, its in unlike.items()
    }
    p_of = {(line.a, line.b): line.p_holm for line in pairs} or unpaired(best_first, of_lengths)
    ties = tied(best_first, lambda a, b: p_of[a, b])
    places = {name: place for place, names in enumerate(ties, 1) for name in names}
    lines = []
    for name in best_first:
        share, interval = share_of(marks[name])
        accuracy = _accuracy(marks[name], trials.ended[who[name]])
        lines.append(
            KindRankingRow(
                entrant=who[name], place=places[name], share=share, interval=interval, accuracy=accuracy
            )
        )
    return KindRanking(
        kind=kind,
        problems=marks[best_first[0]].problems.bit_count(),
        paired=ranking.paired,
        lines=tuple(lines),
    )


def _marks(ranking: Ranking, who: Mapping[str, Entrant], trials: Marked, kind: Bits) -> dict[str, Marks]:
    """Return the marks of each on the problems of a kind; where they are paired, on those that all have."""
    own = {name: trials.marks[entrant].within(kind) for name, entrant in who.items()}
    return in_common(own) if ranking.paired else own


def _accuracy(marks: Marks, ended: Mapping[str, Sequence[Bits]]) -> Accuracy:
    """Return the accuracy on the problems of some marks."""
    return Accuracy.of(
        {
            outcome.value: sum(
                (bits & problems).bit_count()
                for bits, problems in zip(ended[outcome.value], marks.asked, strict=True)
            )
            for outcome in Outcome
        }
    )
