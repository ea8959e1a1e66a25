"""Traces of calls: the kinds of files that are read, and what is wrong with a row."""

import gzip
import math
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from asyncbench.errors import ProblemSetError
from asyncbench.problems.traces import read_trace
from tests.rows import each_row

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:15:51.2225250,879,55
"""
AZURE_2024 = """TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2162,5
2024-05-10 00:00:00.017335+00:00,2399,6
"""
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45.5,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,0,417,API log
"""
BURSTGPT_3 = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
1.5,a,0.2,ChatGPT,472.0,18.0,490,Conversation log
2.5,b,0.2,ChatGPT,10.0,1.0,11,Conversation log
"""
MOONCAKE = """{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 3000, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]}

"""
BAILIAN = """\
{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521, "output_length": 132}
{"chat_id": 160, "parent_chat_id": -1, "timestamp": 61.9, "input_length": 33, "output_length": 9}
"""
OURS = "time_s,input_tokens,output_tokens\n0.5,512,128\n0.75,64,16\n"


def calls_in(path, until_s=math.inf):
    return [tuple(call) for call in read_trace(path, until_s=until_s)]


@each_row(
    "name, text, calls",
    [
        ("azure.csv", AZURE, [(0.0, 374, 44), (4.314579, 396, 109), (4.541935, 879, 55)]),
        ("azure-2024.csv", AZURE_2024, [(0.0, 2162, 5), (0.007405, 2399, 6)]),
        ("burst.csv", BURSTGPT, [(0.0, 472, 18), (40.5, 1087, 230), (113.0, 417, 0)]),
        ("burst-3.csv", BURSTGPT_3, [(0.0, 472, 18), (1.0, 10, 1)]),
        ("mooncake.jsonl", MOONCAKE, [(0.0, 6758, 500), (3.0, 7322, 490)]),  # in milliseconds
        ("bailian.jsonl", BAILIAN, [(0.0, 521, 132), (0.786, 33, 9)]),  # the same names, in seconds
        ("ours.csv", OURS, [(0.0, 512, 128), (0.25, 64, 16)]),
    ],
)
def test_traces_are_read_as_they_are_published(tmp_path, name, text, calls):
    (tmp_path / name).write_text(text)
    assert calls_in(tmp_path / name) == calls


def test_a_trace_may_be_parquet_or_packed_and_is_read_no_further_than_is_asked(tmp_path):
    times = [datetime(2024, 5, 10, 0, 0, 0, 9930), datetime(2024, 5, 10, 0, 0, 1)]  # noqa: DTZ001  as pandas
    columns = {"TIMESTAMP": times, "ContextTokens": [5, 6], "GeneratedTokens": [1, 2], "more": ["a", None]}
    pq.write_table(pa.table(columns), tmp_path / "azure.parquet")
    assert calls_in(tmp_path / "azure.parquet") == [(0.0, 5, 1), (0.99007, 6, 2)]
    lengths = {
        "timestamp": [0, 1500],
        "input_length": [5, 6],
        "output_length": [1, 2],
        "hash_ids": [[0], [0, 1]],
    }
    pq.write_table(pa.table(lengths), tmp_path / "mooncake.parquet")
    assert calls_in(tmp_path / "mooncake.parquet") == [(0.0, 5, 1), (1.5, 6, 2)]
    (tmp_path / "azure.csv.gz").write_bytes(gzip.compress(f"{AZURE}what is behind,is not,read\n".encode()))
    assert len(calls_in(tmp_path / "azure.csv.gz", until_s=4.5)) == 2


@each_row(
    "text, complaint",
    [
        ("", "the file is empty"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "it has no calls"),
        ("when,tokens\n1,2\n", r"its columns are when, tokens, .*TIMESTAMP, ContextTokens, GeneratedTokens"),
        (OURS + "0.5,1,1\n", r"line 4: time_s is 0.5, 0.25 s before the row above.*sort"),
        (OURS + "soon,1,1\n", "line 4: time_s is soon, which is no time"),
        (OURS + "nan,1,1\n", "line 4: time_s is nan, which is no time"),
        (OURS + "2,-3,1\n", "line 4: input_tokens is -3, which is no number of tokens"),
        (OURS + "2,3,1.5\n", "line 4: output_tokens is 1.5, which is no number of tokens"),
        (OURS + "2,99000000,1\n", "line 4: input_tokens is 99000000"),
        (OURS + "2,,1\n", "line 4: input_tokens is not there"),
        (OURS + "2,1\n", "line 4: 2 values, but the header has 3"),
        (MOONCAKE + '{"timestamp": 4000, "input_length": 5}\n', "line 4: output_length is not there"),
        (MOONCAKE + '{"input_length": 5, "output_length": 7}\n', "line 4: timestamp is not there"),
        (MOONCAKE + "{\n", "line 4: it cannot be read as JSON"),
    ],
)
def test_a_wrong_row_is_named_with_its_value_and_the_rule(tmp_path, text, complaint):
    (tmp_path / "trace").write_text(text)
    with pytest.raises(ProblemSetError, match=complaint):
        calls_in(tmp_path / "trace")
