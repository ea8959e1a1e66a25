"""docs/python.md: its examples run as they are written, and it names every public function."""

import inspect
import re
from pathlib import Path

import pyarrow as pa
import yaml

import asyncbench as ab
from asyncbench.shown import Report
from tests.sweep_files import entry, simulator

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "python.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_examples_run_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    ab.generate("integer_addition", tmp_path / "known.parquet", seed=7, tries=50)
    names: dict[str, object] = {}
    with simulator(tmp_path / "known.parquet") as server:
        price = {"input": 1, "output": 2}
        raw = {
            "name": "first",
            "problems": ["problems.parquet"],
            "models": [
                entry(server, "simulated-http/oracle", alias="steady", price=price, max_tokens=100),
                entry(server, "simulated-http/noisy", alias="hasty", price=price, max_tokens=100),
            ],
            "out": "results/first",
        }
        Path("sweep.yaml").write_text(yaml.safe_dump(raw))
        Path("sweep-b.yaml").write_text(yaml.safe_dump(raw | {"out": "results/second"}))
        Path("bill.csv").write_text("model,tokens_out\noracle,1\nnoisy,1\n")
        for block in BLOCKS:
            exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102  our own page
    assert len(BLOCKS) == 4
    told = capsys.readouterr().out
    assert "steady 20 0 " in told
    assert "SIMULATED" in told
    assert isinstance(names["comparison"], Report)
    assert isinstance(names["table"], pa.Table)
    assert isinstance(names["accuracy"], pa.Table)


def test_every_public_function_is_on_the_page():
    told = set(re.findall(r"`(?:await )?(?:ab\.)?(\w+)", PAGE))
    assert set(ab.__all__) - told == set()


def test_every_public_function_says_what_it_takes_and_returns():
    signatures = {name: inspect.signature(getattr(ab, name)) for name in ab.__all__}
    untyped = [
        name
        for name, signature in signatures.items()
        if inspect.Signature.empty
        in {signature.return_annotation, *(given.annotation for given in signature.parameters.values())}
    ]
    assert len(signatures) > 20
    assert untyped == []
