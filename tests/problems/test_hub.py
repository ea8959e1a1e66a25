"""Problem files of the Hub: pinned to a commit, the same as on a disk, and refused with a way out."""

import asyncio
import csv
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import constants

import asyncbench as ab
from asyncbench.errors import ConfigError, ProblemSetError
from asyncbench.problems.opening import open_set
from asyncbench.run.sweep_run import run_sweep
from tests.commands import asyncbench, asyncbench_here, succeeded
from tests.problems.loopback_hub import Dataset, Hub, loopback_hub
from tests.sweep_files import Said

NAME = "hf://datasets/someone/gsm"
ROWS = [
    {"question": f"Anna has {n} apples, and eats 5.\nHow many are left?", "answer": f"{n} - 5\n#### {n - 5}"}
    for n in (12, 70, 1_205)
]
HEAD = b"question,answer\n"
TOKEN = "hf_aTokenThatIsNeverPrinted"  # noqa: S105  of the loopback Hub


def as_lines(rows: list[dict[str, str]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def as_table(rows: list[dict[str, str]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, ["question", "answer"])
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A Hub with a dataset, which this process asks, with a cache of its own."""
    with loopback_hub() as found:
        monkeypatch.setattr(constants, "ENDPOINT", found.url)
        files = f"{found.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        found.datasets["someone/gsm"] = Dataset()
        yield found


def given(hub: Hub, files: dict[str, bytes], **how: str) -> str:
    return hub.datasets["someone/gsm"].commit(files, **how)


def opened(path: Path | str):
    return open_set(path, suite="custom", grader="number")


def test_gsm8k_like_files_in_all_four_forms_give_the_same_problem_ids(hub, tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "gsm.parquet")
    (tmp_path / "gsm.jsonl").write_bytes(as_lines(ROWS))
    (tmp_path / "gsm.csv").write_bytes(as_table(ROWS))
    given(hub, {"README.md": b"# GSM", "main/test.jsonl": as_lines(ROWS)})
    forms = [tmp_path / "gsm.parquet", tmp_path / "gsm.jsonl", tmp_path / "gsm.csv", NAME]
    ids = [tuple(problem.problem_id for problem in opened(form).read()) for form in forms]

    assert len(set(ids[0])) == len(ROWS)
    assert set(ids) == {ids[0]}
    assert {opened(form).digest for form in forms} == {opened(NAME).digest}


@pytest.mark.parametrize("name", ["test.parquet", "test.csv", "data/test.jsonl", "test.json", "test.TSV"])
def test_the_only_file_of_a_dataset_needs_no_name(name, hub, tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    contents = {
        ".parquet": (tmp_path / "rows.parquet").read_bytes(),
        ".csv": as_table(ROWS),
        ".jsonl": as_lines(ROWS),
        ".json": json.dumps(ROWS).encode(),
        ".TSV": b"question\tanswer\n1 + 1?\t2\n",
    }
    commit = given(
        hub, {".gitattributes": b"", "dataset_infos.json": b"{}", name: contents[Path(name).suffix]}
    )
    found = opened(NAME)

    assert found.hub is not None
    assert (found.name, found.hub.address, found.hub.now) == ("gsm", NAME, None)
    assert found.hub.pinned == f"{NAME}@{commit}/{name}"
    assert list(opened(f"{NAME}/{name}").read()) == list(found.read())
    assert list(opened(Path(NAME)).read()) == list(found.read())  # which has one slash where two were


@pytest.mark.parametrize("revision", ["v1", "refs/pr/3", "refs/convert/parquet", "a%2Fbranch"])
def test_a_revision_may_be_named(revision, hub):
    commit = given(hub, {"test.csv": HEAD + b"1 + 1?,2\n"}, branch=revision.replace("%2F", "/"))
    given(hub, {"test.csv": HEAD + b"2 + 2?,4\n"})
    for address in (f"{NAME}@{revision}", f"{NAME}@{revision}/test.csv", f"{NAME}@{commit}/test.csv"):
        assert [problem.expected for problem in opened(address).read()] == ["2"]
    assert [problem.expected for problem in opened(NAME).read()] == ["4"]


@pytest.mark.long
def test_a_folder_keeps_the_commit_that_it_asked_first(hub, tmp_path, monkeypatch, capfd):
    before = given(hub, {"test.csv": HEAD + b"1 + 1?,2\n3 + 3?,6\n"})
    hub.token = TOKEN
    sweep, out = tmp_path / "own.yaml", tmp_path / "out"
    sweep.write_text(
        f"name: own\nmodels: [simulated/oracle]\nout: {out}\n"
        f"problems: [{{path: '{NAME}', suite: custom, grader: number}}]\n"
    )
    env = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": TOKEN}
    done = succeeded(asyncbench("run", sweep, "--limit", "1", env=env))
    pinned = {NAME: f"{NAME}@{before}/test.csv"}
    assert json.loads((out / "manifest.json").read_text())["hub"] == pinned

    monkeypatch.setenv("HF_TOKEN", TOKEN)
    after = given(hub, {"test.csv": HEAD + b"5 + 5?,10\n", "train.csv": HEAD + b"5 + 5?,10\n"})
    moved = f"{NAME} has changed: it is at {after[:12]} now. This folder keeps asking {pinned[NAME]}"
    assert [line for line in ab.plan(sweep).warnings if line.startswith(moved)] != []
    assert [line for line in run(sweep) if line.startswith(moved)] != []
    rows = ab.read_trials(out).to_pylist()
    assert sorted((row["expected"], row["outcome"]) for row in rows) == [("2", "correct"), ("6", "correct")]
    assert json.loads((out / "manifest.json").read_text())["hub"] == pinned

    hub.status = 503  # what was downloaded needs no Hub
    assert [line for line in run(sweep) if "has changed" in line] == []
    assert yaml.safe_load((out / "sweep.yaml").read_text())["problems"][0]["path"] == NAME
    assert hub.tokens == {f"Bearer {TOKEN}"}
    kept = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    said = "".join([done.stdout, done.stderr, *capfd.readouterr()])
    assert (TOKEN in said, TOKEN.encode() in kept) == (False, False)


def run(sweep: Path) -> list[str]:
    screen = Said()
    asyncio.run(run_sweep(sweep, screen=screen))
    return screen.lines


def test_a_file_of_the_hub_is_inspected(hub):
    commit = given(hub, {"test.jsonl": as_lines(ROWS)})
    done = asyncbench_here("problems", "inspect", NAME)
    found = ab.inspect_problems(NAME)
    (entry,) = yaml.safe_load(found.sweep)["problems"]

    assert done.returncode == 0, done.stderr
    assert f"{NAME}@{commit}/test.jsonl: 3 problems" in " ".join(done.stdout.split())
    assert (entry["path"], entry["grader"]) == (NAME, "number")
    assert list(open_set(**entry).read()) == list(opened(NAME).read())


def refused(address: str) -> str:
    with pytest.raises((ConfigError, ProblemSetError)) as caught:
        opened(address)
    return str(caught.value)


FILES = {"b.csv": HEAD, "sub/a.jsonl": b""}


@pytest.mark.parametrize(
    ("address", "files", "complaint"),
    [
        (
            NAME,
            FILES,
            "the dataset has 2 files: b.csv, sub/a.jsonl. Name one: hf://datasets/someone/gsm/FILE",
        ),
        (NAME, {"README.md": b""}, "the dataset has no file to read. Name one"),
        (f"{NAME}/c.csv", FILES, "the dataset has no such file. Its files: b.csv, sub/a.jsonl"),
        (f"{NAME}@v9", FILES, "the dataset has no such revision. Correct what follows @"),
        (
            "hf://datasets/someone/else",
            FILES,
            "there is no such dataset, or it is private. Correct OWNER/NAME",
        ),
        ("hf://datasets/some one/gsm", FILES, "the Hub takes no such name. Correct OWNER/NAME"),
        ("hf://datasets/gsm", FILES, "this is no address of a dataset. Write hf://datasets/OWNER/NAME"),
        ("hf://someone/gsm", FILES, "this is no address of a dataset"),
        (f"{NAME}/b.csv", {"b.csv": HEAD + b"1 + 1?\n"}, "1 values, but the header has 2"),
        (f"{NAME}/b.csv", {"b.csv": b"q,answer\n?,2\n"}, "Name the column to use as question"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_address(address, files, complaint, hub, tmp_path):
    given(hub, files)
    said = refused(address)

    assert said.startswith(address)
    assert complaint in said
    assert str(tmp_path) not in said


def test_access_that_is_lacking_has_a_way_out(hub, monkeypatch):
    given(hub, {"test.csv": HEAD})
    hub.datasets["someone/gsm"].gated = True
    assert f"{NAME}: you have no access to this dataset. Ask for it on its page, and set HF_TOKEN" in refused(
        NAME
    )
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    said = refused(NAME)
    assert said == f"{NAME}: the Hub does not accept your token. Correct HF_TOKEN, or remove it."
    hub.token = TOKEN
    assert "there is no such dataset" in refused("hf://datasets/someone/else")


def test_a_hub_that_does_not_answer_is_named_as_that(hub, monkeypatch):
    hub.status = 500
    assert refused(NAME) == f"{NAME}: the Hub answered with status 500. Try again later."
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert f"{NAME}: the Hub cannot be reached (ConnectError). Check the network" in refused(NAME)


def test_without_the_extra_its_name_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert f"{NAME}: files of the Hub need the extra `hf`" in refused(NAME)
