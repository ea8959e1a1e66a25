"""Papers that pdflatex makes: their pages, what stands out of a line, and how full each page is."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.processes import HANG_S

needs_pdflatex = pytest.mark.skipif(
    shutil.which("pdflatex") is None or shutil.which("pdftoppm") is None,
    reason="pdflatex or pdftoppm is not there: apt install texlive-latex-recommended poppler-utils",
)
BODY = slice(0.11, 0.83)  # of the height of a page of `article`: where its text is
BANDS = 40  # of its height: one is empty where no ink is in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """What came of a paper."""

    pages: int
    overfull: list[str]
    full: list[float]  # of each page: the share of its two columns in which anything stands
    log: str
    path: Path


def printed_paper(folder: Path, body: str, *, options: str = "", preamble: str = "") -> Paper:
    """Set a paper on A4, twice, as its references need it."""
    folder.mkdir(parents=True, exist_ok=True)
    head = rf"\documentclass[a4paper,{options}]{{article}}\usepackage{{booktabs,graphicx}}{preamble}"
    (folder / "paper.tex").write_text(f"{head}\n\\begin{{document}}\n{body}\n\\end{{document}}\n", "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"]
    for _ in range(2):
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=HANG_S, check=False)
    log = (folder / "paper.log").read_text("latin-1")
    assert done.returncode == 0, log[-2_000:]
    (pages,) = re.findall(r"Output written on paper.pdf \((\d+) pages?", log.replace("\n", ""))
    full = [_fullness(folder, page) for page in range(1, int(pages) + 1)]
    overfull = re.findall(r"Overfull .*|Float too large.*", log)
    return Paper(pages=int(pages), overfull=overfull, full=full, log=log, path=folder / "paper.pdf")


def _fullness(folder: Path, page: int) -> float:
    command = ["pdftoppm", "-gray", "-r", "30", "-f", str(page), "-l", str(page), "paper.pdf"]
    drawn = subprocess.run(command, cwd=folder, capture_output=True, timeout=HANG_S, check=True).stdout
    _, size, _, pixels = drawn.split(b"\n", 3)
    width, height = map(int, size.split())
    ink = np.frombuffer(pixels, np.uint8).reshape(height, width) < 250
    body = ink[int(BODY.start * height) : int(BODY.stop * height)]
    columns = (body[:, : width // 2], body[:, width // 2 :])
    bands = [band.any() for column in columns for band in np.array_split(column, BANDS)]
    return sum(bands) / len(bands)
