"""Names in backticks: what docstrings, comments and docs name is there.

A name of Python that we wrote must be one that the code uses. `module.NAME` must be in that module, and
`Class.attribute` in that class. In the docs, modules and names after `asyncbench.` or `ab.` must exist.
"""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import asyncbench as ab
from docs.generated import written_by_hand

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "asyncbench").rglob("*.py"))
CODE = re.compile(r"(?<!`)`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(\))?`(?!`)")
MODULE = re.compile(r"`((?:asyncbench/)?[a-z_]+(?:/[a-z_]+)+)(?:\.py)?`")
PUBLIC_NAME = re.compile(r"`(?:asyncbench|ab)\.([a-z_]\w*)(?:\([^`]*\))?`")
METADATA = ("schema_version",)  # of Parquet files, as `asyncbench.schema_version`
# Names of others: of APIs, of libraries, of JavaScript, JSON Schema and LaTeX, of files and their metadata.
OTHERS = {
    *("FinishReason.STOP", "QuotaFailure", "generateContent", "streamGenerateContent"),  # Google
    *("endTurn", "error.code", "random_seed"),  # AWS, OpenAI, Mistral
    *("SensitiveContentDetected.Violence", "kvCacheFull", "upstream_error"),  # Ark, servers, gateways
    *("EvalSample", "EvalSampleReductions", "EvalSampleSummary", "EvalSpec"),  # inspect_ai
    *("GenerateConfig", "ModelUsage"),
    *("__filename", "article", "Infinity", "multipleOf", "requests.Session", "toFixed"),
    *("asyncbench.document", "asyncbench.notes", "asyncbench.providers", "asyncbench.source"),
    *("batch_0.jsonl", "newyork", "overnight.bucket", "w003"),
}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


class Names:
    """Identifiers of our code: all, those of each module, and those of each class."""

    def __init__(self) -> None:
        self.all, self.libraries = set[str](), {"pandas", "polars"}
        self.of_owner = defaultdict[str, set[str]](set)  # a module or a class
        self.bases = defaultdict[str, list[str]](list)
        for path in MODULES:
            tree = tree_of(path)
            module = path.parent.name if path.name == "__init__.py" else path.stem
            self.of_owner[module].update(identifiers(tree))
            self.all.update(self.of_owner[module], path.relative_to(ROOT).with_suffix("").parts)
            for node in ast.walk(tree):
                match node:
                    case ast.ClassDef(name=name, bases=bases):
                        self.of_owner[name].update(identifiers(node))
                        self.bases[name] += [base.id for base in bases if isinstance(base, ast.Name)]
                    case ast.Import(names=aliases):
                        self.libraries.update(alias.asname or alias.name for alias in aliases)
                    case ast.ImportFrom(module=str(source), names=aliases) if "asyncbench" not in source:
                        self.libraries.update(alias.asname or alias.name for alias in aliases)

    def has(self, name: str) -> bool:
        """Return whether a name, of one part or several, is one of ours or of a library that we import."""
        first, *rest = name.split(".")
        if rest and first in self.libraries:
            return True
        if rest and first in self.of_owner:
            inherited = any(self.has(f"{base}.{rest[0]}") for base in self.bases[first])
            return rest[0] in self.of_owner[first] or inherited
        if rest and rest[0] != rest[0].lower():
            return False  # a constant or a class of a module that is not there
        return {first, *rest} <= self.all


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Yield the names that code defines or uses, and the words of its strings: keys, columns, SQL."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield from (*name.split("."), *filter(None, [other]))
            case ast.Constant(value=str(text)) if "`" not in text:  # docstrings name what must be elsewhere
                yield from re.findall(r"\w+", text)


@cache
def our_names() -> Names:
    return Names()


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module, with their lines."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.long
def test_names_in_docstrings_and_comments_are_those_of_the_code():
    stale = [
        f"{path.relative_to(ROOT)}:{line}: `{name}`"
        for path in MODULES
        for line, text in prose(path)
        for name in CODE.findall(text)
        if name not in OTHERS and not our_names().has(name)
    ]
    assert not stale, "\n".join(stale)


@pytest.mark.long  # as the test above, it reads the whole code
@pytest.mark.parametrize(
    ("name", "is_there"),
    [("kinds.KINDS", False), ("styles.STYLES", True), ("Model.alias", True), ("Model.serve", False)],
)
def test_a_name_is_looked_for_in_its_module_or_class(name, is_there):
    assert our_names().has(name) is is_there


def test_modules_and_public_names_in_the_docs_are_there():
    stale = []
    for page in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        text = written_by_hand(page.read_text("utf-8"))
        for name in MODULE.findall(text):
            path = ROOT / "asyncbench" / name.removeprefix("asyncbench/")
            if path.parent.is_dir() and not path.exists() and not path.with_suffix(".py").exists():
                stale.append(f"{page.relative_to(ROOT)}: `{name}`")
        stale += [
            f"{page.relative_to(ROOT)}: `{name}`"
            for name in PUBLIC_NAME.findall(text)
            if not hasattr(ab, name) and name not in METADATA and not (ROOT / "asyncbench" / name).is_dir()
        ]
    assert not stale, "\n".join(stale)
