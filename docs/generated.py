"""Texts that pages take from the code: each stands below `<!-- from the code: NAME -->` in its page.

`python -m docs.generated` writes them again.
"""

import inspect
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

import asyncbench as ab
from asyncbench import errors
from asyncbench.analysis.anatomy.error import OF_ANSWERS, OF_REPLIES, UNCLASSIFIED
from asyncbench.analysis.pairing import ModelPair
from asyncbench.cli import COMMANDS, app
from asyncbench.config.sweep_file import sweep_schema
from asyncbench.planning.records import ModelPlan
from asyncbench.providers.endpoints import KnownEndpoint, known_endpoints
from asyncbench.reports.comparison.pair import ComparisonRow
from asyncbench.reports.overview import OverviewLine
from asyncbench.reports.sweeps import SweepRow
from asyncbench.store.schema import MEANINGS, SCHEMAS
from asyncbench.suites.custom import GRADERS
from asyncbench.suites.table import SUITES
from asyncbench.tables.headings import HEADINGS

ROOT = Path(__file__).resolve().parent.parent
_MARK = re.compile(r"^<!-- from the code: (\S+) -->$(?:.*?^<!-- end of \1 -->$)?", re.MULTILINE | re.DOTALL)
_EXAMPLES = re.compile(r"^(?:asyncbench \S.*\n+)+", re.MULTILINE)
_KINDS = {
    "array": "list",
    "boolean": "true or false",
    "integer": "whole number",
    "null": "",
    "number": "number",
    "object": "mapping",
    "string": "text",
}
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")  # of a type in a signature


def filled(page: str) -> str:
    """Return a page with the texts that its marks name, and no marks."""
    return _MARK.sub(lambda mark: TEXTS[mark[1]](), page)


def renewed(page: str) -> str:
    """Return a page with the texts that its marks name, each between two marks."""

    def between_marks(mark: re.Match[str]) -> str:
        name = mark[1]
        return f"<!-- from the code: {name} -->\n\n{TEXTS[name]()}\n\n<!-- end of {name} -->"

    return _MARK.sub(between_marks, page)


def written_by_hand(page: str) -> str:
    """Return a page without what it takes from the code."""
    return _MARK.sub(lambda mark: f"<!-- from the code: {mark[1]} -->", page)


def pages_from_code() -> list[Path]:
    """Return the pages that take texts from the code."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in pages if _MARK.search(page.read_text("utf-8"))]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def commands() -> str:
    """Return a table for each group of commands, with a link to each, then the options of all."""
    group: Any = typer.main.get_command(app)  # Any: a group of click, of which typer has a copy
    texts = []
    for title, names in COMMANDS.items():
        rows = [
            (
                f"[`{name}`](commands/{title.lower()}.md#asyncbench-{name})",
                _first_paragraph(group.commands[name].help),
            )
            for name in names
        ]
        texts.append(f"## {title}\n\n{table(('command', 'for'), rows)}")
    options = [(f"`{option.opts[0]}`", _unwrapped(option.help)) for option in group.params]
    return "\n\n".join([*texts, f"## Options\n\n{table(('option', 'for'), options)}"])


def command_group(title: str) -> str:
    """Return every command of a group with its arguments and options, as typer describes them."""
    group = typer.main.get_command(app)
    context = typer.Context(group, info_name="asyncbench", terminal_width=80, **group.context_settings)
    text = get_docs_for_click(obj=group, ctx=context, name="asyncbench")
    sections = re.split(r"^(?=## `asyncbench )", text, flags=re.MULTILINE)[1:]
    each = {re.match(r"## `asyncbench (\S+)`", section)[1]: section for section in sections}  # type: ignore[index]  # each begins so
    chosen = "".join(each[name] for name in COMMANDS[title])
    shown = _EXAMPLES.sub(lambda match: f"```console\n{match[0].strip()}\n```\n\n", chosen)
    return shown.replace("\n$ asyncbench", "\nasyncbench").rstrip()


def columns() -> str:
    """Return every column of every table of a results folder."""
    texts = []
    for name, schema in SCHEMAS.items():
        rows = ((f"`{field.name}`", f"{field.type}", MEANINGS[name][field.name]) for field in schema)
        texts.append(f"## {name}\n\n{table(('column', 'type', 'meaning'), rows)}")
    return "\n\n".join(texts)


def names() -> str:
    """Return every public function with its signature and docstring, then every error."""
    texts = [_function(name, getattr(ab, name)) for name in ab.__all__]
    kinds = [
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
    ]
    rows = ((f"`{kind.__name__}`", _first_paragraph(inspect.getdoc(kind) or "")) for kind in kinds)
    return "\n\n".join([*texts, "## Errors", table(("error", "when"), rows)])


# Records that programs read: how one is reached → the class.
RECORDS: Mapping[str, type] = {
    "ab.report(folder).suites[0]": OverviewLine,
    "ab.compare(a, b, folder).found.rows[0]": ComparisonRow,
    "ab.compare(a, b, folder).found.rows[0].found": ModelPair,
    "ab.plan(sweep).models[0]": ModelPlan,
    "ab.list_sweeps(folder).sweeps[0]": SweepRow,
}
# A field of a record, with its type and the comment behind it.
_FIELD = re.compile(r"^    (\w+): ([^#=\n]+?)(?: = [^#\n]+?)?(?:  # (.*))?$", re.MULTILINE)


def attributes() -> str:
    """Return the attributes of records that programs read, as their fields and properties say."""
    texts = []
    for reached, record in RECORDS.items():
        rows = [
            (f"`{name}`", f"`{kind}`", meaning)
            for name, kind, meaning in _FIELD.findall(inspect.getsource(record))
        ]
        rows += [
            (
                f"`{name}`",
                f"`{inspect.get_annotations(member.fget)['return']}`",
                _first_paragraph(member.__doc__),
            )
            for name, member in vars(record).items()
            if isinstance(member, property) and member.fget and member.__doc__
        ]
        texts.append(f"### `{reached}`\n\n{table(('attribute', 'type', 'meaning'), rows)}")
    return "\n\n".join(texts)


def _function(name: str, function: Callable[..., object]) -> str:
    begin = f"{'await ' * inspect.iscoroutinefunction(function)}ab.{name}"
    signature = inspect.signature(function)
    parameters = [_MODULE.sub("", str(parameter)) for parameter in signature.parameters.values()]
    named = [parameter.kind is parameter.KEYWORD_ONLY for parameter in signature.parameters.values()]
    if any(named) and not any(text.startswith("*") and text[1] != "*" for text in parameters):
        parameters.insert(named.index(True), "*")
    whole = f"{begin}({', '.join(parameters)})"
    if len(whole) > 90:
        whole = f"{begin}(\n{''.join(f'    {parameter},{chr(10)}' for parameter in parameters)})"
    answer = _MODULE.sub("", inspect.formatannotation(signature.return_annotation))
    return f"## {name}\n\n```python\n{whole} -> {answer}\n```\n\n{_docstring(inspect.getdoc(function) or '')}"


def _docstring(text: str) -> str:
    """Return a docstring as Markdown: what `Args:` and `Raises:` name becomes lists."""
    first, *sections = re.split(r"^(Args|Raises|Returns|Yields):\n", text, flags=re.MULTILINE)
    parts = [first.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        entries = re.split(r"\n(?! )", inspect.cleandoc(f"\n{body}"))
        parts.append(f"**{title}**\n\n" + "\n".join(map(_entry, entries)))
    return "\n\n".join(parts)


def _entry(text: str) -> str:
    named = re.match(r"(\*{0,2}\w+(?:, \w+)*): (.*)", whole := _unwrapped(text))
    return f"- `{named[1].replace(', ', '`, `')}`: {named[2]}" if named else whole


def _unwrapped(text: str) -> str:
    return " ".join(text.split())


def _first_paragraph(text: str) -> str:
    return _unwrapped(text.partition("\n\n")[0])


def suites() -> str:
    """Return every suite with its graders and the parameters of its generator."""
    texts = []
    for name, suite in SUITES.items():
        graders = ", ".join(f"`{grader}`" for grader in suite.graders)
        rows = [
            (f"`{parameter}`", _default(meaning.default), meaning.help)
            for parameter, meaning in suite.parameters.items()
        ]
        shown = f"\n\n{table(('parameter', 'default', 'meaning'), rows)}" if rows else ""
        texts.append(f"### {name}\n\nGraders: {graders}.{shown}")
    return "\n\n".join(texts)


def own_graders() -> str:
    """Return the graders of a file of one's own."""
    rows = [(f"`{name}`", grader.reads, grader.right) for name, grader in GRADERS.items()]
    return table(("grader", "reads in the reply", "right when"), rows)


def _default(value: object) -> str:
    if value is None:
        return ""
    words = [str(word) for word in value] if isinstance(value, tuple) else [str(value)]
    if len(words) > 20:
        words = [words[0], "…", words[-1]]
    return f"`{','.join(words)}`"


def providers() -> str:
    """Return every provider: how it is reached, and the variable of its key."""
    rows = [
        (
            f"`{name}/…`",
            ", ".join(f"`{api}`" for api in endpoint.apis),
            _address(endpoint),
            f"`{endpoint.key_env}`" if endpoint.key_env else endpoint.credentials or "none needed",
            "yes" if endpoint.prices else "",
            endpoint.batch_support or "",
        )
        for name, endpoint in known_endpoints().items()
    ]
    return table(("model", "`api`", "address", "key", "price known", "batches"), rows)


def _address(endpoint: KnownEndpoint) -> str:
    if endpoint.simulated:
        return "a simulator that `run` starts"
    if endpoint.base_url:
        return f"`{endpoint.base_url}`"
    return f"your `base_url`: `{endpoint.base_url_form}`" if endpoint.base_url_form else "the SDK's own"


# The pages of a sweep file: the key that names each → the keys whose levels it explains.
SWEEP_PAGES: Mapping[str, Collection[str]] = {
    "problems": ("problems", "sample"),
    "models": ("models", "price", "client_cert"),
    "limits": ("limits", "retry", "timeouts", "stop_when"),
    "conditions": ("conditions",),
    "batch": ("batch",),
    "load": ("load", "find", "slo"),
    "notify": ("notify", "track"),
}


def sweep_file() -> str:
    """Return the keys of the file itself, with links to those that have keys below them."""
    text = _level(sweep_schema())
    for page, keys in SWEEP_PAGES.items():
        for key in keys:
            text = text.replace(f"| `{key}` |", f"| [`{key}`](sweep-file/{page}.md#in-{key}) |")
    return text


def sweep_keys(page: str) -> str:
    """Return the keys below the keys of a page."""
    below = keys_below()
    return "\n\n".join(f"## In `{key}`\n\n{below[key]}" for key in SWEEP_PAGES[page])


def keys_below() -> dict[str, str]:
    """Return, for each key that holds others, what these are."""
    schema = sweep_schema()
    texts = dict[str, str]()
    for level in (schema, *schema["$defs"].values()):
        for key, rule in level["properties"].items():
            below = dict.fromkeys(re.findall(r"#/\$defs/(\w+)", str(rule)))
            if below and key not in texts:
                texts[key] = "\n\n".join(_level(schema["$defs"][name]) for name in below)
    return texts


def _level(level: Mapping[str, Any]) -> str:
    rows = [_key(name, level) for name in _in_order(level)]
    return f"{_unwrapped(level['description'])}\n\n{table(('key', 'value', 'default', 'meaning'), rows)}"


def _in_order(level: Mapping[str, Any]) -> list[str]:
    """Return the keys of a level: those that it needs first."""
    return sorted(level["properties"], key=lambda name: name not in level.get("required", ()))


def _key(name: str, level: Mapping[str, Any]) -> tuple[str, str, str, str]:
    rule = level["properties"][name]
    default = rule.get("default")
    shown = "needed" if name in level.get("required", ()) else ""
    if default not in (None, [], {}):
        shown = f"`{json.dumps(default)}`"
    return f"`{name}`", _kinds(rule), shown, rule.get("description", "")


def _kinds(rule: Mapping[str, Any]) -> str:
    """Return which values a JSON schema allows, in words."""
    if isinstance(rule.get("type"), list):
        return _kinds({"anyOf": [{**rule, "type": kind} for kind in rule["type"]]})
    if "anyOf" in rule:
        return " or ".join(dict.fromkeys(filter(None, map(_kinds, rule["anyOf"]))))
    if "enum" in rule or "const" in rule:
        return ", ".join(f"`{json.dumps(value)}`" for value in rule.get("enum", [rule.get("const")]))
    if rule.get("type") == "array":
        return f"list of {_kinds(rule.get('items', {})) or 'values'}"
    return _KINDS["object" if "$ref" in rule else rule.get("type", "null")]


def headings() -> str:
    """Return the headings of all reports with their meanings."""
    return table(("heading", "meaning"), HEADINGS.items())


def kinds(named: Mapping[str, str]) -> str:
    """Return kinds of wrong answers in their order."""
    return table(("kind", "meaning"), ((f"`{kind}`", meaning) for kind, meaning in named.items()))


TEXTS: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    **{f"commands-{title.lower()}": partial(command_group, title) for title in COMMANDS},
    "sweep-file": sweep_file,
    **{f"sweep-{page}": partial(sweep_keys, page) for page in SWEEP_PAGES},
    "columns": columns,
    "names": names,
    "attributes": attributes,
    "suites": suites,
    "own-graders": own_graders,
    "providers": providers,
    "headings": headings,
    "kinds-of-replies": partial(kinds, OF_REPLIES),
    "kinds-of-answers": partial(kinds, {**OF_ANSWERS, UNCLASSIFIED: "none of these"}),
}


def main() -> None:
    """Write the texts into their pages, and name the pages that changed."""
    for page in pages_from_code():
        before = page.read_text("utf-8")
        if (after := renewed(before)) != before:
            page.write_text(after, "utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
