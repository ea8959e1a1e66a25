"""Every command that prints JSON, run once for a whole test session: what each printed, and its exit code."""

import csv
import json
import re
import shutil
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pytest
import time_machine
import yaml

from asyncbench import generate, read_trials, report
from asyncbench.reports.styles import STYLES
from asyncbench.run import checkup
from asyncbench.run.control import NOTE
from asyncbench.simulator.process import Simulator
from asyncbench.store.schema import ENTRANT
from tests.commands import asyncbench_here
from tests.contracts.night import LLM_ARITHMETIC, SETS, write_night
from tests.processes import Forked, until
from tests.reports.load_folders import Loaded, load_folder
from tests.simulators import page
from tests.sweep_files import base_url, simulator
from tests.upkeep.exchange.made import jsonl, result_file, trial

WRITTEN = ("night", "load")  # folders whose every time is given
PRINTED = "printed.jsonl"
RAN = "ran"  # the folder of a sweep that really ran
FOLDERS = (*WRITTEN, RAN, "loaded", "batches", "imported", "merged")  # whose files are looked at
FORMATS = ("llm-arithmetic", "integer-addition", "nupa")
KEYS = ("run", "sweep", "model", "condition", "suite", "task")  # what a JSON object may be keyed by
LABELS = (*KEYS, "variant", "representation", "load")
FEW = {"seed": 3, "trials": 1, "depths": [2, 4], "variants": ["int_add", "int_mul", "float_add"]}
ASKED = [  # ways to ask a problem
    {"name": "plain"},
    {"name": "brief", "system": "Be brief."},
    {"name": "late", "context": "1k"},
    {"name": "worded", "template": "Compute {question}"},
    {"name": "spaced", "digits": ["spaced"]},
    {"name": "more", "params": {"verbosity": "low"}},
]
PRICE = {"input": 2, "output": 8, "batch": 0.5}  # USD for a million tokens


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What a command printed as JSON."""

    command: str  # the command as its contract names it, such as `report --style cost`
    words: str  # what was typed, without folders
    exit: int | None  # None: it depends on the machine
    documents: list[Any]

    @property
    def is_json(self) -> bool:
        """Whether it is JSON; else the headings of tables."""
        return not self.command.startswith(("markdown", "latex", "csv"))


@dataclass(frozen=True)
class Session:
    """The folders of a session, and what was printed of them."""

    folder: Path

    @cached_property
    def printed(self) -> list[Printed]:
        """What each command printed, in order."""
        lines = (self.folder / PRINTED).read_text("utf-8").splitlines()
        return [Printed(**json.loads(line)) for line in lines]

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of models, tasks and the like, which differ from sweep to sweep."""
        return names_in(*self._folders)

    @cached_property
    def keys(self) -> frozenset[str]:
        """Those of them that are keys of JSON objects."""
        return names_in(*self._folders, columns=KEYS)

    @property
    def _folders(self) -> list[Path]:
        return [path for name in (*WRITTEN, RAN) if (path := self.folder / name).exists()]


def names_in(*folders: Path, columns: Sequence[str] = LABELS) -> frozenset[str]:
    """Return the names of models, tasks and the like in these folders."""
    tables = (read_trials(folder, columns=columns) for folder in folders)
    return frozenset(
        name for table in tables for column in table.columns for name in column.unique().to_pylist() if name
    )


def choice_for(style: str | None, folder: Path) -> dict[str, Any]:  # Any: arguments of `report`
    """Return what a style needs to be told: one that is of a single model, the first that was asked."""
    asked = sorted(map(tuple, (row.values() for row in read_trials(folder, columns=ENTRANT).to_pylist())))
    if not STYLES[style].single or not asked:
        return {}
    run, model, condition = asked[0]
    return {"models": [model], "where": f"run = '{run}' AND condition = '{condition}'"}


def observe_written(folder: Path) -> None:
    """Make the folders whose times are given, and report on them."""
    write_night(folder / "night")
    write_load(folder / "load")
    for style, name in product(STYLES, WRITTEN):
        _observe_report(_Writer(folder), name, style)


def under_another_clock(folder: Path) -> None:
    """Do the same half a year later, half a world away."""
    later = datetime.now(UTC) + timedelta(days=190, hours=5, minutes=17)
    with pytest.MonkeyPatch.context() as patched, time_machine.travel(later):
        patched.setenv("TZ", "Pacific/Chatham")  # 13 and 3/4 hours before UTC in its summer
        time.tzset()
        try:
            observe_written(folder)
        finally:
            patched.undo()
            time.tzset()


def observe(folder: Path, *, written: Path) -> None:
    """Take over what `observe_written` made, make the other folders and run the commands."""
    for name in (*WRITTEN, SETS):
        shutil.copytree(written / name, folder / name)
    shutil.copy(written / PRINTED, folder)

    writer = _Writer(folder)
    with simulator(_problems(writer), latency_s=0.05) as server:
        _observe_runs(writer, server)
        _observe_control(writer, server)
        _observe_batches(writer, server)
        _observe_checkups(writer, server)
    _observe_reports(writer)
    _observe_files(writer)
    _observe_lists(writer)


def write_load(folder: Path) -> None:
    """Write a load of two models: one that slows down with the rate, one that refuses at the highest."""
    slow = Loaded(model="slow", calls=80, latency_s=lambda rate, n: 0.25 * rate + n / 50)
    again = replace(slow, rates=(2.0,), round=2, begins_s=300.0, right=lambda _, n: n % 3 > 0)
    full = Loaded(
        model="full",
        calls=60,
        provider="anthropic",
        refused=lambda rate, n: rate > 2 and n % 3 == 0,
        retry_after_s=1.0,
        first=10,
        begins_s=7.0,
    )
    load_folder(folder, [slow, again, full])


class _Writer:
    """Runs commands in a folder and writes down what they print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, command: str, *words: object, steady: bool = True) -> None:
        """Run a command that prints JSON; `steady`: its exit code does not depend on the machine."""
        done = asyncbench_here(*words, "--json")
        assert done.stdout, f"{words} printed nothing: {done.stderr[-2000:]}"
        self.keep(command, words, cast("int", done.returncode) if steady else None, documents_in(done.stdout))

    def keep(self, command: str, words: Iterable[object], exits: int | None, documents: list[Any]) -> None:
        """Write down what was printed."""
        # Paths begin below the folder, which is itself `.`.
        typed = " ".join(
            str(word).replace(f"{self.folder}/", "").replace(str(self.folder), ".") for word in words
        )
        printed = Printed(command=command, words=typed, exit=exits, documents=documents)
        with (self.folder / PRINTED).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(printed)) + "\n")

    def sweep(self, name: str, *models: Mapping[str, object], **keys: object) -> Path:
        """Write a sweep file whose results go to the folder of its name."""
        path = self.folder / f"{name}.yaml"
        problems = [str(self.folder / "few.parquet")]
        content = {"name": name, "problems": problems, "models": list(models), "out": str(self.folder / name)}
        path.write_text(yaml.safe_dump(content | keys), "utf-8")
        return path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name


def documents_in(text: str) -> list[Any]:
    """Return what was printed: one JSON document, or one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return list(map(json.loads, text.splitlines()))


def _problems(writer: _Writer) -> Path:
    path = writer / "few.parquet"
    generate(LLM_ARITHMETIC, path, **FEW)  # type: ignore[arg-type]  # the seed is a number
    return path


def _entry(server: Simulator, model: str, **keys: object) -> dict[str, object]:
    named = {"model": model, "base_url": base_url(server, model.split("/")[0])}
    return named | {"price": PRICE, "max_tokens": 128} | keys


def _observe_runs(writer: _Writer, server: Simulator) -> None:
    models = [_entry(server, f"simulated{via}/noisy", alias=f"m{via}") for via in ("", "-anthropic", "-http")]
    message = writer / "message.json"
    sweep = writer.sweep(
        "ran",
        *models,
        budget_usd=5,
        repeats=2,
        problems=[{"suite": LLM_ARITHMETIC, **FEW}],
        notify={"command": f"tee {message}"},
    )
    steps = {
        "rates": [10],
        "slo": {"latency": 20, "share": 0.5},
        "arrivals": "constant",
        "duration": "1s",
        "warmup": "0.2s",
        "rest": 0,
    }
    own = _entry(server, "simulated/noisy", alias="m")
    del own["base_url"]  # the run starts a server of its own
    load = writer.sweep("loaded", own, load=steps)
    writer.run("plan", "plan", sweep)
    writer.run("plan", "plan", load)
    writer.run("plan", "plan", sweep, "--pilot", 1)
    writer.run("run", "run", sweep)
    writer.keep("message of notify", (), None, documents_in(message.read_text("utf-8")))
    writer.run("plan", "plan", sweep)
    writer.run("load", "load", load, steady=False)
    poor = _entry(server, "simulated/noisy", alias="m", concurrency=1)
    writer.run("run", "run", writer.sweep("poor", poor, budget_usd=0.002))
    for folder in (*WRITTEN, RAN):
        writer.run("status", "status", writer / folder)
    writer.run("status", "status", writer / RAN, "--follow")
    writer.run("status of a folder above several sweeps", "status", writer.folder)
    writer.run("status --verify", "status", writer / RAN, "--verify")
    writer.run("cancel", "cancel", writer / RAN)
    damaged = shutil.copytree(writer / RAN, writer / "damaged")
    next((damaged / "grades").rglob("*.parquet")).write_bytes(b"PAR1")
    writer.run("status --verify", "status", damaged, "--verify")


def _observe_control(writer: _Writer, server: Simulator) -> None:
    """Pause, change and resume a run that goes on in a process of its own."""
    slow = writer.sweep("slow", _entry(server, "simulated/noisy", alias="m", rpm=60), workers=1)
    out = writer / "slow"
    with (writer / "slow.txt").open("w") as said:
        process = Forked("asyncbench", "run", slow, "--quiet", stdout=said.fileno(), stderr=said.fileno())
    try:
        until((out / NOTE).exists)
        writer.run("pause", "pause", out)
        writer.run("set", "set", out, "rpm=90", "concurrency=2")
        writer.run("resume", "resume", out)
        writer.run("status of a run that goes on", "status", out)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _observe_batches(writer: _Writer, server: Simulator) -> None:
    batch = _entry(server, "simulated/noisy", alias="m", mode="batch")
    sweep = writer.sweep("batches", batch, batch={"max_requests": 4})
    writer.run("plan", "plan", sweep)
    writer.run("run --detach", "run", sweep, "--detach")
    writer.run("status of open batches", "status", writer / "batches")
    page(server, "/clock", {"forward_s": 2 * 3600})  # both batches have ended
    writer.run("cancel --yes", "cancel", writer / "batches", "--yes")
    openai = {"model": "openai/gpt-5-mini", "alias": "m", "max_tokens": 100}
    claude = {"model": "anthropic/claude-haiku-4-5", "alias": "m", "max_tokens": 100}
    for form, model in (("openai", openai), ("anthropic", claude), ("nupa", openai)):
        sweep, out = writer.sweep(f"ask-{form}", model, conditions=ASKED), writer / f"requests-{form}"
        writer.run("export --batch-files", "export", sweep, "--batch-files", form, "--out", out, "--limit", 2)
        _keep_lines(writer, f"files of export --batch-files {form}", out)


def _keep_lines(writer: _Writer, command: str, out: Path) -> None:
    files = sorted(path for path in out.rglob("*") if path.suffix in (".jsonl", ".json"))
    lines = [document for path in files for document in documents_in(path.read_text("utf-8"))]
    writer.keep(command, [], 0, lines)


def _observe_checkups(writer: _Writer, server: Simulator) -> None:
    sweep = writer.sweep("checked", _entry(server, "simulated/noisy", alias="m"))
    soon = partial(checkup.noise_floor, latency_s=0.02)
    with patch.object(checkup, "noise_floor", soon):
        writer.run("doctor", "doctor", sweep, "--latency")
    nowhere = {"model": "simulated/noisy", "alias": "m", "base_url": "http://127.0.0.1:9"}
    gone = writer.sweep("gone", nowhere)
    writer.run("doctor", "doctor", gone)


def _observe_reports(writer: _Writer) -> None:
    for style in STYLES:
        _observe_report(writer, RAN, style)
    night = writer / "night"
    writer.run("report --by", "report", night, "--by", "condition")
    writer.run("report", "report", night)
    for style in ("llm-arithmetic", "nupa"):
        words = ("--style", style, "--published")
        writer.run(" ".join(("report", *words)), "report", night, *words)
    writer.run("compare", "compare", "steady (plain)", "quick (plain)", night)
    writer.run("compare", "compare", "steady", "thrifty", night, "--unpaired")
    writer.run("regrade", "regrade", night)
    query = "SELECT model, trials, accuracy FROM accuracy LIMIT 1"
    writer.run("sql", "sql", night, query)
    csv_head = asyncbench_here("sql", night, query, "--csv").stdout.splitlines()[0]
    writer.keep("csv sql", (), None, [csv_head])
    writer.run("reconcile", "reconcile", _bill(writer / "bill.csv"), night)


def _observe_report(writer: _Writer, folder: str, style: str | None) -> None:
    """Write down a report as JSON, and the columns of its tables."""
    words = ("report", writer / folder) + (() if style is None else ("--style", style))
    made = report(writer / folder, style, **choice_for(style, writer / folder))
    command = "report" if style is None else f"report --style {style}"
    writer.keep(command, words, None, documents_in(made.as_json()))
    if folder != RAN:
        headings = markdown_headings(made.as_markdown())
        writer.keep(f"markdown {command} {folder}", (), None, headings)
        others = [name for name in latex_headings(made.as_latex()) if name not in headings]
        writer.keep(f"latex {command} {folder}, where it differs", (), None, others)


def markdown_headings(text: str) -> list[str]:
    """Return the headings of the columns of all tables, each once."""
    heads = (
        line for line, rule in pairwise(text.splitlines()) if rule.startswith("|---") and line.startswith("|")
    )
    return list(dict.fromkeys(cell.strip() for head in heads for cell in head.strip("|").split("|")))


def latex_headings(text: str) -> list[str]:
    """Return the same of LaTeX, in which a heading may stand upright or on several lines."""
    heads = (line for rule, line in pairwise(text.splitlines()) if rule == r"\toprule")
    cells = (cell.strip() for head in heads for cell in head.removesuffix(r" \\").split(" & "))
    inner = (re.sub(r"^(?:\\(?:rotatebox\{90\}|shortstack\[.\])\{)+(.*?)\}+$", r"\1", cell) for cell in cells)
    return list(dict.fromkeys(re.sub(r"\\([%_#&$])", r"\1", cell.replace(r"\\", " ")) for cell in inner))


def _bill(path: Path) -> Path:
    """Write what a provider asks for a day."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("date", "model", "cost_usd", "input_tokens", "output_tokens", "requests"))
        lines.writerow(("2026-09-21", "gpt-5", 1.25, 2000, 3000, 50))
        lines.writerow(("2026-09-22", "gpt-4", 0.5, 100, 200, 5))
    return path


def _observe_files(writer: _Writer) -> None:
    for form in FORMATS:
        out = writer / f"exported-{form}"
        writer.run("export", "export", form, writer / "night", "--out", out)
        _keep_lines(writer, f"files of export {form}", out)
    writer.run("export", "export", "inspect", writer / RAN, "--out", writer / "exported-inspect")
    lines = jsonl(writer / "theirs.jsonl", trial(), trial(operands=[1, 45]), trial(correct=7))
    writer.run("import", "import", "llm-arithmetic", lines, "--out", writer / "imported")
    (writer / "theirs.json").write_text(json.dumps(result_file()), "utf-8")
    writer.run("import", "import", "integer-addition", writer / "theirs.json", "--out", writer / "imported-2")
    _observe_batch_files(writer)
    shutil.copytree(writer / RAN, writer / "ran-2")
    writer.run("report --by", "report", writer / RAN, writer / "ran-2", "--by", "folder")
    writer.run("merge", "merge", writer / RAN, writer / "ran-2", "--out", writer / "merged")


def _observe_batch_files(writer: _Writer) -> None:
    requests = next((writer / "requests-openai").rglob("batch_0.jsonl"))
    asked = documents_in(requests.read_text("utf-8"))[0]
    body = {"id": "c", "created": 1_790_000_000, "model": "gpt-5-mini", "choices": [_CHOICE], "usage": _USAGE}
    response = {"status_code": 200, "request_id": "r", "body": body}
    line = {"id": "b", "custom_id": asked["custom_id"], "response": response, "error": None}
    words = (jsonl(writer / "answers.jsonl", line), "--requests", requests)
    writer.run("import batch", "import", "batch", *words, "--out", writer / "by-hand")


_CHOICE = {"message": {"content": "46"}, "finish_reason": "stop"}
_USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


def _observe_lists(writer: _Writer) -> None:
    writer.run("suites", "suites")
    writer.run("models", "models")
    writer.run("models PROVIDER", "models", "openai")
    writer.run("problems inspect", "problems", "inspect", writer / "few.parquet")
    rows = jsonl(writer / "own.jsonl", {"q": "1 + 1", "a": "2"})
    writer.run("problems inspect", "problems", "inspect", rows, "--columns", "question=q,expected=a")
