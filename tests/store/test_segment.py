"""Lines that were cut short or changed are recognised, and take no other with them."""

import random
import zlib

import pytest

from asyncbench.errors import StoreError
from asyncbench.store.segment import BATCH_BYTES, Damage, Segment, batches, name_of, payloads, segments
from tests.store.disk import disk_for

LINES = [b'{"sent":%d,"text":"%s"}' % (n, b"x" * (n % 7)) for n in range(12)]


@pytest.fixture
def written(tmp_path):
    """A segment of LINES as bytes."""
    segment = Segment(tmp_path / "000001.wal")
    for line in LINES:
        segment.append(line)
    segment.close()
    return segment.path.read_bytes()


@pytest.fixture
def read(tmp_path):
    """Read bytes as a segment: the lines kept, and where the damaged ones are."""
    path = tmp_path / "000002.wal"

    def read_as_segment(data):
        path.unlink(missing_ok=True)  # a file written over is brought to the disk first: slow
        path.write_bytes(data)
        damaged: list[Damage] = []
        kept = list(payloads(path, damaged))
        return kept, [(damage.line, damage.offset) for damage in damaged]

    return read_as_segment


def test_what_was_written_is_read_in_its_order(written, read):
    assert read(written) == (LINES, [])


def test_a_segment_cut_anywhere_keeps_every_whole_line_and_reports_the_torn_one(written, read):
    for size in range(len(written)):
        whole = written[:size].count(b"\n")
        start = written.rfind(b"\n", 0, size) + 1
        assert read(written[:size]) == (LINES[:whole], [(whole + 1, start)] if start < size else [])


@pytest.mark.long
def test_no_flipped_bit_gives_another_line(written, read):
    for bit in range(8 * len(written)):
        changed = bytearray(written)
        changed[bit // 8] ^= 1 << bit % 8
        kept, damaged = read(changed)
        assert set(kept) < set(LINES)
        assert len(kept) >= len(LINES) - 2  # a changed line feed joins two lines
        assert damaged


@pytest.mark.parametrize("seed", range(20))
def test_noise_among_the_lines_costs_only_what_it_hits(written, read, seed):
    rng = random.Random(seed)
    lines = written.splitlines(keepends=True)
    hit = rng.randrange(len(lines))
    lines[hit] = rng.randbytes(rng.randrange(1, 200)).replace(b"\n", b"") + b"\n"
    kept, damaged = read(b"".join(lines))
    assert kept == LINES[:hit] + LINES[hit + 1 :]
    assert damaged == [(hit + 1, len(b"".join(lines[:hit])))]


def test_a_tail_of_zeros_as_a_power_failure_leaves_it_is_one_damaged_line(written, read):
    assert read(written + bytes(4096)) == (LINES, [(len(LINES) + 1, len(written))])


def test_a_full_disk_is_named_and_spoils_no_other_line(tmp_path, read):
    segment = Segment(tmp_path / "000003.wal")
    segment.append(LINES[0])
    start = segment.size
    with (
        disk_for(segment.size + 5),
        pytest.raises(StoreError, match=r"000003\.wal could not be written.*5 of"),
    ):
        segment.append(LINES[1])
    with disk_for(segment.size), pytest.raises(StoreError, match=r"000003\.wal could not be written"):
        segment.append(LINES[2])
    segment.append(LINES[3])  # there is room again
    segment.close()
    assert read(segment.path.read_bytes()) == ([LINES[0], LINES[3]], [(2, start)])


def test_a_line_after_the_end_is_refused(tmp_path):
    segment = Segment(tmp_path / "000001.wal")
    segment.close()
    with pytest.raises(StoreError, match="could not be written"):
        segment.append(LINES[0])


def test_a_segment_never_continues_an_earlier_file(tmp_path):
    Segment(tmp_path / "000001.wal").close()
    with pytest.raises(StoreError, match="File exists"):
        Segment(tmp_path / "000001.wal")


def test_segments_are_read_oldest_first(tmp_path):
    for number in (1_000_000, 2, 999_999):
        Segment(tmp_path / name_of(number)).close()
    assert [path.name for path in segments(tmp_path)] == ["000002.wal", "999999.wal", "1000000.wal"]


@pytest.mark.parametrize("size", [10, BATCH_BYTES // 2, 2 * BATCH_BYTES], ids=["small", "half", "too large"])
def test_a_batch_ends_with_the_line_that_fills_it_and_no_line_is_left_out(size):
    lines = [bytes(size)] * 5
    found = list(batches(iter(lines)))
    assert [line for batch in found for line in batch] == lines
    assert all(sum(map(len, batch[:-1])) < BATCH_BYTES for batch in found)


# lines that are whole, but not those that were written, or not where they were


def rearranged(seed, lines):
    """Lines in another order, some gone or there twice: never as they were."""
    rng, found = random.Random(seed), list(lines)
    while found == lines:
        at = rng.randrange(len(found) - 1)  # without the last, the rest is what a killed run leaves
        match rng.choice(["remove", "move", "swap", "double"]):
            case "remove":
                del found[at]
            case "move":
                found.insert(rng.randrange(len(found)), found.pop(at))
            case "swap":
                other = rng.randrange(len(found))
                found[at], found[other] = found[other], found[at]
            case "double":
                found.insert(rng.randrange(len(found)), found[at])
    return found


@pytest.mark.parametrize("seed", range(60))
def test_lines_that_were_removed_moved_swapped_or_doubled_are_noticed_and_the_rest_is_as_written(
    written, read, seed
):
    lines = written.splitlines(keepends=True)
    found = rearranged(seed, lines)
    kept, damaged = read(b"".join(found))
    assert damaged
    assert kept == [line for line, raw in zip(LINES, lines, strict=True) if raw in found]


def test_a_line_of_another_journal_is_left_out(written, read, tmp_path):
    segment = Segment(tmp_path / "000009.wal")
    for _ in LINES:
        segment.append(b'{"sent":"of another run"}')
    segment.close()
    lines = written.splitlines(keepends=True)
    lines[4] = segment.path.read_bytes().splitlines(keepends=True)[4]
    kept, damaged = read(b"".join(lines))
    assert kept == LINES[:4] + LINES[5:]
    assert damaged == [(5, len(b"".join(lines[:4])))]


def test_lines_that_are_gone_are_counted(written, read, tmp_path):
    lines = written.splitlines(keepends=True)
    read(b"".join(lines[:3] + lines[7:]))
    damaged: list[Damage] = []
    assert list(payloads(tmp_path / "000002.wal", damaged)) == LINES[:3] + LINES[7:]
    assert [damage.missing for damage in damaged] == [4]
    assert damaged[0].message == "4 lines are missing before it: somebody removed what was written"


def test_a_disk_that_is_full_again_and_again_breaks_no_chain(tmp_path, read):
    rng, kept = random.Random(5), []
    segment = Segment(tmp_path / "000003.wal")
    for line in LINES * 10:
        try:
            with disk_for(segment.size + rng.randrange(4 * len(line))):
                segment.append(line)
            kept.append(line)
        except StoreError:
            continue
    segment.close()
    found, _ = read(segment.path.read_bytes())
    assert found == kept
    assert 10 < len(kept) < len(LINES * 10)


def test_a_segment_of_a_version_that_numbered_no_lines_is_read_as_it_was(read):
    data = b"".join(b"%08x %b\n" % (zlib.crc32(line), line) for line in LINES)
    assert read(data) == (LINES, [])
