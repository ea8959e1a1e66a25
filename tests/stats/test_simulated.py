"""Intervals hold the truth as often as they say, and the tests cry wolf no more often: by simulation.

A count is held against what the claimed share would stay on the other side of once in a million simulations.
"""

from collections import Counter
from itertools import product

import pytest

from asyncbench.published.nupa.counts import interval_of
from asyncbench.stats.paired import bootstrap_difference, mcnemar, problems_needed, stratified
from asyncbench.stats.proportions import Proportion, averaged_interval
from asyncbench.stats.repeats import Votes, clustered, majority_at_k, worth_by_k
from asyncbench.suites.nupa.tasks import Sum

pytestmark = pytest.mark.long

ONCE_IN = 1e-6
SHARES = {
    "anywhere": lambda rng: rng.uniform(0, 1),
    "near 0": lambda rng: 10 ** rng.uniform(-4, -1),
    "near 1": lambda rng: 1 - 10 ** rng.uniform(-4, -1),
}


def fewest(simulations, share) -> float:
    """The hits that something with this share of them reaches, but for once in a million."""
    from scipy.stats import binom

    return float(binom.ppf(ONCE_IN, simulations, share))


def most(simulations, share) -> float:
    from scipy.stats import binom

    return float(binom.isf(ONCE_IN, simulations, share))


def generator(seed):
    import numpy

    return numpy.random.default_rng(seed)


def holds(interval, truth) -> bool:
    low, high = interval
    return bool(low - 1e-12 <= truth <= high + 1e-12)


def repeated(rng, share, agreement, problems, repeats):
    """Successes of each problem and its repeats, which may be a list.

    `agreement`: the correlation of a problem's repeats, from 0 to 1.
    """
    import numpy

    each = 1 / agreement - 1
    chances = rng.beta(share * each, (1 - share) * each, problems)
    right = rng.binomial(repeats, chances).tolist()
    return list(zip(right, numpy.broadcast_to(repeats, problems).tolist(), strict=True))


@pytest.mark.parametrize("where", SHARES)
def test_clustered_intervals_hold_the_share_in_95_of_100_where_plain_ones_do_not(where):
    rng, simulations, held, plainly = generator(2), 1_000, 0, 0
    for _ in range(simulations):
        share, agreement = SHARES[where](rng), rng.uniform(0.05, 0.95)
        counts = repeated(rng, share, agreement, int(rng.integers(10, 200)), int(rng.integers(2, 11)))
        held += holds(clustered(counts).interval, share)
        right, asked = (sum(column) for column in zip(*counts, strict=True))
        plainly += holds(Proportion(successes=right, trials=asked).interval, share)
    assert held >= fewest(simulations, 0.95)
    assert plainly < fewest(simulations, 0.95)


OFTEN = {  # how often problems were asked, in turn
    "a quarter ten times": [10, 1, 1, 1],
    "a tenth ten times": [10] + 9 * [1],
    "half of them twice": [2, 1],
    "half of them a hundred times": [100, 1],
    "from once to ten times": [*range(1, 11)],
}


@pytest.mark.parametrize("often", OFTEN.values(), ids=OFTEN)
def test_clustered_intervals_hold_the_share_in_90_of_100_where_a_few_problems_were_asked_more_often(often):
    rng, simulations = generator(8), 1_000
    for problems, share in product([20, 30], [0.1, 0.5]):
        asked = (often * problems)[:problems]
        held = sum(
            holds(clustered(repeated(rng, share, 0.95, problems, asked)).interval, share)
            for _ in range(simulations)
        )
        assert held >= fewest(simulations, 0.9), (problems, share)


FIGURES = ("pass_at_k", "pass_hat_k", "majority_at_k")


def votes(counts) -> Votes:
    """Of the counts of the right answer, of two wrong ones, and of none."""
    right, *wrong, _ = map(int, counts)
    return Votes(sum(map(int, counts)), right, tuple(sorted(filter(None, wrong), reverse=True)))


def truths(chances, k) -> dict[str, float]:
    """What k answers to a problem are worth whose chances are drawn from a Dirichlet distribution."""
    from scipy.stats import dirichlet_multinomial

    found = dict.fromkeys(FIGURES, 0.0)
    for counts in product(range(k + 1), repeat=4):
        if sum(counts) == k:
            chance = float(dirichlet_multinomial.pmf(counts, chances, k))
            found["pass_at_k"] += chance * (counts[0] > 0)
            found["pass_hat_k"] += chance * (counts[0] == k)
            found["majority_at_k"] += chance * majority_at_k(votes(counts), k)
    return found


@pytest.mark.parametrize("right", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("agreement", [0.05, 0.5, 0.9])
def test_intervals_at_every_k_hold_the_truth_in_95_of_100(right, agreement):
    import numpy

    rng, simulations, repeats = generator(10), 400, 5
    chances = (1 / agreement - 1) * numpy.array([right, *(1 - right) * numpy.array([0.6, 0.2, 0.2])])
    true = {k: truths(chances, k) for k in range(1, repeats + 1)}
    held = Counter[tuple[int, str]]()
    for _ in range(simulations):
        of_problems = rng.dirichlet(chances, int(rng.integers(15, 150)))
        asked = Counter(map(votes, rng.multinomial(repeats, of_problems)))
        for at in worth_by_k(asked):
            for name in FIGURES:
                held[at.k, name] += holds(getattr(at, name).interval, true[at.k][name])
    assert len(held) == 3 * repeats
    assert min(held.values()) >= fewest(simulations, 0.95), held


def compared(rng, problems, repeats, ahead, unlike=1.0):
    """Problems by A's successes less B's, and trials; B solves nothing of what it is behind on.

    `unlike`: how far the chances of a problem are from always and never; 0: its repeats are always alike.
    """
    import numpy

    # Most problems are solved nearly always, some nearly never.
    chances = rng.beta(0.9 * unlike, 0.3 * unlike, problems)
    behind = rng.random(problems) < ahead / 0.75
    by = rng.binomial(repeats, chances) - rng.binomial(repeats, chances * ~behind)
    return Counter(zip(by.tolist(), numpy.broadcast_to(repeats, problems).tolist(), strict=True))


@pytest.mark.parametrize("repeats", [1, 3])
def test_bootstrap_intervals_hold_the_difference_in_95_of_100(repeats):
    rng, simulations, held = generator(3), 300, 0
    for _ in range(simulations):
        problems, ahead = int(rng.integers(10, 100)), rng.choice([0.0, 0.03, 0.1, 0.3])
        kinds = compared(rng, problems, repeats, ahead)
        held += holds(bootstrap_difference(kinds, seed=1, resamples=1_000), ahead)
    assert held >= fewest(simulations, 0.95)


@pytest.mark.parametrize("often", OFTEN.values(), ids=OFTEN)
def test_bootstrap_intervals_hold_it_where_a_few_problems_were_asked_more_often(often):
    rng, simulations, held = generator(9), 200, 0
    for _ in range(simulations):
        problems, ahead = int(rng.integers(20, 60)), rng.choice([0.0, 0.1, 0.3])
        kinds = compared(rng, problems, (often * problems)[:problems], ahead, unlike=0.1)
        held += holds(bootstrap_difference(kinds, seed=1, resamples=300), ahead)
    assert held >= fewest(simulations, 0.95)


@pytest.mark.parametrize(("problems", "discordant_share"), [(20, 0.05), (50, 0.03), (100, 0.02)])
def test_bootstrap_intervals_hold_it_where_hardly_a_problem_differs(problems, discordant_share):
    rng, simulations, held = generator(4), 300, 0
    for _ in range(simulations):
        only_a = int(rng.binomial(problems, discordant_share))
        kinds = {(1, 1): only_a, (0, 1): problems - only_a}
        interval = bootstrap_difference(kinds, seed=1, resamples=1_000)
        held += holds(interval, discordant_share)
    assert held >= fewest(simulations, 0.95)


@pytest.mark.parametrize("problems", [2, 10], ids=["2 of a kind", "10 of a kind"])
@pytest.mark.parametrize("repeats", [1, 5])
def test_the_stratified_test_calls_equals_different_in_6_of_100_at_most_also_with_repeats(repeats, problems):
    rng, simulations, alarms, found = generator(10), 500, 0, 0
    for _ in range(simulations):
        shares = rng.uniform(0.1, 0.9, 100 // problems)  # of the kinds, from easy to hard
        a, b = ([Counter(repeated(rng, share, 0.6, problems, repeats)) for share in shares] for _ in "ab")
        none = [Counter({(0, repeats): problems}) for _ in shares]
        alarms += stratified(zip(a, b, strict=True)) <= 0.05
        found += stratified(zip(a, none, strict=True)) <= 0.05
    assert alarms <= 0.06 * simulations
    assert alarms >= fewest(simulations, 0.02)  # it is not merely shy
    assert found == simulations


@pytest.mark.parametrize(("difference", "discordant_share"), [(0.1, 0.2), (0.05, 0.3), (0.08, 0.1)])
def test_so_many_problems_show_the_difference_as_often_as_promised_and_half_as_many_do_not(
    difference, discordant_share
):
    needed = problems_needed(difference, discordant_share)
    assert needed is not None
    rng, simulations = generator(7), 2_000
    for problems, enough in ((needed, True), (needed // 2, False)):
        discordant = rng.binomial(problems, discordant_share, simulations)
        only_a = rng.binomial(discordant, (1 + difference / discordant_share) / 2)
        shown = sum(mcnemar(int(a), int(n - a)) <= 0.05 for a, n in zip(only_a, discordant, strict=True))
        assert (shown >= fewest(simulations, 0.8)) is enough


@pytest.mark.parametrize("answers", [4, 10, 30, 100])
@pytest.mark.parametrize(
    ("digits", "lost", "far"),
    [(8, 0.05, 0.0), (20, 0.02, 0.0), (12, 0.0, 4.0), (9, 0.1, 1.0)],
    ids=["lost", "long and lost", "far off", "both"],
)
def test_the_interval_of_wrong_lengths_holds_their_mean(answers, digits, lost, far):
    """A reply without a number lacks all digits; others have some too many or too few."""
    rng, simulations = generator(answers), 1_000
    held = 0
    for _ in range(simulations):
        found = [digits if rng.random() < lost else int(rng.poisson(far)) for _ in range(answers)]
        added = Sum(sum(found), answers, sum(n * n for n in found), max(digits, *found), answers)
        interval = interval_of(added)
        assert interval is not None
        held += holds(interval, lost * digits + (1 - lost) * far)
    assert held >= fewest(simulations, 0.9)


def test_the_interval_of_a_mean_over_tasks_holds_it_and_that_of_one_task_is_its_own():
    rng, simulations, held = generator(5), 2_000, 0
    for _ in range(simulations):
        shares = rng.uniform(0, 1, 6)
        right = rng.binomial(10, shares)
        tasks = [Proportion(successes=int(count), trials=10) for count in right]
        intervals = [task.interval or (0.0, 1.0) for task in tasks]
        held += holds(averaged_interval([task.share or 0.0 for task in tasks], intervals), shares.mean())
    assert held >= fewest(simulations, 0.93)
    assert averaged_interval([0.4], [(0.2, 0.7)]) == (pytest.approx(0.2), pytest.approx(0.7))
