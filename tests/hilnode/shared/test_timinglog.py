"""The timing log against hand-built files, cuts at every byte and damage of every kind."""

from __future__ import annotations

import errno
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilnode.shared.row import Col
from hilnode.shared.timinglog import MachineSample, TimingLog, TimingLogError, TimingWriter, read

META = {"period_ns": 1_000_000, "name": "bücker"}


def make_rows(first: int, count: int, seed: int = 0) -> np.ndarray:
    """Rows of a 1 kHz run with the spread of a real machine."""
    rng = np.random.default_rng(seed + first)
    rows = np.zeros((count, 12), np.int64)
    rows[:, Col.TICK] = np.arange(first, first + count)
    rows[:, Col.STEP] = rows[:, Col.TICK]
    rows[:, Col.DEADLINE] = 5_000_000_000_000 + rows[:, Col.TICK] * 1_000_000
    before = rows[:, Col.DEADLINE]
    for column, scale in ((Col.WAKE, 6e3), (Col.START, 1e3), (Col.END, 2e5), (Col.DONE, 5e3)):
        rows[:, column] = before + rng.gamma(4.0, scale / 4, count).astype(np.int64)
        before = rows[:, column]
    rows[:, Col.PERIOD] = np.diff(rows[:, Col.WAKE], prepend=rows[0, Col.WAKE] - 1_000_000)
    rows[:, Col.STATE] = 2
    return rows


def make_sample(i: int) -> MachineSample:
    return MachineSample(5_000_000_000_000 + i * 50_000_000, i, 0, 50 * i, i, 999 * i, 0, 0, 0, 0, 0, 123 << 20, 7 * i)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "timing.hlog"


def write_small(path: Path) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """Three flushes of four rows and a footer; returns the rows and, per flush, (file size, rows so far)."""
    rows = make_rows(0, 12)
    ends = []
    writer = TimingWriter(path, META)
    for i in range(3):
        writer.append(rows[4 * i : 4 * i + 4])
        writer.flush()
        ends.append((path.stat().st_size, 4 * i + 4))
    writer.close(12)
    return rows, ends


# --- what is written is read


def test_round_trip(path: Path) -> None:
    rows = make_rows(0, 1000)
    samples = [make_sample(i) for i in range(20)]
    writer = TimingWriter(path, META)
    writer.append(rows[:1])
    writer.append(rows[1:400])
    writer.flush()
    for sample in samples:
        writer.sample(sample)
    writer.lost(3)
    writer.append(rows[400:])
    writer.flush(sync=True)
    writer.lost(4)
    writer.close(1007)
    log = read(path)
    assert log.meta == META
    assert np.array_equal(log.rows, rows)
    assert log.samples == tuple(samples)
    assert (log.lost, log.closed, log.total, log.damaged_blocks, log.missing) == (7, True, 1007, 0, 7)


@pytest.mark.parametrize("column", list(Col))
def test_each_word_has_its_property(path: Path, column: Col) -> None:
    rows = np.arange(24, dtype=np.int64).reshape(2, 12)
    with TimingWriter(path, {}) as writer:
        writer.append(rows)
        writer.flush()
    assert getattr(read(path), column.name.lower()).tolist() == [int(column), 12 + int(column)]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=12, max_size=12), min_size=1, max_size=6))
def test_any_number_survives(path: Path, words: list[list[int]]) -> None:
    path.unlink(missing_ok=True)
    with TimingWriter(path, {}) as writer:
        writer.append(np.array(words, np.int64))
        writer.flush()
    assert read(path).rows.tolist() == words


def test_append_copies_because_the_ring_moves_on(path: Path) -> None:
    rows = make_rows(0, 5)
    shared = np.zeros((5, 40), np.int64)
    shared[:, :12] = rows
    with TimingWriter(path, {}) as writer:
        writer.append(shared[:, :12])
        shared[:] = -1
        writer.flush()
    assert np.array_equal(read(path).rows, rows)


@pytest.mark.parametrize("bad", [np.zeros((3, 12)), np.zeros((3, 11), np.int64), np.zeros(12, np.int64)])
def test_append_refuses_what_is_no_header(path: Path, bad: np.ndarray) -> None:
    with TimingWriter(path, {}) as writer, pytest.raises(ValueError, match=r"takes int64 \[n, 12\]"):
        writer.append(bad)


def test_an_existing_log_is_never_overwritten(path: Path) -> None:
    write_small(path)
    with pytest.raises(FileExistsError):
        TimingWriter(path, META)
    assert len(read(path)) == 12


def test_flush_without_news_writes_nothing(path: Path) -> None:
    with TimingWriter(path, {}) as writer:
        size = path.stat().st_size
        writer.append(np.empty((0, 12), np.int64))
        writer.flush()
        assert path.stat().st_size == size


# --- the format, spelt out by hand


def hand_block(kind: int, payload: bytes) -> bytes:
    head = b"\x89HLBLK\r\n" + struct.pack("<III", kind, len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def hand_table(rows: list[list[int]]) -> bytes:
    """Differences down each column, then byte planes, in plain Python."""
    words = []
    for column in zip(*rows, strict=True):
        before = 0
        for value in column:
            words.append(struct.pack("<q", value - before))
            before = value
    planes = bytes(word[i] for i in range(8) for word in words)
    return struct.pack("<II", len(rows), len(rows[0])) + zlib.compress(planes)


def hand_head(text: bytes, version: int = 1) -> bytes:
    crc = zlib.crc32(struct.pack("<II", version, len(text)) + text)
    return b"HILTIME\n" + struct.pack("<III", version, len(text), crc) + text


def test_reads_a_hand_built_file(path: Path) -> None:
    rows = [[10 * i + j for j in range(12)] for i in (0, 1, 5)]
    path.write_bytes(
        hand_head(b'{"period_ns": 250000}')
        + hand_block(1, hand_table(rows))
        + hand_block(2, hand_table([list(range(13)), list(range(100, 113))]))
        + hand_block(3, struct.pack("<Q", 17))
        + hand_block(77, b"from the future")
        + hand_block(4, struct.pack("<Q", 60))
    )
    log = read(path)
    assert log.meta == {"period_ns": 250000}
    assert log.rows.tolist() == rows
    assert log.samples == (MachineSample(*range(13)), MachineSample(*range(100, 113)))
    assert (log.lost, log.closed, log.total, log.damaged_blocks) == (17, True, 60, 0)


def test_writes_the_documented_format(path: Path) -> None:
    rows = make_rows(0, 3)
    with TimingWriter(path, {"a": 1}) as writer:
        writer.append(rows)
        writer.flush()
    data = path.read_bytes()
    head = hand_head(b'{"a": 1}')
    assert data.startswith(head)
    at = len(head)
    kind, length, crc = struct.unpack_from("<III", data, at + 8)
    payload = data[at + 24 :]
    assert (kind, length, crc) == (1, len(payload), zlib.crc32(payload))
    expected = hand_table(rows.tolist())
    assert payload[:8] == expected[:8]
    assert zlib.decompress(payload[8:]) == zlib.decompress(expected[8:])


def test_another_version_is_refused_with_the_fix(path: Path) -> None:
    path.write_bytes(hand_head(b"{}", version=9))
    with pytest.raises(TimingLogError, match=r"timing\.hlog: timing log of version 9, this hilnode reads version 1"):
        read(path)


def test_another_file_is_refused(path: Path) -> None:
    path.write_text('{"run": "json"}')
    with pytest.raises(TimingLogError, match="not a timing log"):
        read(path)


# --- cut short


def test_cut_at_every_byte(path: Path) -> None:
    rows, ends = write_small(path)
    data = path.read_bytes()
    head = len(hand_head(json.dumps(META).encode()))
    for size in range(len(data)):
        path.write_bytes(data[:size])
        log = read(path)
        whole = max((count for end, count in ends if end <= size), default=0)
        assert np.array_equal(log.rows, rows[:whole]), size
        assert (log.closed, log.total, log.damaged_blocks) == (False, None, 0), size
        assert log.meta == (META if size >= head else {}), size


def test_killed_writer_leaves_what_it_flushed(path: Path) -> None:
    program = (
        "import os, signal, sys, numpy as np\n"
        "from hilnode.shared.timinglog import TimingWriter\n"
        "w = TimingWriter(sys.argv[1], {})\n"
        "w.append(np.arange(24).reshape(2, 12)); w.flush()\n"
        "w.append(np.arange(24).reshape(2, 12))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    log = read(path)
    assert log.rows.tolist() == np.arange(24).reshape(2, 12).tolist()
    assert not log.closed


def test_full_disc_counts_rows_as_lost_and_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_rows(0, 9)
    writer = TimingWriter(path, {})
    real = os.write
    calls = []

    def half_then_full(fd: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) == 1:
            return real(fd, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    size = path.stat().st_size
    writer.append(rows[:4])
    monkeypatch.setattr(os, "write", half_then_full)
    with pytest.raises(OSError, match="No space"):
        writer.flush()
    monkeypatch.setattr(os, "write", real)
    assert len(calls) == 2
    assert path.stat().st_size == size
    writer.append(rows[4:])
    writer.close(9)
    log = read(path)
    assert np.array_equal(log.rows, rows[4:])
    assert (log.lost, log.missing, log.damaged_blocks, log.closed) == (4, 4, 0, True)


# --- damaged


def test_one_flipped_byte_costs_one_block(path: Path) -> None:
    rows, ends = write_small(path)
    data = path.read_bytes()
    borders = [len(hand_head(json.dumps(META).encode())), *(end for end, _ in ends), len(data)]
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 1 << (at % 8)
        path.write_bytes(broken)
        log = read(path)
        hit = sum(border <= at for border in borders)  # 0 the head, 1..3 the rows, 4 the footer
        kept = [i for i in range(12) if i // 4 + 1 != hit]
        assert np.array_equal(log.rows, rows[kept]), at
        assert log.damaged_blocks == 1, at
        assert log.meta == ({} if hit == 0 else META), at
        assert log.closed == (hit != 4), at


EDIT = st.tuples(
    st.floats(0, 1), st.sampled_from(["flip", "drop", "insert", "zero"]), st.binary(min_size=1, max_size=40)
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(EDIT, min_size=1, max_size=5))
def test_no_damage_raises_or_invents_rows(path: Path, edits: list[tuple[float, str, bytes]]) -> None:
    path.unlink(missing_ok=True)
    rows, _ = write_small(path)
    data = bytearray(path.read_bytes())
    whole = bytes(data)
    for where, kind, junk in edits:
        at = int(where * len(data))
        if kind == "flip":
            for i, mask in enumerate(junk[: len(data) - at]):
                data[at + i] ^= mask
        elif kind == "drop":
            del data[at : at + len(junk)]
        elif kind == "insert":
            data[at:at] = junk
        else:
            data[at : at + len(junk)] = bytes(len(data[at : at + len(junk)]))
    path.write_bytes(data)
    try:
        log = read(path)
    except TimingLogError:
        assert not data.startswith(b"HILTIME\n")
        assert b"\x89HLBLK\r\n" not in data
        return
    written = {tuple(row) for row in rows.tolist()}
    assert {tuple(row) for row in log.rows.tolist()} <= written
    if bytes(data) == whole:
        assert (len(log), log.damaged_blocks, log.closed) == (12, 0, True)
    elif len(log) < 12:
        assert log.damaged_blocks > 0 or not log.closed


# --- missing ticks


def log_of(ticks: list[int], total: int | None = None) -> TimingLog:
    columns = np.zeros((12, len(ticks)), np.int64)
    columns[Col.TICK] = ticks
    return TimingLog(columns=columns, closed=total is not None, total=total)


@pytest.mark.parametrize(
    ("ticks", "total", "missing"),
    [
        ([0, 1, 2], None, 0),
        ([0, 1, 2], 3, 0),
        ([0, 2, 3, 7], None, 4),
        ([3, 4], None, 3),
        ([0, 1], 10, 8),
        ([2, 4], 6, 4),
        ([], 5, 5),
        ([], None, 0),
        ([0, 1, 1, 2], 3, 0),
    ],
)
def test_missing(ticks: list[int], total: int | None, missing: int) -> None:
    assert log_of(ticks, total).missing == missing


# --- cost


def test_a_row_takes_a_fraction_of_its_size(path: Path) -> None:
    with TimingWriter(path, {}) as writer:
        for first in range(0, 10_000, 250):
            writer.append(make_rows(first, 250))
            writer.flush()
    assert path.stat().st_size * 60 < 15e6  # ten minutes at 1 kHz


def test_import_brings_no_heavy_library() -> None:
    program = (
        "import hilnode.shared.timinglog, sys; print(sorted({'numba', 'rich', 'scipy', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.timing
def test_ten_minutes_write_and_read_fast(path: Path) -> None:
    rows = make_rows(0, 600_000)
    began = time.process_time()
    writer = TimingWriter(path, META)
    for first in range(0, len(rows), 50):
        writer.append(rows[first : first + 50])
        writer.sample(make_sample(first))
        if first % 250 == 0:
            writer.flush()
    writer.close(len(rows))
    assert time.process_time() - began < 6.0  # 1 % of the run
    began = time.perf_counter()
    log = read(path)
    assert time.perf_counter() - began < 2.0
    assert np.array_equal(log.rows, rows)
    assert log.missing == 0
