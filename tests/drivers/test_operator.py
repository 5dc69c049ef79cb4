"""operator: scripts become the values they say, at the times they say; what is wrong in one is found by line."""

import math
import time

import numpy as np
import pytest
from scipy.interpolate import interp1d
from support import make_config, wait_for

from drivers import registry
from drivers.base import OptionError
from drivers.virtual_operator import Operator
from hilnode.node import Node


def make(**options: object) -> Operator:
    driver = registry.create("operator", "hand", options)
    assert isinstance(driver, Operator)
    return driver


def at(driver: Operator, *times: float) -> list[list[float]]:
    """Values of all channels at these times after the start."""
    return [[track.at(driver.moment(t)) for track in driver.script.tracks] for t in times]


POINTS = [{"t": 1.0, "x": 0.0, "y": 5.0}, {"t": 2.0, "x": 4.0}, {"t": 4.0, "x": -4.0, "y": 1.0}]


def test_channels_come_from_the_script():
    driver = make(points=POINTS)
    assert [s.name for s in driver.inputs] == ["x", "y"]
    assert driver.outputs == ()
    declared = make(points=POINTS, channels=[{"name": "y", "unit": "m"}, "x", {"name": "z", "default": 3.0}])
    assert [(s.name, s.unit) for s in declared.inputs] == [("y", "m"), ("x", ""), ("z", "")]
    assert at(declared, 0.0) == [[5.0, 0.0, 3.0]]


def test_linear_is_what_scipy_finds():
    driver = make(points=POINTS)
    times = np.linspace(0.0, 5.0, 101)
    got = np.array(at(driver, *times))
    for k, (t, v) in enumerate([([1, 2, 4], [0, 4, -4]), ([1, 4], [5, 1])]):
        truth = interp1d(t, v, bounds_error=False, fill_value=(v[0], v[-1]))
        np.testing.assert_allclose(got[:, k], truth(times), atol=1e-12)


def test_hold_and_smooth():
    assert at(make(points=POINTS, shape="hold"), 1.0, 1.999, 2.0, 3.9, 4.0, 9.0) == [
        [0.0, 5.0], [0.0, 5.0], [4.0, 5.0], [4.0, 5.0], [-4.0, 1.0], [-4.0, 1.0],
    ]  # fmt: skip
    x = [v[0] for v in at(make(points=POINTS, shape="smooth"), 1.0, 1.001, 1.5, 1.999, 2.0, 2.5)]
    assert x[2] == pytest.approx(2.0)
    assert abs(x[1] - x[0]) < 2e-5  # it begins and ends at rest
    assert abs(x[4] - x[3]) < 2e-5
    assert x[5] == pytest.approx(4 - 8 * (3 * 0.25**2 - 2 * 0.25**3))
    mixed = make(points=[{"t": 0, "x": 0}, {"t": 1, "x": 1, "shape": "hold"}, {"t": 2, "x": 2}])
    assert at(mixed, 0.5, 1.5) == [[0.0], [1.5]]


def test_movements_begin_wherever_the_stick_is():
    driver = make(
        moves=[
            {"channel": "x", "at": 1.0, "to": 0.8, "over": 0.5},
            {"channel": "x", "at": 2.0, "to": -0.8},
            {"channel": "y", "at": 0.0, "to": 1.0, "over": 2.0},
            {"channel": "x", "at": 3.0, "to": 0.0, "over": 1.0, "shape": "smooth"},
        ]
    )
    x = [v[0] for v in at(driver, 0.5, 1.0, 1.25, 1.5, 1.99, 2.0, 3.0, 3.5, 4.0, 9.0)]
    assert x == pytest.approx([0.0, 0.0, 0.4, 0.8, 0.8, -0.8, -0.8, -0.4, 0.0, 0.0])
    assert [v[1] for v in at(driver, 0.0, 1.0, 3.0)] == pytest.approx([0.0, 0.5, 1.0])


def test_a_jump_right_behind_a_movement():
    moves = [{"channel": "x", "at": 1.0, "to": 4.0, "over": 1.0}, {"channel": "x", "at": 2.0, "to": -4.0}]
    driver = make(moves=[{"channel": "x", "at": 0.0, "to": 2.0}, *moves])
    assert [v[0] for v in at(driver, 0.0, 1.0, 1.5, 1.999, 2.0)] == pytest.approx([2.0, 2.0, 3.0, 3.998, -4.0])


def test_once_and_looped():
    once, looped = make(points=POINTS), make(points=POINTS, loop=True)
    assert at(once, 4.5, 400.0) == [[-4.0, 1.0]] * 2
    assert at(looped, 1.5, 5.5, 401.5) == at(once, 1.5) * 3
    fast = make(points=POINTS, loop=True, speed=2.0, start_s=1.0)  # plays 1 s to 4 s in 1.5 s
    assert at(fast, 0.0, 0.5, 2.0) == [[0.0, 5.0], [4.0, pytest.approx(5 - 4 / 3)], [4.0, pytest.approx(5 - 4 / 3)]]


TOML = """# a comment
channels = [{ name = "x", low = -1.0, high = 1.0 }, "y"]
points = [
  { t = 0.0, x = 0.0 },
  { t = 1.0, x = 1.0 },
]
[[moves]]
channel = "y"
at = 0.5
to = 2.0
"""


def test_a_file_of_its_own(tmp_path):
    (tmp_path / "drive.toml").write_text(TOML)
    driver = make(file=str(tmp_path / "drive.toml"))
    assert at(driver, 0.25, 0.75) == [[0.25, 0.0], [0.75, 2.0]]


CSV = "time, stick.x [rad], stick.y, note.1\n0.0, 0.0, 1.0,\n\n1.0, 2.0,, 7\n2.0, 4.0, 3.0,\n"


def test_a_csv_file_with_units_and_holes(tmp_path):
    path = tmp_path / "drive.csv"
    path.write_text(CSV)
    driver = make(file=str(path))
    assert [(s.name, s.unit) for s in driver.inputs] == [("stick.x", "rad"), ("stick.y", ""), ("note.1", "")]
    assert at(driver, 0.5, 1.0) == [[1.0, 1.5, 7.0], [2.0, 2.0, 7.0]]


def test_columns_of_a_recording_are_picked_by_name(tmp_path):
    path = tmp_path / "session.csv"
    path.write_text("t,Stick X,b\n0,1,10\n1,3,30\n")
    driver = make(file=str(path), time="t", columns={"x": "Stick X"})
    assert [s.name for s in driver.inputs] == ["x"]
    assert at(driver, 0.5) == [[2.0]]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("t = 1.0, x = 1.0", "t = 1.0, x = 'a'", r"drive.toml:5: points\[1\].x = \"a\": must be a finite number"),
        ("t = 1.0, x", "t = -1.0, x", r"drive.toml:5: points\[1\].t = -1: must be later than 0 s"),
        ("t = 1.0, x = 1.0", "x = 1.0", r"drive.toml:5: points\[1\]: has no time"),
        ("x = 1.0 }", "z = 1.0 }", r"drive.toml:5: points\[1\].z = 1: 'z' is not among the channels"),
        ("at = 0.5", "art = 0.5", r"drive.toml:9: moves\[0\].art = 0.5: is no key of a movement: did you mean 'at'"),
        ('"y"\nat', '"x"\nat', r"drive.toml:8: moves\[0\].channel = \"x\": has points already"),
        ("to = 2.0", "to = 2.0\nover = -1", r"drive.toml:11: moves\[0\].over = -1: must not be negative"),
        ("[[moves]]", "[[move]]", r"drive.toml:7: move: is not known here: did you mean 'moves'"),
        ("x = 1.0 }", "x = 1.5 }", r"drive.toml: channel x: 1.5 lies outside its range \[-1, 1\]"),
        ("x = 1.0 },", "x = 1.0 ,", r"drive.toml:\d+: column \d+: not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_toml_file_is_found_by_line(tmp_path, old, new, says):
    assert TOML.count(old) == 1
    (tmp_path / "drive.toml").write_text(TOML.replace(old, new))
    with pytest.raises(OptionError, match=says):
        make(file=str(tmp_path / "drive.toml"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("1.0, 2.0,,", "1.0, two,,", r"drive.csv:4: column 2 \(stick.x\) = \"two\": must be a finite number"),
        ("1.0, 2.0,,", "1.0, nan,,", r"drive.csv:4: column 2 \(stick.x\) = \"nan\""),
        ("1.0, 2.0,,", "0.0, 2.0,,", r"drive.csv:4: column 1 \(time\) = 0.0: must be later than 0"),
        ("time,", "Time,", r"drive.csv:1: there is no column 'time': did you mean 'Time'"),
        ("stick.y", "Stick Y", r"drive.csv:1: column 3: 'Stick Y' is no name of a channel"),
        (", 7\n", ",\n", r"drive.csv: column 'note.1' has no values"),
    ],
)
def test_what_is_wrong_in_a_csv_file_is_found_by_line_and_column(tmp_path, old, new, says):
    assert CSV.count(old) == 1
    (tmp_path / "drive.csv").write_text(CSV.replace(old, new))
    with pytest.raises(OptionError, match=says):
        make(file=str(tmp_path / "drive.csv"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "drivers.hand: has no script"),
        ({"file": "/none/x.csv"}, r"drivers.hand.file: /none/x.csv: there is no such file"),
        ({"file": "x.csv", "points": POINTS}, "drivers.hand.points: the script is in the file"),
        ({"points": [{"t": 0, "X": 1}]}, r"drivers.hand.points\[0\].X = 1: 'X' is no name of a channel"),
        ({"points": {"t": 0}}, "drivers.hand.points: must be a list of tables"),
        ({"points": [3]}, r"drivers.hand.points\[0\] = 3: must be a table"),
        ({"points": [{"t": 0, "x": 1}], "loop": True}, "nothing to play again"),
        ({"points": POINTS, "shape": "round"}, "must be one of linear, hold, smooth"),
        ({"points": POINTS, "lop": True}, "did you mean 'loop'"),
        ({"moves": [{"channel": "x", "to": 1.0}]}, r"drivers.hand.moves\[0\]: has no at"),
        (
            {"moves": [{"channel": "x", "at": 1, "to": 1, "over": 2}, {"channel": "x", "at": 2, "to": 0}]},
            r"drivers.hand.moves\[1\].at = 2: begins before the last movement of x ends, at 3 s",
        ),
    ],
)
def test_what_is_wrong_in_the_config_is_found_by_key(options, says):
    with pytest.raises(OptionError, match=says):
        make(**options)


def test_it_plays_in_real_time():
    driver = make(points=[{"t": 0.0, "x": 0.0}, {"t": 1000.0, "x": 1000.0}])
    values, stamps = np.zeros(1), np.zeros(1, np.int64)
    began = time.monotonic_ns()
    driver.open()
    for _ in range(50):
        assert driver.read(values, stamps)
        slack = (time.monotonic_ns() - stamps[0]) * 1e-9
        assert 0 <= (stamps[0] - began) * 1e-9 - values[0] < 1.0 + slack  # opened a moment after `began`
    assert values[0] >= 0.045
    driver.open()  # begins again
    driver.read(values, stamps)
    assert values[0] < 0.045 or math.isclose(values[0], (time.monotonic_ns() - began) * 1e-9, abs_tol=1.0)


def test_it_moves_a_plant(tmp_path, name):
    text = """
safety.watchdog = false
[drivers.hand]
kind = "operator"
loop = true
shape = "hold"
points = [{ t = 0.0, torque = 1.0 }, { t = 0.05, torque = -1.0 }, { t = 0.1, torque = 1.0 }]
[signals.inputs."pendulum.shoulder.torque"]
from = "hand.torque"
"""
    with Node(make_config(tmp_path, name, text)) as node:
        node.start()
        node.arm()
        node.run()
        seen: set[float] = set()
        wait_for(lambda: seen.add(node.last_row().get("pendulum.shoulder.torque", 0.0)) or {1.0, -1.0} <= seen, "both")
