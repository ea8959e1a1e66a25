"""The finding of a page: sentences on the leader, the hardest task and lost trials, from the statistics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from asyncbench.analysis.entrants import Asked, Entrant, NamedKind, count_models, distinct_names
from asyncbench.page.charts.breaks import KindCurve
from asyncbench.reports.standings.rankings import Ranking, RankingRow
from asyncbench.reports.standings.report import Standings
from asyncbench.stats.proportions import newcombe
from asyncbench.suites.table import SUITES
from asyncbench.tables.numbers import number_of, rounded

LOW: Final = 0.1  # share right below which a model fails at a task
HIGH: Final = 0.9  # share right from which on it masters the task
MOST_NAMED: Final = 3  # models, or tasks, of a sentence
VARIANTS: Final = "variants"
MOST_SENTENCES: Final = 4
LONGEST_NAME: Final = 60  # characters
_WORDS: Final = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def finding_of(standings: Standings, roster: Asked, curves: Sequence[KindCurve]) -> list[str]:
    """Return at most four sentences: who leads or is tied, who follows, what is hardest, what was lost.

    Nobody leads who is tied. Each figure is of one model; it is of several tasks only in the standings.
    """
    longer = distinct_names((entrant.name for entrant in roster.entrants), longest=LONGEST_NAME)
    names = {  # sentences have more room than charts
        entrant.key: entrant.short if "…" not in entrant.short else longer[entrant.name]
        for entrant in roster.entrants
    }
    ranked = [ranking for ranking in standings.rankings if not ranking.alone]
    curves = [each for each in curves if each.bins]
    if not ranked:
        unranked = _unranked(standings, names, curves, roster)
        sentences = [*unranked, *_hardest(curves, roster, names)]
    else:
        ranking = max(ranked, key=lambda ranking: (ranking.suite is None, len(ranking.lines)))
        left_out = standings.asked - len(ranking.lines)
        about = _RankingSentences(ranking=ranking, names=names, left_out=left_out)
        sentences = [*about.first(), *about.others(), *_hardest(curves, roster, names), *about.lost()]

    # No line breaks before the sign of a percentage.
    return [sentence.replace(" %", "\u00a0%") for sentence in sentences[:MOST_SENTENCES]]


# ── leaders and ties ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class _RankingSentences:
    """The sentences on a ranking."""

    ranking: Ranking
    names: dict[Entrant, str]
    left_out: int  # entrants that are not in it

    def first(self) -> Iterator[str]:
        """Yield the leader and its lead, or the entrants that share the first place."""
        lines, best = self.ranking.lines, self._ranked(1)
        if len(best) == 1:
            # The interval of the lead is paired where both were asked the same problems.
            first, second = lines[:2]
            paired = [p.interval for p in self.ranking.pairs if (p.a, p.b) == (first.name, second.name)]
            low, high = (
                paired[0] if paired else newcombe(first.share, first.interval, second.share, second.interval)
            )
            ahead = 100 * (first.share - second.share)
            yield (
                f"{self._name(first)} leads by {rounded(ahead, 1)} points "
                f"({rounded(100 * low, 1)} to {rounded(100 * high, 1)})"
                f"{self._where()}."
            )
        elif len(best) == len(lines):
            who = f"Both {self._nouns}" if len(best) == 2 else f"All {_number(len(best))} {self._nouns}"
            problems = f"{self.ranking.problems:,} problems"
            where = f" on the same {problems}" if self.ranking.paired else f", each on {problems} of its own"
            yield f"{who} are statistically tied ({self._shares(best)} right){where}."
        else:
            yield (
                f"{_listed([self._name(line) for line in best])} are statistically tied for first "
                f"({self._shares(best)} right){self._where()}."
            )

    def others(self) -> Iterator[str]:
        """Yield the next entrants, and the number of those without a rank."""
        clauses, best, second = [], self._ranked(1), self._ranked(2)
        if len(best) == 1 and len(second) > 1:
            clauses.append(f"the next {_number(len(second))} are statistically tied")
        elif len(best) > 1 and second:
            follow = "follows" if len(second) == 1 else "follow"
            clauses.append(
                f"{_listed([self._name(line) for line in second])} {follow} with {self._shares(second)}"
            )
        if self.left_out:
            noun, share = ("model", "shares") if self.left_out == 1 else ("models", "share")
            clauses.append(
                f"{_number(self.left_out)} {noun} {share} too few problems with the others to be ranked"
            )
        if clauses:
            # A name that begins the sentence stays as it is; another word begins with a capital.
            words = "; ".join(clauses)
            begins = words.split(" ", 1)[0]
            yield f"{words[0].upper() if begins in {'the', *_WORDS} else words[0]}{words[1:]}."

    def lost(self) -> Iterator[str]:
        """Yield entrants whose rank would change if their lost trials had been right."""
        least = {line.place: line.share for line in self.ranking.lines}
        changed = [
            line
            for line in self.ranking.lines
            if line.accuracy.loud
            and line.place > 1
            and (line.accuracy.highest or 0.0) >= least[line.place - 1]
        ]
        if not changed:
            return
        worst = max(changed, key=lambda line: line.accuracy.lost_share or 0)
        others = len(changed) - 1
        rest = (
            "rank of one more model depends"
            if others == 1
            else f"ranks of {_number(others)} more models depend"
        )
        more = f" The {rest} on lost trials, too." * bool(others)
        lost = rounded(100 * (worst.accuracy.lost_share or 0), 0)
        yield (
            f"{self._name(worst)} lost {lost} % of its trials: counted right, they would "
            f"lift it from {_percent(worst.share)} to {_percent(worst.accuracy.highest or 0.0)}.{more}"
        )

    def _where(self) -> str:
        lines, problems = len(self.ranking.lines), f"{self.ranking.problems:,} problems"
        if not self.ranking.paired:
            return f", each of {_number(lines)} {self._nouns} on {problems} of its own"
        everybody = "both" if lines == 2 else f"all {_number(lines)}"
        return f" on the {problems} that {everybody} {self._nouns} were asked"

    @property
    def _nouns(self) -> str:
        """What the lines of the ranking are: models, or variants of fewer of them."""
        entrants = [line.entrant for line in self.ranking.lines]
        models = count_models(entrants)
        if models == len(entrants):
            return "models"
        return f"{VARIANTS} of {_number(models)} model{'s' * (models > 1)}"

    def _ranked(self, rank: int) -> list[RankingRow]:
        return [line for line in self.ranking.lines if line.place == rank]

    def _name(self, line: RankingRow) -> str:
        return self.names[line.entrant]

    def _shares(self, lines: Sequence[RankingRow]) -> str:
        if len(lines) > 2:
            return f"{_percent(lines[-1].share)} to {_percent(lines[0].share)}"
        return " and ".join(_percent(line.share) for line in lines)


# ── results without a ranking ────────────────────────────────────────────────────────────────────


def _unranked(
    standings: Standings, names: dict[Entrant, str], curves: Sequence[KindCurve], roster: Asked
) -> Iterator[str]:
    """Yield the abilities of the only model and where it breaks, or that no models can be compared."""
    if standings.asked > 1:
        models = count_models([entrant.key for entrant in roster.entrants])
        noun = VARIANTS if models < standings.asked else "models"
        yield f"The {_number(standings.asked)} {noun} share too few problems to be ranked."
        return

    far = [each for each in curves if min(share for _, _, share in each.bins) >= HIGH]
    below = [each for each in curves if each.half.bound == "below"]
    halves = [(each.half, each) for each in curves if each.half.value is not None or each.half.between]
    for name in names.values():  # of the only model
        if far:
            tasks = _listed([roster.kinds[each.kind].called for each in far])
            yield f"{name} gets {HIGH:.0%} or more right at every length asked in {tasks}.".replace("%", " %")
        who = "It" if far else name
        if below:
            tasks = _listed([roster.kinds[each.kind].called for each in below])
            yield f"{who} gets less than half right at every length asked in {tasks}."
        elif halves:
            half, each = min(halves, key=lambda pair: pair[0].value or (pair[0].between or (0,))[0])
            kind, (figure, _, limits) = roster.kinds[each.kind], str(half).partition(" (")
            reach = _length(kind, f"{half.between[0]:g}" if half.between else figure)
            yield f"{who} breaks first in {kind.called}: half is right up to {reach} ({limits}."

    if not curves:
        for ranking in standings.rankings[:1]:
            line = ranking.lines[0]
            low, high = (rounded(100 * end, 1) for end in line.interval)
            right = f"{names[line.entrant]} gets {_percent(line.share)}"
            yield f"{right} ({low} to {high}) of {number_of(ranking.problems, 'problem')} right."


# ── hardest tasks ────────────────────────────────────────────────────────────────────────────────


def _hardest(curves: Sequence[KindCurve], roster: Asked, names: Mapping[Entrant, str]) -> Iterator[str]:
    """Yield from which length on nobody does a task; else where most fail, and what the best does there."""
    kinds = {kind: [each for each in curves if each.kind == kind] for kind in {each.kind for each in curves}}
    several = len({each.entrant for each in curves}) > 1
    nobody = {
        kind: limit
        for kind, its_curves in kinds.items()
        if (limit := _impossible_length(its_curves)) is not None
        and -limit[1] > several  # where several models were asked at all, more than one was asked there
    }
    if nobody:
        kind = min(nobody, key=lambda kind: (*nobody[kind], kind))
        length, models = nobody[kind][0], -nobody[kind][1]
        about, of_all = roster.kinds[kind], f"0 of {models} models above 10 %"
        yield (
            f"Nobody does {about.called} from {_length(about, f'{length:g}')} on ({of_all})."
            if models > 1
            else f"From {_length(about, f'{length:g}')} on, {about.called} is right in less than 10 %."
        )
    elif several:
        yield from _most_fail(kinds, roster, names)


def _impossible_length(curves: Sequence[KindCurve]) -> tuple[float, int] | None:
    """Return the shortest length from which on nobody reaches 10 %, and how many were asked there, negative.

    None: somebody reaches it at the longest, or less than half of the models were asked there.
    """
    starts = []
    for each in curves:
        low = 0
        for _, _, share in reversed(each.bins):
            if share >= LOW:
                break
            low += 1
        if not low:
            return None
        starts.append(each.bins[-low][0])
    there = [each for each in curves if each.bins[-1][1] >= max(starts)]
    return (max(starts), -len(there)) if 2 * len(there) >= len(curves) else None


def _most_fail(
    kinds: Mapping[int, Sequence[KindCurve]], roster: Asked, names: Mapping[Entrant, str]
) -> Iterator[str]:
    """Yield at which task and length most models fail, and what the best does there."""
    at_the_end = {
        kind: [each for each in curves if each.longest == max(curve.longest for curve in curves)]
        for kind, curves in kinds.items()
    }
    several = {kind: curves for kind, curves in at_the_end.items() if len(curves) > 1}
    if not several:
        return

    def difficulty(kind: int) -> tuple[float, float, int]:
        shares = [_last(each) for each in several[kind]]
        return -sum(share < LOW for share in shares) / len(shares), sum(shares) / len(shares), kind

    kind = min(several, key=difficulty)
    about, curves = roster.kinds[kind], several[kind]
    best = max(curves, key=_last)
    failing = sum(_last(each) < LOW for each in curves)
    first, last = best.bins[-1][:2]
    where = _length(about, f"{first:g}" if first == last else f"{first:g} to {last:g}")
    at_the_top = [each for each in curves if _last(each) == _last(best)]
    if failing:
        few = (
            f"{failing} of {len(curves)} models are below 10 %" if failing > 1 else "one model is below 10 %"
        )
        who = (
            f"{_number(len(at_the_top))} models get"
            if len(at_the_top) > 1
            else f"{names[roster.entrants[best.entrant].key]} gets"
        )
        yield f"{about.called} at {where} is hardest: {few}, and {who} {_percent(_last(best))}."
    elif min(map(_last, curves)) >= HIGH:
        yield f"Nobody falls below 90 % even in {about.called} at {where}: harder problems would tell more."
    else:
        least = min(map(_last, curves))
        right = f"from {_percent(least)} to {_percent(_last(best))} right"
        yield f"{about.called} at {where} is hardest: {right}."


def _last(each: KindCurve) -> float:
    """Return the share that is right at the longest lengths."""
    return each.bins[-1][2]


# ── words ────────────────────────────────────────────────────────────────────────────────────


def _length(kind: NamedKind, length: str) -> str:
    suite = SUITES.find(kind.suite)  # None: its package is gone
    return f"{length} {suite.unit}" if suite is not None and suite.unit else f"length {length}"


def _number(count: int) -> str:
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def _percent(share: float) -> str:
    return f"{rounded(100 * share, 1)} %"


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED + 1:
        return f"{', '.join(names[:MOST_NAMED])} and {_number(len(names) - MOST_NAMED)} others"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
