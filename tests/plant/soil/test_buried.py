"""A pipe is struck when the bucket reaches it, once, and resists."""

import numpy as np
import pytest
from soil_cases import STILL, H, Plot, a_bucket, flat

from plant.soil.buried import Pipe
from plant.soil.kind import SoilError
from plant.soil.model import STRIKES


def _plot(pipe: Pipe) -> Plot:
    return Plot([(flat(), (0, 0, 0))], STILL, a_bucket(weigh=False), pipes=[pipe])


def test_struck_when_the_lip_reaches_it() -> None:
    plot = _plot(Pipe((1.0, -3, -0.5), (1.0, 3, -0.5), 0.1, 2e4))
    wrench, out = plot.drag((2.0, 0, -0.5), (-0.5, 0, 0), 2.5)
    touched = np.flatnonzero(wrench[:, 0])
    assert touched[0] * 0.5 * H == pytest.approx(0.9, abs=0.002)  # 0.1 m before its axis
    assert plot.soil.pipe.struck.tolist() == [1]
    assert plot.soil.pipe.speed[0] == pytest.approx(0.5)
    assert plot.soil.pipe.place[0] == pytest.approx([1.0, 0, -0.5], abs=1e-9)
    assert plot.soil.state.counter[STRIKES] == 1
    assert out["pipe.speed"][-1] == pytest.approx(0.5)
    assert wrench[touched[0], 0] == pytest.approx(2e4 * 0.5 / 0.52)


def test_struck_by_the_floor_from_above() -> None:
    plot = _plot(Pipe((0.3, -3, -1.0), (0.3, 3, -1.0), 0.05))
    wrench, _ = plot.drag((0.0, 0, 0.0), (0, 0, -0.5), 2.0)
    assert np.flatnonzero(wrench[:, 2])[0] * 0.5 * H == pytest.approx(0.95, abs=0.002)
    assert (wrench[:, 2] >= 0).all()


@pytest.mark.parametrize("at", [(1.0, -0.7, 0), (1.0, 0, -0.75), (1.0, 0, 0.5)])
def test_a_pipe_that_is_passed_is_not_struck(at: tuple[float, float, float]) -> None:
    """Beside the bucket, below its lip, above it."""
    x, y, z = at
    begin, end = ((x, y, -3), (x, y, 3)) if z == 0 else ((x, -3, z), (x, 3, z))
    plot = _plot(Pipe(begin, end, 0.05))
    plot.drag((2.0, 0, -0.6), (-0.5, 0, 0), 4.0)
    assert plot.soil.pipe.struck.tolist() == [0]


def test_reset_forgets_the_strike() -> None:
    plot = _plot(Pipe((1.0, -3, -0.5), (1.0, 3, -0.5), 0.1))
    plot.drag((1.5, 0, -0.5), (-0.5, 0, 0), 1.2)
    plot.reset()
    assert plot.soil.pipe.struck.tolist() == [0]
    assert plot.soil.state.counter[STRIKES] == 0


def test_bad_pipes_are_refused() -> None:
    with pytest.raises(SoilError, match=r"radius -1 must be a number from 0.001 to 10 m"):
        Pipe((0, 0, 0), (1, 0, 0), -1)
    with pytest.raises(SoilError, match=r"end .*three finite numbers"):
        Pipe((0, 0, 0), (1, 0, float("nan")), 0.1)
