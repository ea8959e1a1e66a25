"""Questions that a file of one's own asks more than once, perhaps with another answer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final

from asyncbench.errors import ProblemSetError
from asyncbench.problems.custom import Custom, placed_drafts
from asyncbench.problems.schema import Occurrences
from asyncbench.records import Draft

MOST_NAMED: Final = 10  # questions, in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """Which questions of a file are there more than once."""

    problems: int
    questions: int  # that differ
    named: tuple[str, ...]  # the rows of the first such questions
    contradicted: int  # questions with several answers, of which one reply cannot meet all
    contradictions: tuple[str, ...]  # the rows of the first of them

    @property
    def notes(self) -> Iterator[str]:
        """What to know before they are asked."""
        count = f"{self.questions:,} distinct questions of {self.problems:,}"
        yield f"{count}: the others are asked again, and count again. Asked twice: {_listed(self.named)}"
        if self.contradicted:
            yield (
                f"{self.contradicted:,} of these questions have more than one answer, so no reply is right "
                f"each time: {_listed(self.contradictions)} Correct them, or list the accepted answers."
            )


def _listed(rows: tuple[str, ...]) -> str:
    return f"{'; '.join(rows)}{'; …' if len(rows) == MOST_NAMED else '.'}"


class QuestionCount:
    """Counts the different questions of a file that passes by, in flat memory."""

    def __init__(self) -> None:
        self.problems, self.questions = 0, 0
        self._seen = Occurrences()

    def counted(self, drafts: Iterable[Draft]) -> Iterator[Draft]:
        """Yield problems as they come."""
        for draft in drafts:
            self.problems += 1
            self.questions += not self._seen.add(_digest(draft.question))
            yield draft

    def repeats(self, path: Path, custom: Custom) -> Repeats | None:
        """Return the repeated questions, from a second reading of the file, or None if all are there once."""
        if self.questions == self.problems:
            return None
        lines, answers = dict[int, list[str]](), dict[int, dict[int, str]]()
        for place, draft in placed_drafts(path, custom):
            if isinstance(draft, ProblemSetError):
                raise draft  # it has changed since
            question = _digest(draft.question)
            if self._seen.count(question) < 2:
                continue
            line = f"{place.removeprefix(f'{path}, ')} ({draft.expected:.40})"
            answers.setdefault(question, {}).setdefault(_digest(draft.expected + draft.extra), line)
            if question in lines or len(lines) < MOST_NAMED:
                lines.setdefault(question, []).append(line)
        contradictions = [[*by_answer.values()] for by_answer in answers.values() if len(by_answer) > 1]
        return Repeats(
            problems=self.problems,
            questions=self.questions,
            named=tuple(map(_together, lines.values())),
            contradicted=len(contradictions),
            contradictions=tuple(map(_together, contradictions[:MOST_NAMED])),
        )


def _together(lines: list[str]) -> str:
    return f"{' and '.join(lines[:4])}{' …' if len(lines) > 4 else ''}"


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
