"""nupa: the tasks of "Number Cookbook" (arXiv 2411.03766), on four representations and up to 100 digits.

Profile `fixed` asks what the paper describes, with right answers; profile `reference` does what the published
code does, its wrong answers included, so that results compare with published ones. A problem file says which.
"""

from collections.abc import Mapping
from typing import cast

from asyncbench.suites.nupa import grading
from asyncbench.suites.nupa.asking import ASKING, STYLES
from asyncbench.suites.nupa.generation import GENERATOR_VERSION, PROFILES, generate, rows
from asyncbench.suites.nupa.tasks import BASE_TASKS, REPRESENTATIONS, SETS, VARIANTS, chosen
from asyncbench.suites.suite import Parameter, Suite, one_of, some_of, whole_number, whole_numbers

_LENGTHS = range(1, 101)


def check(values: Mapping[str, object]) -> None:
    """Refuse a choice that no task answers to.

    Raises:
        ValueError: what was chosen does not go together.
    """
    names = ("set", "tasks", "representations", "variants")
    tasks = chosen(*(cast("str", values[name]) for name in names))
    if not tasks:
        raise ValueError("no task of the set has these names, representations and variants: choose more")
    lengths = set(cast("tuple[int, ...]", values["lengths"]))
    if not any(lengths.intersection(task.lengths) for task in tasks):
        shown = ", ".join(f"{task.name} {task.lengths[0]}-{task.lengths[-1]}" for task in tasks[:3])
        raise ValueError(f"lengths: none of the chosen tasks has these; {shown}")


SUITE = Suite(
    name="nupa",
    generator_version=GENERATOR_VERSION,
    prompt_version=1,
    graders=tuple(grading.GRADERS),
    styles=STYLES,
    asking=ASKING,
    parameters={
        "per_length": Parameter(
            default=100, parse=whole_number(1), help="of each task and length; the paper has 1000"
        ),
        "set": Parameter(
            default=SETS[0], parse=one_of(SETS), help="released (44 tasks), full (53) or paper41"
        ),
        "profile": Parameter(
            default="fixed", parse=one_of(PROFILES), help="fixed, or reference with the published errors"
        ),
        "tasks": Parameter(default=BASE_TASKS, parse=some_of(BASE_TASKS), help="which"),
        "representations": Parameter(
            default=REPRESENTATIONS, parse=some_of(REPRESENTATIONS), help="of the first operand"
        ),
        "variants": Parameter(default=tuple(VARIANTS), parse=some_of(VARIANTS), help="which"),
        "lengths": Parameter(
            default=tuple(_LENGTHS), parse=whole_numbers(1, _LENGTHS[-1]), help="1-20, or 5,10,20"
        ),
    },
    check=check,
    generate=generate,
    rows=rows,
    grade=grading.grade,
)
