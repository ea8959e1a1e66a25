"""A two-column paper into which an author puts six pictures and three tables of NUPA."""

import re
import subprocess
from pathlib import Path

import pytest

from asyncbench import write_figures
from asyncbench.suites.nupa.tasks import TASKS
from tests.papers import needs_pdflatex, printed_paper
from tests.processes import HANG_S
from tests.published.test_nupa_report import keep, problems, result, right

pytestmark = [pytest.mark.long, needs_pdflatex]

FIGURES = ("figure-1", "figure-2", "figure-5-sums", "figure-6-sums", "figure-6-digits", "figure-7-sums")
TABLES = ("table-1", "table-7", "table-10")
WORDS = "Each answer was read by the rule of the paper, and means are over the answers of a range. " * 12


@pytest.fixture(scope="module", params=[2, 12], ids="{}-models".format)
def figures(request, tmp_path_factory):
    """The pictures of so many models, of whose answers a third are wrong."""
    asked = [one for name, task in TASKS.items() if "released" in task.sets for one in problems(name, {7: 1})]
    results = [
        result(
            one,
            right(one) if (n + model) % 3 else "The answer is 1",
            model=f"maker/Model-{model}B-Instruct-v0.1",
        )
        for model in range(request.param)
        for n, one in enumerate(asked)
    ]
    folder = tmp_path_factory.mktemp("paper")
    write_figures(keep(folder / "night", *results), folder / "figures", "nupa", pictures=[*FIGURES, *TABLES])
    return folder


def test_a_paper_of_six_pictures_and_three_tables_has_full_pages_no_overfull_line_and_one_font(figures):
    pages = [f"{name}-1" if (figures / f"figures/{name}-1.tex").exists() else name for name in FIGURES]
    labels = [*(f"fig:{name}" for name in pages), *(f"tab:{name}" for name in TABLES)]
    body = [
        f"{WORDS} See~\\ref{{{label}}}.\n\n\\input{{figures/{name}}}\n{WORDS}\n"
        for name, label in zip((*pages, *TABLES), labels, strict=True)
    ]
    how_to = Path("docs/howto/published.md").read_text("utf-8")
    (head,) = re.findall(r"```latex\n\\documentclass.*?\n(.*?)\\begin\{document\}", how_to, re.DOTALL)
    paper = printed_paper(figures, "\n".join(body), options="twocolumn", preamble=head)
    assert not paper.overfull
    assert "undefined" not in paper.log
    assert min(paper.full[:-1]) > 0.4, paper.full  # gaps between panels count as empty

    command = ["pdffonts", str(paper.path)]
    fonts = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True)
    families = {re.sub(r"^[A-Z]{6}\+", "", line.split()[0]) for line in fonts.stdout.splitlines()[2:]}
    mathematics = "CMSY|CMMI|CMEX|StandardSymbol|Symbol"
    assert [
        name for name in families if not re.match(rf"NimbusRom|LiberationSerif|{mathematics}", name)
    ] == []
