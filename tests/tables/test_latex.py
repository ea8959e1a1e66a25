"""Tables in LaTeX: whatever stands in them is shown, and nothing of it is done."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from asyncbench.tables import latex
from asyncbench.tables.latex_tables import PAGE, SIZES
from asyncbench.tables.report import SIMULATED, Report, Sheet
from asyncbench.tables.screen import LONGEST_NOTE
from tests.processes import HANG_S

HOSTILE = (
    r"\input{/etc/passwd}",
    r"\write18{rm -rf ~}",
    "$x^2$ & 100 % #1 _a ~",
    "{unbalanced",
    "}}}\\end{document}",
    "^^5cinput",
    "[2cm]",
    "*",
    "a\nb\r\\\\c",
    "\x1b[31mred\x1b[0m\x00",
    "\u202egnp.exe\u2066\u200f",
    "\"a --- ``quoted'' <<x>> ?` ,,",
    "中文 🙂 Ω é",
    "x" * 1_000_000,
)
COMMANDS = re.compile(r"\\(?:[a-zA-Z]+|.)", re.DOTALL)
OURS = {
    *(r"\begin", r"\end", r"\centering", r"\caption", r"\toprule", r"\midrule", r"\bottomrule", r"\\"),
    *(r"\textbackslash", r"\textasciicircum", r"\textasciitilde", r"\textless", r"\textgreater"),
    *(r"\textbar", r"\textasciigrave", r"\textquotedblright", r"\ldots"),
    *(r"\rotatebox", r"\shortstack", r"\setlength", r"\tabcolsep", r"\footnotesize", r"\scriptsize"),
    *(
        r"\vspace",
        r"\parbox",
        r"\raggedright",
        r"\resizebox",
        r"\ifdim",
        r"\width",
        r"\linewidth",
        r"\else",
        r"\fi",
    ),
    *(r"\{", r"\}", r"\$", r"\&", r"\#", r"\%", r"\_"),
}


def sheet(*cells):
    return Sheet(title="Title", head=["name", "figure"], rows=[[cell, "1"] for cell in cells])


def test_a_table_is_one_of_booktabs_with_a_caption():
    made = Sheet(title="A_b", head=["model", "x (%)"], rows=[["m-1", "1,234"], ["n", "2"]]).as_latex()
    assert made == (
        "\\begin{table}[!t]\n\\centering\n\\caption{A\\_b}\n\\vspace{3pt}\n"
        "\\footnotesize\\setlength{\\tabcolsep}{4pt}\n\\begin{tabular}{@{}lr@{}}\n\\toprule\n"
        "model & x (\\%) \\\\\n\\midrule\nm-1 & 1,234 \\\\\nn & 2 \\\\\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_foreign_text_is_shown_and_does_nothing(text):
    made = Sheet(title=text, head=["name", text], rows=[[text, text]]).as_latex()
    assert set(COMMANDS.findall(made)) <= OURS
    assert len(made.splitlines()) == len(sheet("a").as_latex().splitlines())
    assert _balance(made) == 0
    unescaped = re.sub(r"\\.", "", made)
    assert unescaped.count("&") == 2  # between the two columns of the head and of the row
    assert not set("$#%_^~") & set(unescaped)
    assert all(" " <= sign <= "~" or sign == "\n" or "À" <= sign <= "ÿ" for sign in made)
    assert (
        len(made) < 3 * LONGEST_NOTE + 2_000
    )  # title, head and label; of a label 10,000 characters are told


def test_a_row_that_begins_with_a_bracket_or_star_is_no_argument_of_the_line_above():
    for line in sheet("[2cm]", "*").as_latex().splitlines():
        assert not line.startswith(("[", "*"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a--b", r"a-{}-b"),
        ("---", r"-{}-{}-"),
        (",,", r",{},"),
        ("''", r"'{}'"),
        ('"', r"\textquotedblright{}"),
        ("3 × 4 − 1", r"3 \ensuremath{\times} 4 \ensuremath{-} 1"),
        ("“a” ‘b’", r"\textquotedblleft{}a\textquotedblright{} \textquoteleft{}b\textquoteright{}"),
        ("≈ ‹n›", r"\ensuremath{\approx} \ensuremath{\langle}n\ensuremath{\rangle}"),
        ("… – — ÷", r"\ldots{} \textendash{} \textemdash{} \ensuremath{\div}"),
        ("é", "é"),
        ("Ðð", "U+00D0U+00F0"),
        ("中", "U+4E2D"),
        ("\u202e", "U+202E"),
    ],
)
def test_signs_that_would_become_others_are_kept_apart(text, shown):
    assert latex.escaped(text) == shown


MOST_ROWS = int(PAGE / SIZES[-1].line)
TABLE = re.compile(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", re.DOTALL)


def test_rows_for_which_no_page_has_room_are_shared_out_evenly_under_the_same_head():
    tables = TABLE.findall(sheet(*["m"] * (2 * MOST_ROWS)).as_latex())
    rows = [table.count("m & 1") for table in tables]
    assert sum(rows) == 2 * MOST_ROWS
    assert max(rows) - min(rows) <= 1
    assert all("name & figure" in table for table in tables)
    assert [r"Title, continued" in table for table in tables] == [False, *[True] * (len(tables) - 1)]


def wide_sheet(rows):
    head = ["model", *(f"figure {n} of many" for n in range(24))]
    return Sheet(title="Wide", head=head, rows=[["m", *("1" * 12 for _ in head[1:])] for _ in range(rows)])


@pytest.mark.parametrize("rows", [2, MOST_ROWS + 1])
def test_columns_for_which_no_line_has_room_are_shared_out_evenly_beside_the_names(rows):
    tables = TABLE.findall(wide_sheet(rows).as_latex())
    shown = {tuple(re.findall(r"figure (\d+)", re.sub(r"\\\\", " ", table))) for table in tables}
    assert sorted(int(n) for numbers in shown for n in numbers) == [*range(24)]
    assert max(map(len, shown)) - min(map(len, shown)) <= 1
    assert all("\nmodel & " in table and "\nm & " in table for table in tables)


def test_names_of_figures_are_upright_where_a_line_has_no_room_for_them():
    head = ["task", *("provider/a-model" for _ in range(12))]
    made = Sheet(title="T", head=head, rows=[["sum", *["12/20"] * 12]], upright=True).as_latex()
    assert made.count(r"\rotatebox{90}{provider/a-model}") == 12
    assert made.startswith(r"\begin{table*}")
    assert made.count(r"\caption") == 1


def test_a_long_upright_name_stands_on_two_lines():
    head = ["task", *("provider/a-model-of-some-size" for _ in range(12))]
    made = Sheet(title="T", head=head, rows=[["sum", *["12/20"] * 12]], upright=True).as_latex()
    assert made.count(r"\rotatebox{90}{\shortstack[l]{provider/a-model-\\of-some-size}}") == 12


def test_no_page_ends_but_after_several_tables_which_wait_by_the_hundred():
    made = latex.document(sheet("m").as_latex() for _ in range(100))
    assert made.count(r"\clearpage") == 1
    assert made.endswith("\\clearpage\n")
    assert r"\extrafloats{100}\maxdeadcycles=1100" in made
    assert r"\clearpage" not in latex.document([sheet("alone").as_latex()])


def test_a_narrow_table_between_wide_ones_stands_across_both_columns_too():
    wide, narrow = wide_sheet(2).as_latex(), sheet("m").as_latex()
    assert r"\begin{table}" not in latex.document([wide, narrow, wide])
    assert latex.document([wide, narrow, narrow, wide]).count(r"\begin{table}") == 2


def test_code_in_a_note_has_no_marks_around_it_and_a_legend_follows_the_caption():
    assert latex.paragraph("Graded by `strict`.") == "\\noindent Graded by strict.\\par\n"
    made = replace(sheet("m"), legend="* was asked by `x_y`.").as_latex()
    assert r"\caption[{Title}]{Title. * was asked by x\_y.}" in made


DOCUMENT = (
    r"\documentclass[%s]{article}\usepackage{booktabs,graphicx}"
    "\n\\begin{document}\n%s\n\\end{document}\n"
)


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not there: apt install texlive-latex-base"
)
@pytest.mark.parametrize("columns", ["onecolumn", "twocolumn"])
def test_pdflatex_sets_hostile_names_and_wide_and_long_tables_within_the_line(tmp_path, columns):
    latin, signs = "".join(map(chr, range(0xA0, 0x100))), "".join(latex._TEX_FORMS)
    hostile, ascii_signs = sheet(*(text[:200] for text in HOSTILE), latin, signs), map(chr, range(0x20, 0x7F))
    sentences = sheet(*["a sentence that goes on " * 7] * (MOST_ROWS + 1))
    sheets = [
        sentences,
        hostile,
        sheet(*ascii_signs),
        wide_sheet(2),
        wide_sheet(MOST_ROWS + 1),
        *[sheet("m")] * 120,
    ]
    body = latex.document([latex.paragraph(HOSTILE[0]), *(one.as_latex() for one in sheets)])
    (tmp_path / "t.tex").write_text(DOCUMENT % (columns, body), "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=HANG_S, check=False)
    told = (tmp_path / "t.log").read_text("latin-1")
    assert done.returncode == 0, told[-2_000:]
    assert not [
        float(points) for points in re.findall(r"Overfull .hbox \(([\d.]+)pt", told) if float(points) > 3
    ]


class Made(Report):
    def notes_above(self):
        yield SIMULATED
        yield "A \\note of 100 %."

    def sheets(self):
        yield sheet("m")


def test_a_report_says_what_it_needs_then_its_notes_then_its_tables():
    made = Made().as_latex()
    needs, rest = made.split("\n", 1)
    assert needs.startswith("% needs \\usepackage{booktabs}")
    assert "\\noindent SIMULATED: " in rest
    assert "\\noindent A \\textbackslash{}note of 100 \\%.\\par" in rest
    assert rest.index("SIMULATED") < rest.index("\\begin{table}")


def _balance(text):
    plain = re.sub(r"\\[{}]", "", text)
    return plain.count("{") - plain.count("}")
