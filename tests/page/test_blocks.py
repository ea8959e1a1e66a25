"""What a page is made of, without a browser: blocks that cannot be broken out of."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from runpy import run_path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from asyncbench.cli import app
from asyncbench.errors import ConfigError
from asyncbench.page import writing
from asyncbench.page.contents import contents_of, ready_made
from asyncbench.page.writing import LARGE, data_block, element, write_page
from tests.reports.answered import Asked, folder_of

# ── blocks ───────────────────────────────────────────────────────────────────────────────────

CLOSERS = ["</script>", "<!--", "<script", "\u2028", "&lt;", "]]>"]


@pytest.mark.parametrize("many", [1, LARGE], ids=["plain", "packed"])
def test_no_text_ends_the_block_it_is_in_and_it_is_read_back_as_it_was(many):
    value = {"texts": CLOSERS * (many // 10 + 1)}
    found = re.fullmatch(
        r'<script type="application/(json|gzip)" id="x">([^<>&]*)</script>', data_block("x", value)
    )
    assert found
    text = found[2] if found[1] == "json" else gzip.decompress(base64.b64decode(found[2]))
    assert json.loads(text) == value


def test_code_that_would_end_its_own_element_is_refused():
    with pytest.raises(ValueError, match="cannot be embedded"):
        element("script", 'const x = "</SCRIPT>";')


def test_the_policy_names_the_scripts_that_are_there_and_nothing_else(night):
    page = (night / "report.html").read_text("utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    policy = policy.replace("&#x27;", "'")
    codes = re.findall(r"<script>(.*?)</script>", page, re.DOTALL) + re.findall(
        r"<style>(.*?)</style>", page, re.DOTALL
    )
    digests = {
        f"sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}" for code in codes
    }
    assert set(re.findall(r"'(sha256-[^']+)'", policy)) == digests
    assert len(digests) == 3
    assert "default-src 'none'" in policy
    assert not re.search(r"unsafe|https?:|data:|blob:", policy)


def test_our_own_script_never_makes_markup_of_text():
    own = "\n".join(path.read_text("utf-8") for path in Path(writing.__file__).parent.glob("app/*.js"))
    assert "createElement" in own
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser", own
    )


# ── the command ──────────────────────────────────────────────────────────────────────────────


def test_the_command_writes_the_page_into_the_folder_or_where_it_is_told(night, tmp_path):
    out = tmp_path / "sub" / "page.html"
    done = CliRunner().invoke(app, ["report", str(night), "--html", "--out", str(out)])
    assert done.exit_code == 0
    assert "all 504 trials" in done.stdout
    assert out.stat().st_size < 2_000_000


def test_options_that_do_not_go_together_are_refused(night, tmp_path):
    for options, words in (
        (["--out", str(tmp_path / "x.html")], "--html"),
        (["--html", "--style", "quota"], "--style cannot be combined with --html"),
        (["--html", "--json"], "--json cannot be combined with --html"),
    ):
        done = CliRunner().invoke(app, ["report", str(night), *options])
        assert isinstance(done.exception, ConfigError)
        assert words in str(done.exception)


def test_two_models_whose_names_begin_and_end_alike_are_two_on_the_page(tmp_path):
    aliases = [f"{'a' * 40}{middle}{'z' * 40}" for middle in "12"]
    folder = folder_of(tmp_path / "f", [Asked(model=alias, outcomes="+" * 12) for alias in aliases])
    head = cast("dict[str, Any]", contents_of(folder).blocks["head"])
    shorts = [entrant["short"] for entrant in head["entrants"]]
    assert len({*shorts}) == 2
    assert max(map(len, shorts)) <= 28


def test_a_place_that_cannot_be_written_is_refused_and_what_stood_there_is_kept(night, tmp_path):
    with pytest.raises(ConfigError, match="cannot be written"):
        write_page(night, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_page_needs_no_extra_for_what_draws_it_is_ready_made(night, monkeypatch, tmp_path):
    for name in ("altair", "vl_convert"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    assert write_page(night, tmp_path / "x.html").size > 1_000_000


def test_what_is_ready_made_is_what_would_be_made_now():
    made = run_path(str(Path(__file__).parents[2] / "data" / "page.py"))["made"]()
    stale = [name for name, content in made.items() if ready_made(name.removesuffix(".gz")) != content]
    assert stale == [], "run `python data/page.py`"


def test_an_empty_folder_has_a_page(tmp_path):
    from asyncbench.store.folder import Store

    Store.open(tmp_path / "none", sweep="none").close()
    written = write_page(tmp_path / "none")
    assert (written.trials, written.trials_embedded) == (0, 0)


def test_the_page_tells_by_which_test_models_are_ranked(tmp_path):
    ranked = {"paired": 0, "unpaired": 5}  # then the second model is asked other problems of that length
    for name, first in ranked.items():
        asked = [Asked(model="a", outcomes="+" * 5), Asked(model="b", outcomes="+-+-+", first=first)]
        folder = folder_of(tmp_path / name, asked)
        rules = " ".join(cast("dict[str, Any]", contents_of(folder).blocks["standings"])["rules"])
        assert ("exact paired tests" in rules) == (name == "paired")
        assert ("unpaired" in rules) == (name == "unpaired")
