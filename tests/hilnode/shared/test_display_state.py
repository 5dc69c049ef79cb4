"""What a plant shows beside its row, in shared memory."""

import numpy as np
import pytest
from digging_plant import NX, NY, STONES, create, heights_after

from hilnode.node.display_copier import DisplayCopier, layout_of
from hilnode.shared.display_state import DisplayState
from hilnode.shared.lockfree.segment import SegmentMissing
from plant.abi import Plant


@pytest.fixture
def shown(name):
    """A plant that is stepped by hand, its copier, and a reader of what it shows."""
    plant = create(1e-3)
    layout = layout_of(plant)
    own = DisplayState.create(name, layout)
    yield plant, DisplayCopier(plant, own), DisplayState.attach(name, layout)
    own.close()


def dig(plant: Plant, first: int, steps: int) -> None:
    from digging_plant import dig

    for n in range(first, first + steps):
        dig(plant.grids[0].heights, plant.grids[0].stamps, n, 0.0)


def test_the_copier_copies_what_has_changed(shown):
    plant, copier, there = shown
    (grid,) = there.grids
    assert (grid.about["name"], grid.heights.shape) == ("ground", (NX, NY))
    copier.look()
    assert (grid.stamps == 1).all()
    dig(plant, 0, 3)
    copier.look()
    assert (grid.heights == np.float32(heights_after(3))).all()
    assert 1 <= (grid.stamps == 2).sum() <= 3
    before = grid.stamps.copy()
    copier.look()
    assert (grid.stamps == before).all()


def test_a_reader_of_stamps_always_ends_up_right(shown):
    """A change that is half copied is stamped later, so that it is copied again."""
    plant, copier, there = shown
    source, grid = plant.grids[0], there.grids[0]
    source.heights[0, 0] = 1.0  # written, not yet stamped
    copier.look()
    source.heights[0, 1] = 2.0
    source.stamps[0, 0] += 1
    copier.look()
    assert grid.heights[0, :2].tolist() == [1.0, 2.0]


def test_arrows_are_whole_or_not_there(shown):
    plant, copier, there = shown
    arrows = plant.arrows
    arrows.stamp[0], arrows.count[0] = 2, 2
    arrows.force[:, 2] = 7.0
    copier.look()
    stamp, at, force = there.arrows.take()
    assert (stamp % 2, at.shape, force[:, 2].tolist()) == (0, (2, 3), [7.0, 7.0])
    arrows.stamp[0] = 3  # being written
    arrows.force[:, 2] = 8.0
    copier.look()
    assert there.arrows.take()[2][:, 2].tolist() == [7.0, 7.0]
    arrows.stamp[0], arrows.count[0] = 4, 10_000  # more than there is room for
    copier.look()
    assert there.arrows.take()[2][:, 2].tolist() == [8.0] * 3
    there.arrows.head[0] += 1
    assert there.arrows.take() is None


def test_props_come_when_they_have_moved(shown):
    plant, copier, there = shown
    copier.look()
    assert there.props.names == [f"stone{k}" for k in range(STONES)]
    plant.props.poses[2, :3] = 1.0, 2.0, 3.0
    copier.look()
    assert there.props.poses[2, 0] == 0.0  # not stamped
    plant.props.stamps[2] += 1
    copier.look()
    assert there.props.poses[2, :3].tolist() == [1.0, 2.0, 3.0]
    assert there.props.stamps.tolist() == [1, 1, 2, 1, 1]


def test_a_plant_that_shows_nothing_has_no_layout():
    from trouble_plant import create as plain

    assert layout_of(plain(1e-3)) is None


def test_another_layout_is_refused(shown, name):
    layout = layout_of(shown[0])
    with pytest.raises(ValueError, match="words instead of"):
        DisplayState.attach(name, layout | {"props": []})
    with pytest.raises(SegmentMissing):
        DisplayState.attach(name + "-nobody", layout)
