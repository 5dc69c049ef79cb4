"""operator: scripts become the values they say, at the times they say; what is wrong in one is found by line."""

import math
import time

import numpy as np
import pytest
from scipy.interpolate import interp1d
from support import make_config, wait_for

from drivers import registry
from drivers.base import OptionError
from drivers.operator.driver import BLIND, Operator, PhaseTimeout
from drivers.runner import Runner
from drivers.twin import Twin
from hilnode.node.node import Node
from hilnode.shared.health import HEALTH_WORDS, H, Health
from hilnode.shared.lockfree.mailbox import Mailbox


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


# -- phases: what they do is in test_phases.py ----------------------------------------------------------------------


LIFT = {"name": "lift", "hold": {"horn": 1.0}, "go": {"stick": {"see": "angle", "to": 0.5, "gain": 4.0}}}
WORK = {"sees": {"angle": "rad"}, "phases": [LIFT], "ramp_s": 0.0}
CYCLE_FILE = """sees = { angle = "rad" }
ramp_s = 0.0
phases = [
  { name = "lift", hold = { horn = 1.0 }, go = { stick = { see = "angle", to = 0.5, gain = 4.0 } } },
]
"""


class Hands:
    """An operator at work, as its runner treats it."""

    def __init__(self, **options: object) -> None:
        self.driver = make(**{**WORK, **options})
        self.values = np.zeros(len(self.driver.inputs))
        self.stamps = np.zeros(len(self.driver.inputs), np.int64)
        self.driver.open()

    def see(self, *values: float, live: bool = True) -> None:
        self.driver.live = live
        self.driver.write(np.array(values))

    def read(self) -> dict[str, float]:
        assert self.driver.read(self.values, self.stamps)
        return dict(zip((s.name for s in self.driver.inputs), self.values.tolist(), strict=True))


def test_channels_of_phases_are_what_they_move_see_and_tell():
    driver = make(**WORK, channels=["stick", {"name": "horn", "low": 0, "high": 1}])
    assert [s.name for s in driver.inputs] == ["stick", "horn", "phase", "cycle", "timeouts"]
    assert [(s.name, s.unit) for s in driver.outputs] == [("angle", "rad")]


def test_phases_in_a_file_are_the_same(tmp_path):
    (tmp_path / "cycle.toml").write_text(CYCLE_FILE)
    driver, twin = make(file=str(tmp_path / "cycle.toml")), make(**WORK)
    assert driver.phases is not None
    assert twin.phases is not None
    assert driver.phases.phases == twin.phases.phases
    assert (driver.inputs, driver.outputs) == (twin.inputs, twin.outputs)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("gain = 4.0", "gain = 0", r"cycle.toml:4: phases\[0\].go.stick.gain = 0: must not be zero.*phase 'lift'"),
        ("ramp_s = 0.0", "points = []", r"cycle.toml:2: points: is not known here: "),
        ("ramp_s = 0.0", "ramps = 1", r"cycle.toml:2: ramps = 1: is not known here: did you mean 'ramp_s'"),
        ("phases = [", "phase = [", r"cycle.toml:1: sees: is not known here"),
    ],
)
def test_what_is_wrong_in_a_file_with_phases_is_found_by_line(tmp_path, old, new, says):
    (tmp_path / "cycle.toml").write_text(CYCLE_FILE.replace(old, new))
    with pytest.raises(OptionError, match=says):
        make(file=str(tmp_path / "cycle.toml"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({**WORK, "points": POINTS}, "drivers.hand.points = .*: has no meaning for phases"),
        ({**WORK, "loop": True}, "drivers.hand.loop = True: has no meaning for phases; loop_from"),
        ({**WORK, "file": "x.toml"}, "drivers.hand.phases: the script is in the file"),
        ({"points": POINTS, "sees": {"x": "m"}}, "drivers.hand.sees = .*: is for an operator with phases"),
        ({**WORK, "phases": [{"name": "a"}]}, "drivers.hand.phases: move nothing"),
        ({**WORK, "phase": 1}, "did you mean 'phases'"),
    ],
)
def test_phases_and_scripts_do_not_mix(options, says):
    with pytest.raises(OptionError, match=says):
        make(**options)


def test_it_waits_until_the_node_runs_and_begins_anew_when_it_runs_again():
    hands = Hands(phases=[{"name": "wait", "for_s": 0.005}, LIFT])
    hands.see(0.0, live=False)
    waiting = {"horn": 0.0, "stick": 0.0, "phase": 1.0, "cycle": 0.0, "timeouts": 0.0}
    assert [hands.read() for _ in range(9)] == [waiting] * 9
    assert hands.driver.trouble == ""

    def lifts() -> bool:
        hands.see(0.25)
        return hands.read() == {"horn": 1.0, "stick": 1.0, "phase": 2.0, "cycle": 0.0, "timeouts": 0.0}

    wait_for(lifts, "the second phase")
    hands.see(0.4)
    assert hands.read()["stick"] == pytest.approx(0.4)
    hands.see(0.0, live=False)
    assert hands.read() == {**waiting, "phase": 2.0}
    hands.see(0.25)
    assert hands.read()["phase"] == 1.0
    wait_for(lifts, "the second phase")


def test_eyes_that_are_not_written_any_more_are_trouble_until_they_are():
    hands = Hands()
    hands.see(0.25)
    assert hands.read()["stick"] == 1.0
    assert hands.driver.trouble == ""
    time.sleep(BLIND * 1e-9)
    assert hands.read() == {"horn": 0.0, "stick": 0.0, "phase": 1.0, "cycle": 0.0, "timeouts": 0.0}
    assert "it sees nothing: not written for 200 ms" in hands.driver.trouble
    hands.see(0.25)
    assert hands.read()["stick"] == 1.0
    assert hands.driver.trouble == ""


def test_eyes_that_were_never_written_are_trouble():
    hands = Hands()
    wait_for(lambda: hands.read()["stick"] == 0.0 and hands.driver.trouble, "trouble")


def test_an_eye_that_sees_no_number_is_trouble():
    hands = Hands()
    hands.see(math.nan)
    assert hands.read()["stick"] == 0.0
    assert hands.driver.trouble == "what it sees is no number: angle"


def test_a_phase_that_took_too_long_is_told_once_and_counted():
    hands = Hands(phases=[{**LIFT, "at_most_s": 0.005}, {"name": "rest", "hold": {"horn": 1.0}}])

    def read() -> bool:
        hands.see(0.0)
        return hands.read()["phase"] > 1.0

    with pytest.raises(PhaseTimeout, match=r"phase 'lift' was not over after 0\.005 s"):
        wait_for(read, "the timeout")
    assert read()
    assert hands.read()["timeouts"] == 1.0


def test_without_eyes_phases_are_played_like_a_script():
    hands = Hands(sees={}, phases=[{"name": "honk", "hold": {"horn": 1.0}, "for_s": 0.01}, {"name": "rest"}])
    assert hands.driver.outputs == ()
    assert hands.read()["horn"] == 1.0
    wait_for(lambda: hands.read()["cycle"] == 1.0, "the end")
    assert hands.read()["horn"] == 0.0


def test_an_eye_that_nothing_drives_is_told_by_its_name(name):
    inbox = Mailbox.create(f"{name}.in", channels=5)
    outbox = Mailbox.create(f"{name}.out", channels=1)
    runner = Runner(
        make(**{**WORK, "sees": {"angle": "rad", "fill": "1"}}),
        inbox=inbox,
        outbox=outbox,
        used=np.array([0]),
        safe=np.zeros(2),
        health=np.zeros(HEALTH_WORDS, np.int64),
        live=lambda: True,
        period=0.005,
    )
    runner.start()
    try:
        wait_for(lambda: runner.health[H.STATE] == Health.DEGRADED, "trouble")
        assert 'it does not see fill: nothing is written there; [signals.outputs."hand.fill"]' in runner.trouble
    finally:
        assert runner.stop(time.monotonic() + 20.0)
        inbox.close()
        outbox.close()


def test_the_twin_of_one_that_looks_has_its_channels():
    real, twin = registry.create_pair("operator", "hand", WORK)
    assert isinstance(twin, Twin)
    assert (twin.inputs, twin.outputs) == (real.inputs, real.outputs)


JOINT = """
plant.kind = "joint_plant:create"
safety.watchdog = false
safety.bumpless_ms = 0
log.timing = false
[drivers.hand]
kind = "operator"
sees = { angle = "rad" }
loop_from = "up"
ramp_s = 0.05
phases = [
  { name = "wait", for_s = 0.05 },
  { name = "up", go = { stick = { see = "angle", to = 0.2, gain = 8.0, within = 0.02 } } },
  { name = "down", go = { stick = { see = "angle", to = -0.2, gain = 8.0, most = 0.8, within = 0.02 } } },
]
[signals.inputs."joint.stick"]
from = "hand.stick"
stale_ms = 1000
[signals.inputs."joint.phase"]
from = "hand.phase"
[signals.inputs."joint.cycle"]
from = "hand.cycle"
[signals.outputs."hand.angle"]
from = "joint.angle"
"""


def test_it_closes_the_loop_over_a_plant(tmp_path, name):
    with Node(make_config(tmp_path, name, JOINT)) as node:
        node.start()
        node.arm()
        node.run()
        ends: dict[float, list[float]] = {2.0: [0.0], 3.0: [0.0]}

        def watch() -> bool:
            row = node.last_row()
            if row.get("joint.phase") in ends:
                ends[row["joint.phase"]].append(row["joint.angle"])
            return row.get("joint.cycle", 0.0) >= 3.0

        wait_for(watch, "three cycles")
        assert node.driver_states()["hand"][0] == Health.UP
        assert -0.5 < min(ends[3.0]) < -0.17  # to where it was told; a busy machine looks late, it does not run away
        assert 0.17 < max(ends[2.0]) < 0.5
        node.disarm()
        node.arm()
        node.run()
        wait_for(lambda: node.last_row()["joint.cycle"] < 3.0, "it to begin anew")


def test_a_machine_that_does_not_move_runs_out_of_time(tmp_path, name):
    text = JOINT.replace("within = 0.02 } } },", "within = 0.02 } }, at_most_s = 0.1 },")
    text = f'plant.parameters = {{ "joint.speed" = 0.0 }}\n{text}'
    with Node(make_config(tmp_path, name, text)) as node:
        node.start()
        node.arm()
        node.run()
        health = node.runners["hand"].health
        wait_for(lambda: health[H.ERRORS] >= 3 and node.last_row()["joint.cycle"] >= 2, "phases to end by time")
        assert node.driver_states()["hand"][1].startswith("PhaseTimeout: phase '")
        assert node.state.name == "RUNNING"
