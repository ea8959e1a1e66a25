"""Making NUPA's problems: every task × length is a cell with a random stream of its own.

A cell's problems depend on the profile, its version, the seed, the task and the length alone, so any slice of
a set can be made by itself. None comes twice in a cell; one that is too small for what is asked holds fewer.
"""

import json
import random
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import chain, islice, zip_longest
from typing import cast

from asyncbench.records import Draft
from asyncbench.suites.numbers import FORMS, parts
from asyncbench.suites.nupa.operands import SHORTER, Operands, below_of, choose_by_operand, pairs_of, uniform
from asyncbench.suites.nupa.tasks import PUBLISHED_NAMES, NupaTask, chosen, range_of, template, writing

GENERATOR_VERSION = 1
PROFILES: Mapping[str, int] = {"fixed": 1, "reference": 1}  # with versions: raise when problems change
OTHER: Mapping[str, str] = {"fixed": "reference", "reference": "exact"}  # whose answer stands beside ours
EXAMPLES = "shots"  # the stream of worked examples
SPLITS = ("test", "train", "validation")  # those of problems: each is drawn by itself
_AT_ONCE = 8  # of a cell: thousands of cells in turn, one problem each, take half as long again
_IN_VAIN = 100  # draws in a row that were all there before: the cell holds no more


def generate(seed: int, parameters: Mapping[str, object]) -> Iterator[Draft]:
    """Yield up to `per_length` problems of every task and length, one of each cell before the next of any."""
    wanted = set(cast("Iterable[int]", parameters["lengths"]))
    profile, per_length = cast("str", parameters["profile"]), cast("int", parameters["per_length"])
    shorter = cast("str", parameters.get("shorter", SHORTER[0]))
    split = cast("str", parameters.get("split", SPLITS[0]))
    made = [
        rows_of(
            task, lengths, seed=seed, profile=profile, stream=split, per_length=per_length, shorter=shorter
        )
        for task in chosen(parameters)
        if (lengths := [length for length in task.lengths if length in wanted])
    ]
    while row := [drafts for drafts in (next(task, None) for task in made) if drafts is not None]:
        yield from chain.from_iterable(row)


def rows_of(
    task: NupaTask,
    lengths: Sequence[int],
    *,
    seed: int,
    profile: str,
    stream: str = SPLITS[0],
    per_length: int | None = None,
    shorter: str = SHORTER[0],
) -> Iterator[list[Draft]]:
    """Yield one problem of each length that has more, again and again until none has; `per_length` of each.

    No example (`examples`) is among them. Where preparation changes lengths, the same problem could come of
    several; then all lengths are drawn, and only those asked for are kept.
    """
    drawn = task.lengths if task.relabels else lengths
    seen = [SeenOperands()] * len(drawn) if task.relabels else [SeenOperands() for _ in drawn]
    if stream != EXAMPLES:
        for memory, example in zip(seen, examples(task, drawn, profile=profile), strict=True):
            memory.add(example.operands)
    cells = [
        (length in lengths, islice(_cell(task, length, seed, profile, stream, memory, shorter), per_length))
        for length, memory in zip(drawn, seen, strict=True)
    ]
    at_once = 1 if task.relabels else _AT_ONCE
    while any(kept for kept, _ in cells):
        made = [(kept, cell, list(islice(cell, at_once))) for kept, cell in cells]
        cells = [(kept, cell) for kept, cell, drafts in made if drafts]
        for row in zip_longest(*(drafts for kept, _, drafts in made if kept)):
            yield [draft for draft in row if draft]


def examples(task: NupaTask, lengths: Sequence[int], *, profile: str) -> list[Draft]:
    """Return the worked example of each length, the same for every seed; no generated set holds it."""
    return next(rows_of(task, lengths, seed=0, profile=profile, stream=EXAMPLES, per_length=1))


def _cell(
    task: NupaTask, length: int, seed: int, profile: str, stream: str, seen: "SeenOperands", shorter: str
) -> Iterator[Draft]:
    name = f"nupa/{profile}/{PROFILES[profile]}/{seed}/{stream}/{task.name}/{length}"
    below = below_of(random.Random(name))
    drawn, choose = pairs_of(task.pool, task.representation, shorter=shorter), uniform(below)
    prepare = task.prepare
    if profile == "reference":
        prepare, choose = task.prepare_as_published, choose_by_operand
    write, draft_of = writing(task), _drafting(task, profile)
    index = in_vain = 0
    while in_vain < _IN_VAIN:
        operands = prepare(*drawn(below, length), choose)
        texts = write(operands)
        if seen.add(texts):
            in_vain = 0
            yield draft_of(operands, texts, index)
            index += 1
        else:
            in_vain += 1


class SeenOperands:
    """Operands that were there before: 8 bytes each, by a 64-bit digest."""

    def __init__(self) -> None:
        self._digests = array("Q")

    def add(self, operands: tuple[str, ...]) -> bool:
        """Return whether they are new; from now on they are not."""
        digest = int.from_bytes(blake2b(" ".join(operands).encode(), digest_size=8).digest())
        index = bisect_left(self._digests, digest)
        if index < len(self._digests) and self._digests[index] == digest:
            return False
        self._digests.insert(index, digest)
        return True


def draft_nupa(
    task: NupaTask,
    operands: tuple[str, ...],
    *,
    profile: str = "fixed",
    index: int = 0,
    expected: str | None = None,
) -> Draft:
    """Return the problem of a task with these operands, as they are written; `expected`: instead of ours.

    Raises:
        ValueError: they are not of the task's representations, or not as many as it takes.
    """
    needed = 1 if task.second is None else 2
    if len(operands) != needed:
        raise ValueError(f"{task.name} takes {needed} operands, not {len(operands)}: {operands}")
    kinds = task.representations_of(needed)
    numbers = tuple(parts(text, kind) for text, kind in zip(operands, kinds, strict=True))
    ours = _drafting(task, profile)(numbers, operands, index)
    return ours if expected is None else replace(ours, expected=expected)


@cache
def _drafting(task: NupaTask, profile: str) -> Callable[[Operands, tuple[str, ...], int], Draft]:
    """Return a function that makes a problem of operands, their texts and its number in its cell."""
    question, truths_of, openings = template(task, profile), _truths(task, profile), dict[int, str]()

    def drafted(operands: Operands, texts: tuple[str, ...], index: int) -> Draft:
        length = task.length(operands)
        if length not in openings:  # the beginning of `extra`, as JSON whose brace is still open
            facts = {
                "profile": profile,
                "task_name": task.name,
                "rep_b": PUBLISHED_NAMES[task.second or "none"],
                "rep_out": PUBLISHED_NAMES[task.answer],
                "length_class": task.length_class,
                "range": range_of(length, task.length_class),
            }
            openings[length] = json.dumps(facts)[:-1]
        expected, addition = truths_of(operands)
        return Draft(
            suite="nupa",
            task=task.task,
            variant=task.variant,
            representation=task.representation,
            length=length,
            operands=texts,
            question=question % texts,
            expected=expected,
            answer_type=task.answer_type,
            extra=f'{openings[length]}, "index": {index}{addition}}}',
        )

    return drafted


def _truths(task: NupaTask, profile: str) -> Callable[[Operands], tuple[str, str]]:
    """Return a function for the answer by a profile, and the other profile's one if it differs."""
    written = FORMS[task.answer_type].written
    truth, published = task.truth, task.truth_as_published
    if published is truth:
        return lambda operands: (written % truth(operands), "")
    ours, theirs = (truth, published) if profile == "fixed" else (published, truth)

    def both(operands: Operands) -> tuple[str, str]:
        expected, their_answer = written % ours(operands), written % theirs(operands)
        addition = f', "expected_{OTHER[profile]}": "{their_answer}"' if their_answer != expected else ""
        return expected, addition

    return both
