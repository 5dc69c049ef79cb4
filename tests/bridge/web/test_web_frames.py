"""Frames to a page, and rows on their way there, without a node."""

import math

import msgpack
import numpy as np
import pytest
from recordings import SCHEMA, rows_of
from web_page import FakePage

from bridge.protocol.messages import Packer
from bridge.protocol.operations import Refused
from bridge.protocol.terrain import GridReader, GridSender, units_of
from bridge.web.frames import PageGround, PropTable, arrows_frame
from bridge.web.rows import OtherLayout, Rows
from bridge.web.words import as_json, from_json
from hilnode.shared.row import Col

ABOUT = {"name": "ground", "nx": 40, "ny": 70, "tile": 16, "corner": [0, 0, 0], "spacing": [1, 1], "colour": [0, 0, 0]}


class Screen(FakePage):
    """A page without a connection."""

    def __init__(self):
        self.grids = [np.zeros((40, 70), np.int32)]


def test_pages_that_draw_at_their_own_pace_have_the_same_ground():
    """Thousands of changes, small and large; every page ends with exactly what the server has."""
    rng = np.random.default_rng(7)
    sender, reader = GridSender(ABOUT), GridReader(ABOUT)
    heights = np.zeros((40, 70))
    pages = [(Screen(), PageGround(0, reader), every) for every in (1, 7, 100)]
    for turn in range(4000):
        i, j = rng.integers(0, 40), rng.integers(0, 70)
        heights[i, j] += rng.choice([0.001, -0.02, 0.5, -3.0, 40.0], p=[0.5, 0.3, 0.15, 0.04, 0.01])
        a, b = i // 16, j // 16
        tile = sender.change(a, b, heights[16 * a : 16 * a + 16, 16 * b : 16 * b + 16])
        reader.take({"coder": 1, "tiles": [tile] if tile else []})
        for page, ground, every in pages:
            if turn % every == 0 and (frame := ground.frame()):
                page._terrain(frame)
    for page, ground, _ in pages:
        if frame := ground.frame():
            page._terrain(frame)
        assert (page.grids[0] == units_of(heights)).all()
        assert ground.frame() is None


def test_a_change_of_one_sample_is_a_frame_of_a_few_bytes():
    sender, reader = GridSender(ABOUT), GridReader(ABOUT)
    heights = np.zeros((40, 70))
    ground = PageGround(0, reader)
    for at in (0.0, 0.005):
        heights[5, 6] = at
        reader.take({"coder": 1, "tiles": [sender.change(0, 0, heights[:16, :16])]})
        frame = ground.frame()
    assert frame is not None
    assert len(frame) == 8 + 8 + 4


def test_props_come_when_they_have_moved():
    table = PropTable(["a", "b"])
    seen, late = np.zeros(2, np.int64), np.zeros(2, np.int64)
    here = {"p": [1.0, 2.0, 3.0], "q": [1.0, 0.0, 0.0, 0.0]}
    table.take({"a": here, "b": here, "nobody": here})
    assert table.frame(seen) is not None
    assert table.frame(seen) is None
    table.take({"a": here})  # sent again, not moved
    assert table.frame(seen) is None
    table.take({"b": {**here, "p": [1.0, 2.0, 4.0]}})
    page = Screen()
    page.props = {}
    page._props(table.frame(seen))
    assert [page.props[1].tolist()] == [[1, 2, 4, 1, 0, 0, 0]]
    page._props(table.frame(late))
    assert set(page.props) == {0, 1}


def test_arrows_keep_their_points_and_forces():
    at, force = np.arange(6, dtype="<f4"), 10 + np.arange(6, dtype="<f4")
    page = Screen()
    page._arrows(arrows_frame(2, at.tobytes(), force.tobytes()))
    assert page.arrows.tolist() == [[0, 1, 2, 10, 11, 12], [3, 4, 5, 13, 14, 15]]
    page._arrows(arrows_frame(0, b"", b""))
    assert page.arrows.shape == (0, 6)


@pytest.fixture
def packer():
    return Packer(SCHEMA, "cart")


@pytest.fixture
def rows(packer):
    return Rows(SCHEMA.as_dict(), packer.hash)


def test_raw_rows_are_taken_as_they_are(packer, rows):
    table = rows_of(5)
    rows.take_raw([packer.raw(row)[1] for row in table], keep=True)
    assert (rows.newest == table[-1]).all()
    assert rows.count == 5


def test_fields_of_later_versions_do_no_harm(packer, rows):
    (row,) = rows_of(1)
    message = msgpack.unpackb(packer.raw(row)[1])
    rows.take_raw([msgpack.packb({**message, "later": 1})], keep=False)
    assert (rows.newest == row).all()


def test_a_row_of_another_layout_is_noticed(packer, rows):
    other = msgpack.unpackb(packer.raw(rows_of(1)[0])[1]) | {"schema": "0" * 16}
    with pytest.raises(OtherLayout):
        rows.take_raw([msgpack.packb(other)], keep=False)


def test_a_state_gives_the_same_row_as_far_as_a_page_shows_it(packer, rows):
    row = rows_of(3)[1]
    rows.take_states([packer.state(row)[1]], keep=False)
    shown = [Col.TICK, Col.STEP, Col.WAKE, Col.FLAGS, Col.STATE]
    assert rows.newest is not None
    assert (rows.newest[shown] == row[shown]).all()
    assert (rows.newest[rows.words] == row[rows.words]).all()
    assert (rows.newest[SCHEMA.at_poses :] == row[SCHEMA.at_poses :]).all()


def test_samples_are_all_rows_since_the_last_time(packer, rows):
    table = rows_of(300)
    words = rows.find(["cart.speed", "cart.force"])
    for first in range(0, 300, 100):
        rows.take_raw([packer.raw(row)[1] for row in table[first : first + 100]], keep=True)
    values = table.view(np.float64)[:, words].astype(np.float32)
    got = rows.samples(words, 150, t=0.299)
    assert len(got) == 150
    assert np.allclose(got[:, 0], np.arange(150, 300) * 1e-3 - 0.299, atol=1e-9)
    assert (got[:, 1:] == values[150:]).all()
    assert len(rows.samples(words, 300, t=0.0)) == 0
    many = rows.find(["cart.speed"] * 20)
    assert len(rows.samples(many, 0, t=0.0)) == 75  # a quarter of them


def test_rows_are_not_kept_for_ever_or_for_nobody(packer, rows):
    bodies = [packer.raw(row)[1] for row in rows_of(1000)]
    for _ in range(30):
        rows.take_raw(bodies, keep=True)
    assert 3000 <= len(rows.samples(rows.find(["cart.speed"]), 0, t=0.0)) <= 4000
    rows.take_raw(bodies, keep=False)
    assert len(rows.samples(rows.find(["cart.speed"]), 0, t=0.0)) == 0


def test_json_has_no_infinity():
    assert as_json({"a": [math.inf, {"b": math.nan}], "c": 1.5}) == '{"a":[null,{"b":null}],"c":1.5}'


@pytest.mark.parametrize("text", ["", "{", "[1]", "1", '{"a": NaN}', '{"a": Infinity}', "[" * 50_000, "\ud800"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(Refused):
        from_json(text)
