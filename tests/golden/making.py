"""What is kept of the recorded data: numbers, ids and hashes, and no reply's text.

In place of a reply stands a form like `**{parsed}**`: an invented text, the first of a few that every grader
reads as it read the recorded one.
"""

import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from asyncbench.analysis.anatomy.error import anatomy
from asyncbench.problems.schema import identified
from asyncbench.records import Draft, Problem, Reply
from asyncbench.suites.llm_arithmetic import bare_number, draft_arithmetic
from asyncbench.suites.nupa.generation import draft_nupa
from asyncbench.suites.nupa.grading import GRADERS
from asyncbench.suites.nupa.tasks import TASKS
from asyncbench.suites.table import grade, grade_text
from tests.golden import FACTS
from tests.recorded import json_lines, nupa_outputs, nupa_problems, output_of, rows, texts_of

Rows = Sequence[Mapping[str, Any]]
CORPUS = "llm_arithmetic/corpus.parquet"
COPIED = ("llm_arithmetic/published_table.json", "llm_arithmetic/prices.csv")
FORMS = (
    *("", "{parsed}", "{typed}", "= {parsed}", "= {typed}", "**{parsed}**", "**{typed}**"),
    *("**{parsed}**<think>", "<think>{typed}", "**{parsed}.5**", "**{parsed}01**"),
    r"\boxed{{{parsed}}} {legacy}",
)
NUPA_FORMS = ("", "The answer is {strict}", "The answer is {signed}", "It is {search}")
OF_THE_TASK = ("question", "task", "representation", "second", "output_representation")
READ = ("id", "problem_id", "kind", "strict_chat", "strict_completion", "search")


def facts(golden: Path) -> dict[str, Rows | str]:
    """Return all that is kept of a folder of recorded data, by file."""
    return {
        CORPUS: [_fact(row) for row in rows(golden)],
        **{name: (golden / name).read_text("utf-8") for name in COPIED},
        "nupa/problems.jsonl.gz": [_problem_facts(row) for row in nupa_problems(golden).values()],
        "nupa/scoring.jsonl.gz": list(_readings(golden)),
        "nupa/aggregate.jsonl.gz": json_lines(golden / "nupa" / "aggregate.jsonl"),
        "published.json": json.dumps(_printed(golden), indent=1) + "\n",
    }


def differences(made: Mapping[str, Rows | str]) -> Iterator[tuple[str, str]]:
    """Yield each file whose facts are others than those kept, and the first that differs."""
    for name, new in made.items():
        if not (FACTS / name).exists():
            yield name, "is new"
        elif (old := kept(name)) != new:
            was, now = _as_lines(old), _as_lines(new)
            pairs = enumerate(zip(was, now, strict=False), 1)
            lines = (f"line {n} was {a}\n and is {b}" for n, (a, b) in pairs if a != b)
            yield name, f"{len(was)} lines, now {len(now)}; {next(lines, 'no other differs')}"


def kept(name: str) -> Rows | str:
    """Return the facts of a file in this folder."""
    path = FACTS / name
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    return json_lines(path) if path.suffix == ".gz" else path.read_text("utf-8")


def write(made: Mapping[str, Rows | str]) -> None:
    """Write facts, packed well and the same each time."""
    for name, content in made.items():
        path = FACTS / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, "utf-8")
        elif path.suffix == ".parquet":
            pq.write_table(_table(content), path, compression="zstd", compression_level=19)
        else:
            text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in content)
            path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _table(content: Rows) -> pa.Table:
    """Return rows of the corpus as a table: whole numbers have 64 bits, whoever has them."""
    return pa.table({name: [row[name] for row in content] for name in content[0]})


def _as_lines(content: Rows | str) -> Sequence[object]:
    return content.splitlines() if isinstance(content, str) else content


def hashed(text: str) -> str:
    """Return a hash that tells texts apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ── replies of llm_arithmetic ────────────────────────────────────────────────────────────────


def _fact(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the corpus with a form in place of the reply."""
    reply, problem = row["raw_response"], _problem_of(row)
    _, legacy, _ = grade(problem, Reply(text=reply))
    numbers = {"parsed": row["parsed"], "legacy": legacy.answer, "typed": _typed(reply)}
    read = _read(problem, reply)
    form = _first(FORMS, lambda form: _read(problem, form.format_map(numbers)) == read)
    if form is None:
        raise SystemExit(f"no form reads as trial {row['trial_index']} of {row['source_file']} does; add one")
    named = {name: numbers[name] if name in form else None for name in ("legacy", "typed")}
    return {name: value for name, value in row.items() if name != "raw_response"} | {"form": form} | named


def _first(forms: Sequence[str], fits: Callable[[str], bool]) -> str | None:
    return next(filter(fits, forms), None)


def _problem_of(row: Mapping[str, Any]) -> Problem:
    lhs, rhs = row["lhs"], row["rhs"]
    return _identified(draft_arithmetic(row["variant"], row["depth"], lhs, rhs, expected=row["correct"]))


def _identified(draft: Draft) -> Problem:
    (problem,) = identified([draft])
    return problem


def _typed(text: str) -> str:
    """Return the last number as it was typed: digits, what parts their groups, an exponent."""
    numbers = list(re.finditer(r"-?\d(?:[\d.,\s]*\d)?(?:[eE][-+]?\d+)?", text))
    return numbers[-1][0] if numbers else ""


def _read(problem: Problem, text: str) -> tuple[object, object]:
    """Return what the documents' graders read, whether it is a bare number, and what is wrong with it."""
    headline, legacy, _ = grade(problem, Reply(text=text))
    bare = bare_number(text) is not None
    grades = [replace(one, format_ok=bare) for one in (headline, legacy)]
    wrong = anatomy(
        problem.expected,
        headline.answer,
        text,
        answer_type=problem.answer_type,
        task=problem.task,
        operands=problem.operands,
    )
    return grades, None if headline.exact_match else wrong


# ── problems and outputs of NUPA ─────────────────────────────────────────────────────────────


def _problem_facts(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without what its task says; of its question a hash is kept."""
    facts = {name: value for name, value in row.items() if name not in OF_THE_TASK}
    return facts | {"question_sha256": hashed(row["question"])}


def _readings(golden: Path) -> Iterator[dict[str, Any]]:
    """Yield what was read in each output, with a form in place of the output."""
    for asked, row in nupa_outputs(golden):
        draft = draft_nupa(TASKS[asked["task_name"]], texts_of(asked), profile="reference")
        form = _first(NUPA_FORMS, partial(_reads_as, _identified(draft), row))
        if form is None:
            raise SystemExit(f"no form reads as output {row['id']} of NUPA does; add one")
        yield {name: row[name] for name in READ} | {"form": form}


def _reads_as(problem: Problem, row: Mapping[str, Any], form: str) -> bool:
    invented, recorded = (
        [replace(one, headline=False) for one in grade_text(problem, text) if one.grader in GRADERS]
        for text in (output_of({**row, "form": form}), row["output"])
    )
    return invented == recorded


# ── printed tables ───────────────────────────────────────────────────────────────────────────


def _printed(golden: Path) -> dict[str, str]:
    """Return the hash of each printed table."""
    files = sorted((golden / "published").glob("*.csv"))
    return {file.stem: hashed(file.read_text("utf-8")) for file in files}
