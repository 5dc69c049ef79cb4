"""The player with a clock of its own: which rows come when, in both directions, with jumps and turns."""

import numpy as np
import pytest
import recordings
from recordings import event, rows_of

from bridge.record import player as module
from bridge.record.player import Player
from bridge.record.run_file import Run
from hilnode.shared.row import Col

MS = 1_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Half a second: five chunks, 500 rows, wakes 1 ms apart."""
    folder = recordings.write(tmp_path_factory.mktemp("player") / "run", rows_of(500), [event(150), event(320)])
    with Run(folder) as run:
        yield run


def ticks(due) -> list[int]:
    return [int(row[Col.TICK]) for row, _ in due]


def test_rows_come_when_they_are_due(run):
    player = Player(run)
    player.start(0)
    assert ticks(player.take(0)) == [0]
    assert ticks(player.take(10 * MS)) == list(range(1, 11))
    assert ticks(player.take(10 * MS)) == []
    assert ticks(player.take(250 * MS)) == list(range(11, 251))
    assert player.position_s == pytest.approx(0.25)


@pytest.mark.parametrize("speed", [0.1, 0.5, 2.0, 10.0])
def test_speed_is_recorded_time_per_time(run, speed):
    player = Player(run, speed=speed)
    player.start(0)
    got = [t for now in range(0, 41 * MS, MS) for t in ticks(player.take(now))]
    assert got == list(range(int(40 * speed) + 1))


def test_backwards_from_the_end_to_the_beginning(run):
    player = Player(run, speed=-1.0)
    player.start(0)
    got = [t for now in range(0, 600 * MS, 7 * MS) for t in ticks(player.take(now))]
    assert got == list(range(499, -1, -1))
    assert player.ended


def test_a_turn_sends_the_rows_back_without_a_gap(run):
    player = Player(run)
    player.start(0)
    player.take(120 * MS)
    player.set_speed(-2.0, 120 * MS)
    assert ticks(player.take(125 * MS)) == list(range(120, 109, -1))
    player.set_speed(1.0, 125 * MS)
    assert ticks(player.take(130 * MS)) == list(range(110, 116))


def test_a_pause_holds_the_position(run):
    player = Player(run)
    player.start(0)
    player.take(50 * MS)
    player.pause(50 * MS)
    assert player.take(400 * MS) == []
    player.play(400 * MS)
    assert ticks(player.take(402 * MS)) == [51, 52]


def test_a_seek_shows_its_row_even_while_it_stands(run):
    player = Player(run)
    player.start(0)
    player.pause(0)
    player.seek(0.333, 0)
    assert ticks(player.take(5 * MS)) == [333]
    assert player.take(6 * MS) == []
    player.play(10 * MS)
    assert ticks(player.take(12 * MS)) == [333, 334, 335]
    player.seek(0.05, 12 * MS)
    assert ticks(player.take(12 * MS)) == [50]
    assert ticks(player.take(13 * MS)) == [50, 51]


def test_the_end_and_what_follows_it(run):
    player = Player(run, start_s=0.495)
    player.start(0)
    assert ticks(player.take(100 * MS)) == [495, 496, 497, 498, 499]
    assert player.ended
    assert player.take(200 * MS) == []
    player.play(300 * MS)  # from the beginning
    assert ticks(player.take(302 * MS)) == [0, 1, 2]


def test_a_loop_goes_round(run):
    player = Player(run, start_s=0.498, loop=True)
    player.start(0)
    assert ticks(player.take(5 * MS)) == [498, 499]
    assert ticks(player.take(7 * MS)) == [0, 1, 2]
    assert not player.ended


def test_events_come_with_their_row(run):
    player = Player(run)
    player.start(0)
    with_events = {int(row[Col.TICK]): [e["tick"] for e in events] for row, events in player.take(499 * MS) if events}
    assert with_events == {150: [150], 320: [320]}


def test_one_that_cannot_keep_up_leaves_no_row_out(run, monkeypatch):
    monkeypatch.setattr(module, "MOST", 30)
    player = Player(run, speed=1000.0)
    player.start(0)
    got = []
    for now in range(0, 40 * MS, MS):
        due = player.take(now)
        assert len(due) <= 30
        got += ticks(due)
    assert got == list(range(500))


def test_impossible_wishes_are_refused(run):
    player = Player(run)
    with pytest.raises(ValueError, match=r"lasts from 0 to 0\.499 s"):
        player.seek(7.0, 0)
    with pytest.raises(ValueError, match=r"--from 7: the recording lasts 0\.499 s"):
        Player(run, start_s=7.0)
    for speed in (0.0, 1e6, -1e6):
        with pytest.raises(ValueError, match="between"):
            player.set_speed(speed, 0)


def test_the_rows_are_those_of_the_file(run):
    player = Player(run)
    player.start(0)
    assert np.array_equal(np.array([row for row, _ in player.take(499 * MS)]), rows_of(500))
