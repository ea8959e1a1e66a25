"""Files of environment variables, as other tools write them, and what is taken of one unasked."""

import pytest

from asyncbench.errors import ConfigError
from asyncbench.planning.env_files import keys_beside, read_env_file
from tests.commands import asyncbench_here
from tests.rows import each_row

FORMS = {  # a file → the value of A
    "A=sk-1": "sk-1",
    "export A=sk-1": "sk-1",
    "  A = sk-1  ": "sk-1",
    "A='sk-1'": "sk-1",
    'A="sk-1"': "sk-1",
    "A=sk-1 # mine": "sk-1",
    "A='sk-1' # mine": "sk-1",
    "A=sk#1": "sk#1",
    'A="sk # 1"': "sk # 1",
    "A=": "",
    "A= # none": "",
    "# A=old\nA=sk-1\n": "sk-1",
    "A=old\r\nA=sk-1\r\n": "sk-1",
    "\ufeffA=sk-1": "sk-1",
    'A="two\nlines"\nB=1': "two\nlines",
    r'A="tab\there"': "tab\there",
    r"A='tab\there'": r"tab\there",
    "B=1\nA=x${B}y": "x1y",
    "A=${NONE:-sk-1}": "sk-1",
    "A='${B}'": "${B}",
    "A=$1$2": "$1$2",
}


@each_row("written, value", FORMS.items())
def test_a_value_is_read_as_other_tools_read_it(written, value, tmp_path):
    (tmp_path / ".env").write_bytes(written.encode())
    assert read_env_file(tmp_path / ".env")["A"] == value


@pytest.mark.parametrize("line", ["only words", "A", "A='sk-secret", "A=${NOWHERE}", "1A=2"])
def test_another_line_is_refused_by_its_number_and_not_repeated(tmp_path, line):
    (tmp_path / ".env").write_text(f"B=1\n{line}\n")
    with pytest.raises(ConfigError, match=r"\.env, line 2: ") as refused:
        read_env_file(tmp_path / ".env")
    assert "sk-secret" not in str(refused.value)
    assert read_env_file(tmp_path / ".env", lenient=True) == {"B": "1"}


def test_only_keys_that_are_not_set_are_taken_and_the_file_beside_the_sweep_counts_first(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SET_KEY", "of the environment")
    beside = tmp_path / "night"
    beside.mkdir()
    (beside / ".env").write_text("A_KEY=beside\nSET_KEY=of the file\nPATH=/nowhere\n")
    (tmp_path / ".env").write_text("A_KEY=here\nB_KEY=here\n")
    assert keys_beside(beside / "sweep.yaml", ["A_KEY", "SET_KEY"]) == (beside / ".env", {"A_KEY": "beside"})
    assert keys_beside(None, ["A_KEY"])[1] == {"A_KEY": "here"}
    assert keys_beside(beside / "sweep.yaml", ["SET_KEY"]) == (None, {})


def test_a_command_says_once_where_a_key_is_from_and_never_shows_it(tmp_path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-of-the-file\n")
    done = asyncbench_here("doctor", "openai/gpt-5-mini", "--base-url", "http://127.0.0.1:9/v1", cwd=tmp_path)
    said = done.stdout + done.stderr
    assert said.count("OPENAI_API_KEY from .env") == 1
    assert "sk-of-the-file" not in said
