"""Notebooks, run as Jupyter would: `python -m tests.docs.notebooks examples/*.ipynb` stores the outputs."""

import ast
import asyncio
import base64
import inspect
import io
import json
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any


def outputs(notebook: dict[str, Any], folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Run the cells of a notebook in a folder; yield what each of its code cells puts out."""
    names: dict[str, object] = {}
    with chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                yield _output("".join(cell["source"]), names)


def _output(source: str, names: dict[str, object]) -> list[dict[str, Any]]:
    tree, said, shown = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(said):
        _run(compile(tree, "cell", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if isinstance(last, ast.Expr):
            kept = ast.Expression(last.value)
            shown = _run(compile(kept, "cell", "eval", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    found: list[dict[str, Any]] = []
    if said.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": _lines(said.getvalue())})
    if shown is not None:
        result: dict[str, Any] = {"output_type": "execute_result", "execution_count": None, "metadata": {}}
        found.append(result | {"data": _shown(shown)})
    return found


def _run(code: Any, names: dict[str, object]) -> object:
    result: object = eval(code, names)  # noqa: S307  our own notebooks
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def _shown(value: Any) -> dict[str, Any]:
    """Return what Jupyter shows of a value, by media type."""
    if hasattr(value, "_repr_mimebundle_"):
        bundle = value._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        return {
            kind: base64.b64encode(part).decode() if isinstance(part, bytes) else part
            for kind, part in data.items()
        }
    html = {"text/html": _lines(value._repr_html_())} if hasattr(value, "_repr_html_") else {}
    return html | {"text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def store(path: Path) -> None:
    """Run a notebook where it stands and store its outputs in it."""
    notebook = json.loads(path.read_text("utf-8"))
    found = list(outputs(notebook, path.parent))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, put_out) in enumerate(zip(cells, found, strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = [
            one | ({"execution_count": number} if "execution_count" in one else {}) for one in put_out
        ]
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        store(Path(name))
