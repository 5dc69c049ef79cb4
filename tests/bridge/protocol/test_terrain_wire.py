"""Tiles on the wire: what is put together again is what was sent, whatever is lost, late or sent twice."""

import msgpack
import numpy as np
import pytest

from bridge.protocol.terrain import UNIT, GridReader, GridSender, units_of

ABOUT = {"name": "ground", "nx": 37, "ny": 50, "tile": 16, "corner": [0, 0, 0], "spacing": [1, 1], "colour": [0, 0, 0]}


class Pair:
    """A sender, a reader, and what lies between them."""

    def __init__(self):
        self.sender, self.reader = GridSender(ABOUT), GridReader(ABOUT)
        self.heights = np.zeros((ABOUT["nx"], ABOUT["ny"]))

    def change(self, rng, count=20, scale=0.01):
        """Change some samples; the tiles to be told, as they come out of the wire."""
        i, j = rng.integers(0, ABOUT["nx"], count), rng.integers(0, ABOUT["ny"], count)
        self.heights[i, j] += scale * rng.standard_normal(count)
        tiles = {(a // 16, b // 16) for a, b in zip(i.tolist(), j.tolist(), strict=True)}
        told = [self.sender.change(a, b, self.tile(a, b)) for a, b in sorted(tiles)]
        return msgpack.unpackb(msgpack.packb([t for t in told if t]))

    def tile(self, a, b):
        return self.heights[16 * a : 16 * a + 16, 16 * b : 16 * b + 16]

    def send(self, tiles, coder=1):
        self.reader.take({"coder": coder, "tiles": tiles})

    def send_whole(self, coder=1):
        self.send([self.sender.whole(i, j) for i, j in np.ndindex(*self.sender.shape)], coder)


@pytest.fixture
def pair():
    made = Pair()
    for i, j in np.ndindex(*made.sender.shape):
        made.sender.change(i, j, made.tile(i, j))
    made.send_whole()
    return made


def test_thousands_of_changes_add_up_without_an_error(pair):
    rng = np.random.default_rng(1)
    for _ in range(3000):
        pair.send(pair.change(rng))
    assert (pair.reader.units == units_of(pair.heights)).all()
    assert np.abs(pair.reader.heights - pair.heights).max() <= 0.51 * UNIT


def test_small_changes_are_differences_and_large_ones_whole(pair):
    pair.heights[0, 0] = 1.0
    assert pair.sender.change(0, 0, pair.tile(0, 0))["delta"]
    pair.heights[0, 0] = 10.0
    tile = pair.sender.change(0, 0, pair.tile(0, 0))
    assert not tile["delta"]
    assert len(tile["units"]) == 16 * 16 * 4


def test_what_is_no_change_on_the_wire_is_not_sent(pair):
    pair.heights[3, 3] += 0.2 * UNIT
    assert pair.sender.change(0, 0, pair.tile(0, 0)) is None


def test_tiles_at_the_edge_are_smaller(pair):
    pair.heights[36, 49] = 0.5
    tile = pair.sender.change(2, 3, pair.tile(2, 3))
    assert len(tile["units"]) == 5 * 2 * 2
    pair.send([tile])
    assert pair.reader.units[36, 49] == 5000


def test_a_lost_difference_stops_a_tile_until_it_comes_whole(pair):
    rng = np.random.default_rng(2)
    pair.change(rng)  # lost
    assert pair.reader.is_whole
    for _ in range(50):
        pair.send(pair.change(rng))
    assert not pair.reader.is_whole
    pair.send_whole()
    assert pair.reader.is_whole
    assert (pair.reader.units == units_of(pair.heights)).all()


def test_differences_that_overtake_an_answer_are_kept_for_it(pair):
    rng = np.random.default_rng(3)
    reader = pair.reader = GridReader(ABOUT)
    answers = [pair.sender.whole(i, j) for i, j in np.ndindex(*pair.sender.shape)]
    for _ in range(5):
        pair.send(pair.change(rng))
    assert (reader.units == 0).all()
    pair.send(answers)
    assert (reader.units == units_of(pair.heights)).all()


def test_what_comes_twice_or_late_changes_nothing(pair):
    rng = np.random.default_rng(4)
    old = [pair.sender.whole(0, 0)]
    sent = [pair.change(rng) for _ in range(20)]
    for tiles in sent:
        pair.send(tiles)
        pair.send(tiles)
    pair.send(old)
    pair.send(sent[0])
    assert (pair.reader.units == units_of(pair.heights)).all()


def test_another_sender_begins_anew(pair):
    rng = np.random.default_rng(5)
    for _ in range(10):
        pair.send(pair.change(rng))
    pair.sender = GridSender(ABOUT)
    for i, j in np.ndindex(*pair.sender.shape):
        pair.sender.change(i, j, pair.tile(i, j))
    tiles = pair.change(rng)
    pair.send(tiles, coder=2)
    assert not pair.reader.is_whole
    pair.send_whole(coder=2)
    pair.send(pair.change(rng), coder=2)
    assert (pair.reader.units == units_of(pair.heights)).all()


def test_what_is_no_number_is_flat_ground():
    assert units_of(np.array([np.nan, np.inf, -np.inf, 1.0])).tolist() == [0, 2**30, -(2**30), 10000]
