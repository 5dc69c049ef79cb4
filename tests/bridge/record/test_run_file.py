"""Recordings on the disc: read by programs that are not ours, cut off anywhere, damaged, gone on with, out of room."""

import itertools
import json
import os
import random
import resource
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import recordings
from mcap.reader import make_reader
from mcap.records import Message
from mcap.stream_reader import StreamReader
from mcap_ros2.decoder import DecoderFactory
from recordings import CHUNK, SCHEMA, chunk_of, event, rows_of

from bridge.protocol.row_message import definition, field_names
from bridge.record.mcap_file import McapFile
from bridge.record.mcap_scan import RecordingError
from bridge.record.row_recorder import PROGRESS_ID, head_of
from bridge.record.run_file import Run
from hilnode.core.signals import Signal
from hilnode.shared.row import Col, Schema


def head() -> list:
    return head_of({"schema": SCHEMA.as_dict(), "about": recordings.about()})


def all_rows(run: Run) -> np.ndarray:
    return np.concatenate([np.empty((0, SCHEMA.words), np.int64), *run.rows()])


def test_the_ros_reader_sees_the_same_numbers(tmp_path):
    rows = rows_of(250)
    folder = recordings.write(tmp_path / "run", rows)
    with (folder / "rows.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        read = [m for _, _, _, m in reader.iter_decoded_messages(topics=["/rows"])]
    assert len(read) == 250
    for ros, row in zip(read, rows, strict=True):
        values = row.view(np.float64)
        assert [ros.tick, ros.step, ros.wake, ros.state] == row[[Col.TICK, Col.STEP, Col.WAKE, Col.STATE]].tolist()
        assert ros.inputs.cart_force == values[SCHEMA.at_inputs]
        assert ros.ages.cart_force == values[SCHEMA.at_ages]
        assert [ros.outputs.cart_position, ros.outputs.cart_speed] == values[SCHEMA.at_outputs :][:2].tolist()
        assert ros.commands.valve_ao0 == values[SCHEMA.at_commands]
        pose = ros.poses.cart
        assert [pose.x, pose.y, pose.z, pose.qw, pose.qx, pose.qy, pose.qz] == values[SCHEMA.at_poses :].tolist()


def test_the_mcap_reader_finds_its_way_by_the_summary(tmp_path):
    folder = recordings.write(tmp_path / "run", rows_of(1000), [event(17), event(640)])
    with (folder / "rows.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert summary.statistics.channel_message_counts == {1: 1000, 2: 2, 3: 10}
        assert summary.statistics.chunk_count == 10
        start = recordings.OFFSET + recordings.START
        some = reader.iter_messages(
            topics=["/rows"], starting_at=start + 300_000_000, ending_before=start + 302_000_000
        )
        assert [m.sequence for _, _, m in some] == [300, 301]
        assert [json.loads(m.data)["tick"] for _, _, m in reader.iter_messages(topics=["/events"])] == [17, 640]
        (run,) = reader.iter_metadata()
        assert Schema.from_dict(json.loads(run.metadata["schema"])).hash == SCHEMA.hash


def test_every_bit_comes_back(tmp_path):
    rows = rows_of(250)
    with Run(recordings.write(tmp_path / "run", rows, [event(120)])) as run:
        assert np.array_equal(all_rows(run), rows)
        assert [(e["number"], e["tick"]) for e in run.events()] == [(1, 120)]
        assert run.notes == []
        assert run.duration_s == pytest.approx(0.249)
        assert [r[0, Col.TICK] for r in run.rows(0.15, 0.22)] == [150, 200]
        assert sum(len(r) for r in run.rows(0.15, 0.22)) == 71
        assert run.column(rows, "valve.ao0").tolist() == rows[:, SCHEMA.at_commands].view(float).tolist()
        with pytest.raises(KeyError, match=r"did you mean 'cart\.speed'"):
            run.column(rows, "cart.sped")


def test_cut_off_anywhere_it_reads_up_to_the_last_whole_chunk(tmp_path):
    rows = rows_of(300)
    whole = (recordings.write(tmp_path / "run", rows, finish=False) / "rows.mcap").read_bytes()
    with Run(tmp_path / "run") as run:
        ends = [c.data.end for c in run.chunks]
        first = run.chunks[0].data.offset - 60  # somewhere in the head of the first chunk
    for size in [*range(first, len(whole), 499), *ends, *(e - 1 for e in ends), len(whole)]:
        (tmp_path / "cut.mcap").write_bytes(whole[:size])
        with Run(tmp_path / "cut.mcap") as run:
            chunks = sum(end <= size for end in ends)
            if chunks:
                assert np.array_equal(all_rows(run), rows[: chunks * CHUNK])
            assert any("not finished" in note for note in run.notes)


def test_the_mcap_package_reads_a_cut_file_too(tmp_path):
    whole = (recordings.write(tmp_path / "run", rows_of(300), finish=False) / "rows.mcap").read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(whole[: len(whole) - 200])
    with cut.open("rb") as file:
        records = itertools.islice(StreamReader(file).records, 210)  # its end is not to its liking
        ticks = [r.sequence for r in records if isinstance(r, Message) and r.channel_id == 1]
    assert ticks == list(range(len(ticks)))
    assert len(ticks) > 190


def test_a_damaged_chunk_is_left_out_and_told(tmp_path):
    rows = rows_of(300)
    path = recordings.write(tmp_path / "run", rows) / "rows.mcap"
    with Run(path) as run:
        middle = run.chunks[1].data
    data = bytearray(path.read_bytes())
    data[middle.offset + middle.length // 2] ^= 0x10
    path.write_bytes(data)
    with Run(path) as run:
        assert np.array_equal(all_rows(run), np.concatenate([rows[:100], rows[200:]]))
        assert run.notes == ["1 of 3 chunks are damaged and were left out"]


def test_a_file_is_gone_on_with_after_a_kill_at_any_byte(tmp_path):
    rows = rows_of(400)
    path = recordings.write(tmp_path / "run", rows[:200], finish=False) / "rows.mcap"
    whole = path.read_bytes()
    for size in range(0, len(whole) + 1, 1009):
        path.write_bytes(whole[:size])
        file = McapFile(path, head(), PROGRESS_ID)
        kept = 0
        if file.resumed:
            with Run(path) as run:
                kept = run.progress["rows"]
        assert file.resumed == (kept > 0)
        file.add(chunk_of(rows[kept : kept + 100], [], kept + 100))
        file.finish()
        with path.open("rb") as stream:
            reader = make_reader(stream, validate_crcs=True)
            assert reader.get_summary().statistics.channel_message_counts[1] == kept + 100
            assert [m.sequence for _, _, m in reader.iter_messages(topics=["/rows"])] == list(range(kept + 100))
            assert len(list(reader.iter_metadata())) == 1


def test_without_room_the_file_stays_as_it_was(tmp_path):
    """A real limit of the kernel: the file may not grow beyond it."""
    rows = rows_of(300)
    path = tmp_path / "rows.mcap"
    file = McapFile(path, head(), PROGRESS_ID)
    file.add(chunk_of(rows[:100], [], 100))
    size = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 500, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.add(chunk_of(rows[100:200], [], 200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.stat().st_size == size
    file.add(chunk_of(rows[100:200], [], 200))
    file.finish()
    with Run(path) as run:
        assert np.array_equal(all_rows(run), rows[:200])


@pytest.mark.parametrize(("content", "why"), [(b"", "no MCAP file"), (b"x" * 100, "no MCAP file")])
def test_what_is_no_recording_is_told(tmp_path, content, why):
    path = tmp_path / "rows.mcap"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=why):
        Run(path)
    with pytest.raises(RecordingError, match="no such recording"):
        Run(tmp_path / "nowhere")


def test_an_mcap_file_of_another_program_is_told(tmp_path):
    from mcap.writer import Writer

    path = tmp_path / "other.mcap"
    writer = Writer(str(path))
    writer.start()
    writer.finish()
    with pytest.raises(RecordingError, match="not of a hilnode run"):
        Run(path)


def test_names_that_ros_does_not_take_are_made_fit_and_stay_apart():
    assert field_names(["a.b_c", "a_b.c", "x..1", "1st", "b_"]) == ["a_b_c", "a_b_c_2", "x_1", "n_1st", "b"]


def test_a_plant_without_inputs_has_no_empty_structure():
    text = definition(Schema(1_000_000, (), (Signal("cart.position", "m"),), (), ())).decode()
    assert "Inputs" not in text
    assert "Poses" not in text
    assert "float64 cart_position  # cart.position [m]" in text


def test_the_writer_waits_for_the_disc(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_size))
    file = McapFile(tmp_path / "rows.mcap", head(), PROGRESS_ID)
    file.add(chunk_of(rows_of(100), [], 100))
    assert synced[-1] == (tmp_path / "rows.mcap").stat().st_size == file.size
    file.close()


def test_several_threads_read_one_run(tmp_path):
    """A player and who answers a client about the ground use the same file."""
    rows = rows_of(5000)
    folder = recordings.write(tmp_path / "run", rows)
    with Run(folder) as run, ThreadPoolExecutor(4) as pool:
        numbers = [k for _ in range(20) for k in range(len(run.chunks))]
        random.Random(1).shuffle(numbers)
        read = list(pool.map(run._read, numbers))
        assert run.damaged == set()
        for number, held in zip(numbers, read, strict=True):
            assert np.array_equal(held.rows, rows[CHUNK * number : CHUNK * (number + 1)])
