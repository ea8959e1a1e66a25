"""Requests go into parts that no vendor refuses, whole and in their order."""

import hashlib
import re
import tracemalloc

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from asyncbench.batches import ANTHROPIC, OPENAI, BatchRequest, PartLimits, check_part, owners_of, pack
from asyncbench.errors import StoreError
from tests.batches.conftest import CHAT, lines_of, requests, trials_of

VENDORS = pytest.mark.parametrize("vendor", [OPENAI, ANTHROPIC], ids=lambda vendor: vendor.vendor)


@VENDORS
def test_a_part_tells_what_it_is(packed, tmp_path, vendor):
    (part,) = packed(requests(3, tokens=5, reserved_usd=0.25), vendor)

    content = part.file(tmp_path).read_bytes()
    assert (part.vendor, part.model_id, part.path) == (vendor.vendor, "m", CHAT)
    assert (part.requests, part.tokens, part.reserved_usd) == (3, 15, 0.75)
    assert (part.bytes, part.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert part.name == f"asyncbench-{part.batch_key}.jsonl"
    assert [*owners_of(part, tmp_path)] == [
        {"trial_id": f"{n:032x}", "attempt": 1, "reserved_usd": 0.25} for n in range(3)
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in (part.file(tmp_path), part.manifest(tmp_path))
    )
    check_part(part, vendor, tmp_path)


def test_a_line_is_in_the_words_of_its_vendor(packed, tmp_path):
    (ours,), (theirs,) = packed(requests(1)), packed(requests(1), ANTHROPIC)

    body = {"model": "m", "messages": [{"role": "user", "content": "What is 1 + 1?"}]}
    custom_id = f"{0:032x}{ours.batch_key}"
    assert [*lines_of(ours, tmp_path)] == [
        {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": body}
    ]
    assert [*lines_of(theirs, tmp_path)] == [{"custom_id": f"{0:032x}{theirs.batch_key}", "params": body}]


@VENDORS
@pytest.mark.parametrize("count", [1, 2, 3000])
def test_what_is_sent_is_a_body_of_the_length_that_is_told(packed, tmp_path, vendor, count):
    (part,) = packed(requests(count, text="a\u2028b " * 30), vendor)

    sent = b"".join(vendor.sent(part.file(tmp_path)))
    assert len(sent) == vendor.sent_bytes(part.bytes)
    if vendor is OPENAI:
        assert sent == part.file(tmp_path).read_bytes()
    else:
        assert orjson.loads(sent) == {"requests": [*lines_of(part, tmp_path)]}


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({"max_requests": 4}, [4, 4, 2]),
        ({"max_bytes": 700}, [3, 3, 3, 1]),
        ({"max_tokens": 35}, [3, 3, 3, 1]),
        ({"max_usd": 0.5}, [5, 5]),
        ({}, [10]),
    ],
    ids=["requests", "bytes", "tokens", "budget", "none"],
)
def test_no_part_passes_a_limit(packed, tmp_path, limits, sizes):
    asked = requests(10, tokens=10, reserved_usd=0.1)
    parts = packed(asked, **limits)

    assert [part.requests for part in parts] == sizes
    assert trials_of(parts, tmp_path) == [request.trial_id for request in asked]
    assert max(part.bytes for part in parts) <= limits.get("max_bytes", 10_000)


def test_the_vendor_s_own_limits_hold_whatever_is_asked_for(packed):
    assert [part.requests for part in packed(requests(50_001), max_requests=10**6)] == [50_000, 1]


def test_one_model_and_one_endpoint_a_file_where_the_vendor_wants_it(packed):
    asked = [
        *requests(2),
        *requests(2, first=2, model="other"),
        *requests(1, first=4, model="other", path="/v1/responses"),
    ]
    parts = packed(asked)
    assert [(part.requests, part.model_id, part.path) for part in parts] == [
        (2, "m", CHAT),
        (2, "other", CHAT),
        (1, "other", "/v1/responses"),
    ]
    assert [part.requests for part in packed(asked, ANTHROPIC)] == [5]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (requests(1, first=99, text="x" * 1000), "1,1.. bytes, and a batch may have 700"),
        (requests(1, first=99, reserved_usd=9), r"\$9.00, and a batch may cost \$1.00"),
        ([BatchRequest(trial_id="a b", attempt=1, model_id="m", path=CHAT, body=b"{}")], "custom id 'a b"),
    ],
    ids=["bytes", "budget", "custom id"],
)
def test_a_request_that_no_part_can_hold_costs_one_request(packed, tmp_path, bad, why):
    asked = requests(3)
    parts = packed([asked[0], *bad, *asked[1:]], max_bytes=700, max_tokens=100, max_usd=1)

    assert trials_of(parts, tmp_path) == [request.trial_id for request in asked]
    assert len(parts) == 1
    ((refused, said),) = packed.refused
    assert refused == bad[0].trial_id
    assert re.search(why, said)


def test_a_prompt_longer_than_what_may_wait_goes_alone(packed):
    asked = [*requests(2, tokens=40), *requests(1, first=2, tokens=1000), *requests(2, first=3, tokens=40)]
    assert [part.requests for part in packed(asked, max_tokens=100)] == [2, 1, 2]


def test_nothing_makes_no_part(packed, tmp_path):
    assert packed([]) == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("taken", "sizes"),
    [((), [4, 3, 2, 1]), ((4,), [3, 2, 1, 4]), ((10, 3), [4, 2, 1, 3])],
    ids=["none", "the largest", "some"],
)
def test_parts_known_by_their_numbers_have_numbers_of_their_own(packed, tmp_path, taken, sizes):
    asked = requests(10)
    parts = packed(asked, ANTHROPIC, max_requests=4, counts_taken=taken)

    assert [part.requests for part in parts] == sizes
    assert trials_of(parts, tmp_path) == [request.trial_id for request in asked]
    for part in parts:
        check_part(part, ANTHROPIC, tmp_path)
        assert len([*owners_of(part, tmp_path)]) == part.requests
    assert [part.requests for part in packed(asked, max_requests=4, counts_taken=taken)] == [4, 4, 2]


@settings(max_examples=30)
@given(
    count=st.integers(0, 60),
    most=st.integers(1, 12),
    most_bytes=st.integers(400, 2000),
    taken=st.frozensets(st.integers(1, 12)),
    one=st.booleans(),
)
def test_every_request_is_in_one_part_once(tmp_path_factory, count, most, most_bytes, taken, one):
    folder, asked = tmp_path_factory.mktemp("parts"), requests(count, tokens=1, reserved_usd=0.5)
    keys = (f"{number:016x}" for number in range(10_000))
    vendor = OPENAI if one else ANTHROPIC
    parts = [
        *pack(
            asked,
            vendor,
            folder,
            limits=PartLimits(max_requests=most, max_bytes=most_bytes),
            new_key=lambda: next(keys),
            counts_taken=taken,
            refuse=lambda *told: pytest.fail(str(told)),
        )
    ]
    assert trials_of(parts, folder) == [request.trial_id for request in asked]
    assert sum(part.reserved_usd for part in parts) == pytest.approx(0.5 * count)
    assert all(vendor.sent_bytes(part.bytes) <= most_bytes and part.requests <= most for part in parts)
    for part in parts:
        check_part(part, vendor, folder)


def test_a_pack_that_is_left_leaves_only_whole_parts(tmp_path):
    keys = (f"{number:016x}" for number in range(10))
    parts = pack(
        requests(5),
        OPENAI,
        tmp_path,
        limits=PartLimits(max_requests=2),
        new_key=lambda: next(keys),
        refuse=lambda *told: pytest.fail(str(told)),
    )
    first = next(parts)
    assert len([*tmp_path.iterdir()]) == 2
    parts.close()
    assert sorted(tmp_path.iterdir()) == sorted([first.file(tmp_path), first.manifest(tmp_path)])


def test_memory_stays_flat_however_many_requests_there_are(tmp_path):
    def many():
        for number in range(20_000):
            yield from requests(1, first=number, text="x" * 1000)

    keys = (f"{number:016x}" for number in range(10))
    tracemalloc.start()
    parts = pack(
        many(),
        OPENAI,
        tmp_path,
        limits=PartLimits(max_requests=20_000),
        new_key=lambda: next(keys),
        refuse=lambda *told: pytest.fail(str(told)),
    )
    part = next(parts)
    assert [*parts] == []
    sent = sum(map(len, OPENAI.sent(part.file(tmp_path))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sent == part.bytes > 20_000_000
    assert peak < 3_000_000


# ── before it is sent ────────────────────────────────────────────────────────────────────────


def line(part, number, **fields):
    body = {"model": "m", "messages": []} | fields.pop("body", {})
    usual = {"custom_id": part.custom_id(f"{number:032x}"), "method": "POST", "url": CHAT, "body": body}
    return orjson.dumps(usual | fields) + b"\n"


SPOILED = {  # what becomes of three lines → the complaint
    "short": (lambda lines, _: lines[:2], "differ from line 3 on"),
    "long": (lambda lines, part: [*lines, line(part, 3)], "differ from line 4 on"),
    "no end": (lambda lines, _: [*lines[:2], lines[2][:-1]], "line 3: it does not end"),
    "no JSON": (lambda lines, _: [lines[0], b"{\n", lines[2]], "line 2: it is not JSON"),
    "BOM": (lambda lines, _: [b"\xef\xbb\xbf" + lines[0], *lines[1:]], "line 1: it is not JSON"),
    "twice": (lambda lines, _: [lines[0], lines[0], lines[2]], "line 2: its custom id is not"),
    "model": (lambda lines, part: [*lines[:2], line(part, 2, body={"model": "n"})], "line 3: it is not for"),
    "path": (lambda lines, part: [*lines[:2], line(part, 2, url="/v1/x")], "line 3: it is not for m at"),
    "stream": (lambda lines, part: [*lines[:2], line(part, 2, body={"stream": True})], "asks for a stream"),
    "changed": (lambda lines, part: [*lines[:2], line(part, 2, body={"n": 1})], "not the file that was"),
    "no body": (lambda lines, part: [*lines[:2], line(part, 2).replace(b"body", b"bode")], "it has no body"),
}


@pytest.mark.parametrize(("spoil", "complaint"), SPOILED.values(), ids=SPOILED)
def test_a_file_that_a_vendor_would_refuse_is_not_sent(packed, tmp_path, spoil, complaint):
    (part,) = packed(requests(3))
    path = part.file(tmp_path)
    path.write_bytes(b"".join(spoil(path.read_bytes().splitlines(keepends=True), part)))

    with pytest.raises(StoreError, match=complaint) as refused:
        check_part(part, OPENAI, tmp_path)
    assert "Nothing of it was sent" in str(refused.value)


def test_a_trial_that_is_packed_twice_is_not_sent(packed, tmp_path):
    (part,) = packed([*requests(1), *requests(1)])
    with pytest.raises(StoreError, match=r"line 2: its custom id .* is there twice"):
        check_part(part, OPENAI, tmp_path)


def test_a_file_that_is_gone_is_named(packed, tmp_path):
    (part,) = packed(requests(1))
    part.manifest(tmp_path).unlink()
    with pytest.raises(StoreError, match="manifest cannot be read: No such file"):
        check_part(part, OPENAI, tmp_path)
