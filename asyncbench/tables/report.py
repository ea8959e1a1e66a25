"""Tables and reports as text, Markdown, LaTeX, HTML and JSON, and the line for simulated results.

What others wrote (models' names, questions, replies) is made harmless here, in every cell, title and note:
`safe` for a terminal, `safe_markdown` for Markdown, and after `safe` `latex.escaped` for LaTeX and `escape`
for HTML. JSON keeps it exactly.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, TypeVar

from rich.text import Text

from asyncbench.tables import html, latex, latex_tables
from asyncbench.tables.data import HIDDEN, data_of
from asyncbench.tables.gates import GateResult
from asyncbench.tables.headings import PER_CORRECT
from asyncbench.tables.numbers import MISSING
from asyncbench.tables.screen import (
    LONGEST_CELL,
    LONGEST_NOTE,
    NARROWEST,
    Cell,
    fits,
    fitted,
    render,
    safe,
    safe_note,
    safe_notes,
    shown_width,
)

SIMULATED = "SIMULATED: these replies came from asyncbench's own server on this machine. No model was asked."

Record = TypeVar("Record")
Columns = Mapping[str, Callable[[Record], Cell]]  # heading → the cell that a record has below it

# What would begin markup: spans, links, cells; tags; entities; addresses that become links by themselves.
_MARKS = re.compile(r"[\\`*\[\]|~]")
_TAG, _ENTITY, _ADDRESS = re.compile(r"<(?=[A-Za-z/!?])"), re.compile(r"&(?=#?\w+;)"), re.compile(r":(?=//)")


def safe_markdown(text: str, *, most: int = LONGEST_CELL) -> str:
    """Return the same with what Markdown or HTML would read as markup escaped."""
    return _escape_html(_MARKS.sub(r"\\\g<0>", safe(text, most=most)))


def safe_note_markdown(text: str) -> str:
    """Return the same for Markdown, with its `code` as it is."""
    marks = _MARKS.sub(lambda mark: mark[0] if mark[0] in "`\\" else f"\\{mark[0]}", safe_note(text))
    return _escape_html(marks)


def _escape_html(text: str) -> str:
    return _ADDRESS.sub("&#58;", _TAG.sub("&lt;", _ENTITY.sub("&amp;", text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table before it is text: whatever it is shown in."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    labels: int = 1  # the first so many columns are names, or other text
    legend: str = ""  # what its signs say; LaTeX has it in the caption
    name: str = ""  # LaTeX refers to it by `tab:NAME`
    upright: bool = False  # LaTeX sets names of figures upright where a line has no room for them
    gap: int = 2  # characters between columns, in text
    instead: Sequence["Sheet"] = ()  # the same in narrower sheets, for where this one does not fit
    drawn: Callable[[int | None], str] | None = None  # its text in so many characters, where it is no table

    @classmethod
    def of(
        cls, title: str, columns: Columns[Record], records: Iterable[Record], *, labels: int = 1
    ) -> "Sheet":
        """Return the table of some records, a row each."""
        rows = [[cell(record) for cell in columns.values()] for record in records]
        return cls(title=title, head=tuple(columns), rows=rows, labels=labels)

    def as_text(self, *, width: int | None = None) -> str:
        """Return it for a terminal of so many characters; what does not fit is as `fitted` has it."""
        if self.drawn is not None:
            return self.drawn(width)
        width = max(width or shown_width(), NARROWEST)
        if self.instead and not fits(self.head, self.rows, labels=self.labels, gap=self.gap, width=width):
            return "\n\n".join(sheet.as_text(width=width) for sheet in self.instead)
        table = fitted(self.head, self.rows, labels=self.labels, gap=self.gap, width=width)
        if not self.title:
            return table
        # Not the table's own title, which would be folded at the table's width.
        return f"{render(Text(safe(self.title), style='bold'), width=width)}\n{table}"

    def as_markdown(self) -> str:
        """Return it as a Markdown table under a heading, its names whole."""
        rule = "|" + "---|" * self.labels + "---:|" * (len(self.head) - self.labels)
        heading = [f"### {safe_markdown(self.title, most=LONGEST_NOTE)}", ""] if self.title else []
        head, *lines = (
            [
                safe_markdown(str(cell), most=LONGEST_NOTE if n < self.labels else LONGEST_CELL)
                for n, cell in enumerate(row)
            ]
            for row in (self.head, *self.rows)
        )
        head_line, *rest = (f"| {' | '.join(cells)} |" for cells in (head, *lines))
        return "\n".join([*heading, head_line, rule, *rest, ""])

    def as_latex(self) -> str:
        """Return it as a LaTeX table (booktabs) with a caption."""
        rows = [
            [
                safe(str(cell), most=LONGEST_NOTE if n < self.labels else LONGEST_CELL)
                for n, cell in enumerate(row)
            ]
            for row in self.rows
        ]
        head = list(map(safe_note, self.head))
        title, legend = safe_note(self.title), safe_note(self.legend)
        return latex_tables.table(
            head,
            rows,
            labels=self.labels,
            title=title,
            legend=legend,
            upright=self.upright,
            label=f"tab:{self.name}" if self.name else "",
        )


def filled(sheet: Sheet) -> Sheet:
    """Return a sheet without the columns of figures in which nothing stands.

    The cost per correct answer stays: there, a dash says that no answer is right.
    """
    kept = [
        n
        for n, name in enumerate(sheet.head)
        if n < sheet.labels
        or name == PER_CORRECT
        or any(str(row[n]) not in ("", MISSING) for row in sheet.rows)
    ]
    head, rows = [sheet.head[n] for n in kept], [[row[n] for n in kept] for row in sheet.rows]
    return replace(sheet, head=head, rows=rows, instead=tuple(map(filled, sheet.instead)))


def html_of(parts: Iterable[str | Sheet]) -> str:
    """Return notes and tables in HTML, one after the other, as notebooks show them."""
    return html.document(
        html.table(item.head, item.rows, labels=item.labels, title=item.title)
        if isinstance(item, Sheet)
        else html.paragraph(item)
        for item in parts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report: notes and tables for people, data for programs.

    A style is a subclass. It says what is in the report, and this class writes that in each form:

        notes_above     the notes above the tables
        sheets          the tables; one without rows is left out
        content         all that is shown, from top to bottom: by default `notes_above`, then `sheets`
        latex_content   the same for LaTeX, where a paper prints something else
        screen_text     the text, for a style that fits a screen
        heading         what its page is called, where its notes do not say it
        data            what `--json` has: by default the fields and marked properties of the report

    What its gates answered stands below the notes, in text at the end, and in JSON as `gates`.
    """

    apart: ClassVar[str] = "\n\n"  # what stands in text between notes and tables
    gates: tuple[GateResult, ...] = field(default=(), metadata=HIDDEN)

    def heading(self) -> str:
        """Return what its page is called, or an empty text."""
        return ""

    def notes_above(self) -> Iterator[str]:
        """Yield the notes above the tables."""
        return iter(())

    def sheets(self) -> Iterator[Sheet]:
        """Yield the tables."""
        return iter(())

    def content(self) -> Iterator[Any]:
        """Yield the content from top to bottom: a `str` is a note, anything else a `Sheet` with rows."""
        yield from self.notes_above()
        yield from (sheet for sheet in self.sheets() if sheet.rows)

    def latex_content(self) -> Iterator[Any]:
        """Yield the content for LaTeX; by default the same."""
        return self.content()

    def data(self) -> Mapping[str, object]:
        """Return the data for `--json`; by default the fields and properties of the report."""
        entries: Mapping[str, object] = data_of(self)
        return entries

    def screen_text(self, width: int | None, height: int | None) -> str:  # noqa: ARG002  of a style that fits a screen
        """Return the text of the content; a style that fits a screen has its own."""
        texts: list[str] = []
        for of_notes, items in groupby(self.content(), key=lambda item: isinstance(item, str)):
            if of_notes:
                texts.append("\n".join(safe_notes(items, width=width)))
            else:
                texts.extend(sheet.as_text(width=width) for sheet in items)
        return self.apart.join(texts)

    def as_text(self, *, width: int | None = None, height: int | None = None) -> str:
        """Return it for a terminal.

        Args:
            width: in characters; None: as wide as the terminal.
            height: in lines, for a style that fits a screen; None: as that style likes.
        """
        lines = safe_notes((gate.line for gate in self.gates), width=width)
        return "\n".join([self.screen_text(width, height), *lines])

    def as_markdown(self) -> str:
        """Return the same in Markdown."""
        return "\n".join(
            f"**{safe_note_markdown(item)}**\n" if isinstance(item, str) else item.as_markdown()
            for item in self.with_gates(self.content())
        )

    def as_latex(self) -> str:
        """Return the same in LaTeX."""
        return latex.document(
            item.as_latex() if isinstance(item, Sheet) else latex.paragraph(safe_note(item))
            for item in self.with_gates(self.latex_content())
        )

    def _repr_html_(self) -> str:
        """Return the same for a notebook, which shows it as the value of a cell."""
        return html_of(self.with_gates(self.content()))

    def as_json(self, *, indent: int | None = 2) -> str:
        """Return all data as JSON; `indent` None: on one line."""
        gates = {"gates": data_of(self.gates)} if self.gates else {}
        return json.dumps({**self.data(), **gates}, indent=indent, default=str)

    def with_gates(self, content: Iterable[Any]) -> list[Any]:
        """Return the content, with what the gates answered below its first notes."""
        items = list(content)
        notes = next((n for n, item in enumerate(items) if not isinstance(item, str)), len(items))
        return [*items[:notes], *(gate.line for gate in self.gates), *items[notes:]]
