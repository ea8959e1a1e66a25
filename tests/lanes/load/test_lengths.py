"""`asyncbench load --tokens`: what is asked, how long replies are, and what the last line says."""

import json

import pytest

from asyncbench import read_attempts, read_problems
from tests.commands import asyncbench_here

STEPS = ("--concurrency", "1,2", "--duration", "1s", "--warmup", "0s", "--rest", "0s", "--quiet")


@pytest.mark.long
def test_a_load_of_lengths_asks_new_questions_and_says_what_the_server_counted(tmp_path):
    out = tmp_path / "out"
    words = ("load", "--model", "simulated/oracle", *STEPS, "--out", out)
    told = asyncbench_here(*words, "--tokens", "128/32")
    assert told.returncode in (0, 3), told.stderr  # 3: this machine was too slow
    calls = read_attempts(out).to_pylist()
    counted = [call["input_tokens"] for call in calls]
    measured = [call["input_tokens"] for call in calls if call["phase"] == "measured"]
    assert (min(counted) >= 124, max(counted) <= 132) == (True, True)
    assert {call["output_tokens"] for call in calls} == {32}
    line = (
        f"Asked 128 in (server counted {min(measured)}–{max(measured)}), 32 out; "
        f"0 of {len(measured):,} shorter."
    )
    assert told.stdout.splitlines()[-1] == line
    assert "GPU" not in told.stdout
    assert line in asyncbench_here("report", out, "--style", "load").stdout.splitlines()
    (lengths,) = json.loads(asyncbench_here("report", out, "--style", "load", "--json").stdout)["lengths"]
    assert (lengths["text"], lengths["answers"], lengths["tokens"]) == (line, len(measured), 128)
    questions = read_problems(out).column("question").to_pylist()
    assert len({str(question)[:40] for question in questions}) == len(questions)
    assert len({call["trial_id"] for call in calls}) == len(calls)  # the second step asks others

    # The same command goes on; other lengths in the folder, or a second maker of questions, are refused.
    # Told of GPUs, a load ends with the tokens of each.
    again = asyncbench_here(*words, "--tokens", "128/32", "--gpus", "8", "--json")
    assert again.returncode in (0, 3), again.stderr
    found = json.loads(again.stdout)
    assert found["lengths"][0]["tokens"] == 128
    assert [gpu["step"] for gpu in found["gpus"]] == ["closed 1", "closed 2"]
    assert found["gpus"][0]["tokens_per_s_per_gpu"] == found["gpus"][0]["tokens_per_s"] / 8
    assert "tokens per GPU second" in found["gpus"][0]["text"]
    other = asyncbench_here(*words, "--tokens", "64/32")
    assert (other.returncode, "holds other questions than those of 64 tokens" in other.stderr) == (2, True)
    for wrong, said in (
        (("--tokens", "128"), "not two lengths"),
        (("--tokens", "128/32", "--suite", "nupa"), "Leave out --suite"),
        (("--tokens", "128/32", "--model", "simulated/noisy"), "Type one --model"),
    ):
        refused = asyncbench_here(*words, *wrong)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
