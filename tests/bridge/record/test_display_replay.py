"""What a plant shows beside its row, recorded and played again: a page sees the ground of the moment."""

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from digging_plant import NX, NY, heights_after
from support import HILNODE, free_port, started, wait_for
from web_node import digging, opened
from web_page import placeholder, served

from bridge.client.client import Node
from bridge.protocol.terrain import GridReader, units_of
from bridge.record.display_record import RecordedDisplay
from bridge.record.display_replay import DisplayReplay
from bridge.record.run_file import Run
from hilnode.shared.row import Col


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Iterator[Path]:
    """Some seconds of digging, ended in good order, with what the plant's ground was at the end."""
    folder = tmp_path_factory.mktemp("sights")
    with digging(folder / "dig", "rec", more="log.record = true\nlog.record_chunk_s = 0.5\n") as digger:
        digger.start()
        with Node(digger.commands) as node:
            wait_for(lambda: digger.node.ask("steps") > 4000, "four seconds of digging", 120)
            node.pause()
            steps = digger.node.ask("steps")
            node.ask("clock")
            wait_for(lambda: digger.node.ask("TICK") > steps + 1500, "a second of standing", 120)
            node.stop()
        digger.node.process.communicate(timeout=60)
    return folder / "dig" / "run"


def step_at(run: Run, tick: int) -> int:
    """Plant steps that were done at a tick."""
    rows = run.chunk(run.chunk_of_tick(tick)).rows
    return int(rows[np.searchsorted(rows[:, Col.TICK], tick), Col.STEP])


def last_row(run: Run) -> np.ndarray:
    """The very last chunk may hold nothing but events."""
    return next(rows[-1] for k in range(len(run.chunks) - 1, -1, -1) if len(rows := run.chunk(k).rows))


def last_tick(run: Run) -> int:
    return int(last_row(run)[Col.TICK])


def heights_now(replay: DisplayReplay) -> np.ndarray:
    """The ground as a subscriber who comes late gets it."""
    reader = GridReader(replay.terrain()["grids"][0])
    first: int | None = 0
    while first is not None:
        answer = replay.terrain("ground", first)
        reader.take(answer)
        first = answer["next"]
    return reader.units


def test_the_end_of_a_recording_is_the_ground_of_the_end(recording):
    with Run(recording) as run:
        then = RecordedDisplay(run.about["sights"])
        for number in range(len(run.chunks)):
            then.take(run.chunk(number).sights)
        steps = int(last_row(run)[Col.STEP])
        assert (then.grids[0].units == units_of(np.float32(heights_after(steps)))).all()
        assert len(then.props) == 5


def test_every_way_to_a_moment_shows_the_same_ground(recording):
    """Played on, jumped to, and come by backwards."""
    with Run(recording) as run:
        last = last_tick(run)
        moments = list(range(100, last, 250))
        seen = {}
        now = 0
        forwards = DisplayReplay(run)
        for tick in moments:
            now += 10**12
            forwards.look(tick, now)
            seen[tick] = heights_now(forwards)
        backwards = DisplayReplay(run)
        rng = np.random.default_rng(1)
        for tick in [*reversed(moments), *rng.permutation(moments).tolist()]:
            now += 10**12
            backwards.look(tick, now)
            assert (heights_now(backwards) == seen[tick]).all(), tick


def test_the_ground_is_that_of_the_moment(recording):
    """It was noted within a fraction of a second of its row: it equals that of a step near by."""
    with Run(recording) as run:
        replay = DisplayReplay(run)
        tick = int(run.chunk(len(run.chunks) // 2).rows[0, Col.TICK])
        replay.look(tick, 10**12)
        shown = heights_now(replay)
        there = step_at(run, tick)
        off = [
            int((shown != units_of(np.float32(heights_after(s)))).sum()) for s in range(there - 400, there + 400, 50)
        ]
        assert min(off) <= 50


def test_a_subscriber_is_told_the_differences(recording):
    with Run(recording) as run:
        replay = DisplayReplay(run)
        reader = GridReader(replay.terrain()["grids"][0])
        for k, tick in enumerate((300, 900, 600, last_tick(run), 301)):
            for topic, body in replay.look(tick, (k + 1) * 10**12):
                if topic == "terrain":
                    reader.take(body)
            assert reader.is_whole
            assert (reader.units == heights_now(replay)).all()


def test_a_replay_in_the_page(recording, tmp_path):
    """Seek and play backwards from the page; the ground goes along."""
    publish, commands = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    command = [*HILNODE, "replay", str(recording), "--publish", publish, "--commands", commands, "--paused", "--stay"]
    with Run(recording) as run:
        duration, steps = run.duration_s, int(last_row(run)[Col.STEP])
    end = units_of(np.float32(heights_after(steps)))
    with (
        started(command) as process,
        served(commands, placeholder(tmp_path / "page")) as server,
        opened(server.options.address) as page,
    ):
        assert page.hello["replay"]
        assert page.hello["grids"][0]["nx"] == NX
        assert page.grids[0].shape == (NX, NY)
        assert page.ask("seek", to=duration)["ok"]
        page.until(lambda: (page.grids[0] == end).all(), "the ground of the end")
        page.until(lambda: page.last("replay").get("t", 0.0) == pytest.approx(duration), "where it stands")
        status = page.last("replay")
        assert (status["paused"], status["speed"]) == (True, 1.0)
        assert status["duration"] == pytest.approx(duration)
        assert page.ask("seek", to=0.5)["ok"]
        page.until(lambda: not (page.grids[0] == end).all(), "the ground of an earlier moment")
        ground = page.grids[0].copy()
        assert page.ask("play")["ok"]
        page.until(lambda: not (page.grids[0] == ground).all(), "digging")
        assert page.ask("speed", value=-1.0)["ok"]
        tick = page.states[-1]["tick"]
        page.until(lambda: page.states[-1]["tick"] < tick, "going backwards")
        assert abs(page.states[-1]["age"]) < 5.0
        assert page.ask("arm")["reason"] == "unknown"
        process.send_signal(signal.SIGINT)
        page.until(lambda: page.last("link")["up"] is False, "the end of the replay")
