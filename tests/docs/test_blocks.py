"""Every code block of the README and of each page is run."""

import asyncio
import itertools
import re
import shutil

import pytest
import yaml

import asyncbench as ab
from docs.generated import written_by_hand
from tests.docs.blocks import ROOT, Reader, any_provider_simulated, blocks_of
from tests.sweep_files import sweep

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PUBLISHED = ROOT / "docs" / "published.md"  # followed in test_published.py
PAGES = [page for page in PAGES if blocks_of(page) and page != PUBLISHED]
SUITES = ("integer_addition", "string_reversal", "string_rehearsal")


@pytest.fixture(autouse=True)
def _simulated(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with any_provider_simulated(monkeypatch):
        yield


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What of a checkout the pages use, with a few problems of each set."""
    place = tmp_path_factory.mktemp("checkout")
    (place / "data").mkdir()
    ab.generate("llm_arithmetic", place / "data" / "llm_arithmetic.parquet", seed=7, depths="2-4", trials=1)
    for suite in SUITES:
        ab.generate(suite, place / "data" / f"{suite}.parquet", seed=7, tries=10)
    shutil.copytree(ROOT / "configs", place / "configs")
    return place


@pytest.fixture(scope="module")
def night(checkout):
    """A sweep of three models, under the names that the pages use."""
    with pytest.MonkeyPatch.context() as patched, any_provider_simulated(patched):
        models: list[dict[str, object]] = [
            {"model": "openai/gpt-4.1-mini", "alias": "small", "max_tokens": 256, "stream": True},
            {"model": "simulated/oracle", "alias": "large", "price": {"input": 5, "output": 25}},
            {"model": "simulated-http/noisy", "alias": "tiny", "price": {"input": 0.1, "output": 0.3}},
        ]
        folder = checkout / "results" / "overnight"
        asyncio.run(ab.run_sweep(sweep(folder, checkout / "data" / "llm_arithmetic.parquet", *models)))
    return folder


def _folders_begun(page):
    """Return where the sweeps write that a page makes itself: by their files and by their flags."""
    sweeps = [yaml.safe_load(block.text) for block in blocks_of(page) if block.kind == "yaml"]
    sweeps = [one for one in sweeps if isinstance(one, dict) and {"name", "problems", "models"} <= one.keys()]
    typed = re.findall(
        r"^asyncbench run .*--model (?:.|\\\n)*?--out (\S+)", written_by_hand(page.read_text("utf-8")), re.M
    )
    return {one.get("out", f"results/{one['name']}") for one in sweeps} | set(typed)


def test_no_two_pages_write_to_one_folder():
    """Somebody who follows both in one checkout would be refused by the second."""
    begun = {page: _folders_begun(page) for page in [*PAGES, PUBLISHED]}
    assert sum(map(bool, begun.values())) > 10
    for one, other in itertools.combinations(begun, 2):
        assert not begun[one] & begun[other], (one, other)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_can_be_followed(page, checkout, night, tmp_path, monkeypatch):
    shutil.copytree(checkout, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("results"))
    if "run configs/overnight.yaml" not in page.read_text("utf-8"):
        shutil.copytree(night, tmp_path / "results" / "overnight")
    monkeypatch.chdir(tmp_path)
    reader = Reader(monkeypatch)
    try:
        for block in blocks_of(page):
            try:
                reader.follow(block)
            except BaseException as error:
                error.add_note(f"{page.relative_to(ROOT)}, the block below line {block.line}")
                raise
    finally:
        reader.stop()
