"""The arm with oil: slower under load, one pump for all, its relief pressure and its power, and it holds."""

import math

import numpy as np
import pytest
from excavator_cases import P, cylinder_push, expected_push, inside, rig
from excavator_rig import Rig

ARM = ("boom", "stick", "bucket")
LOSSES = 0.85  # of the engine's power that reaches the oil
LIFT = {"right.y": -1.0}
OUT = {"boom": 20.0, "stick": -70.0, "bucket": -110.0}


def areas(name: str) -> tuple[float, float]:
    bore, rod = P[f"{name}.cylinder.bore"], P[f"{name}.cylinder.rod"]
    return math.pi / 4 * bore**2, math.pi / 4 * (bore**2 - rod**2)


def oily(**options: object) -> Rig:
    r = rig(hydraulics=True, posture=OUT, **options)
    r.hold(parking=1.0)
    return r


class Run:
    """Strokes, pressures and the pump, every 10 ms."""

    def __init__(self, r: Rig, seconds: float, levers: dict[str, float], load: float = 0.0) -> None:
        mass, bucket = r.engine.content.model.body.mass, r.engine.index("bucket")
        before = mass[bucket]
        mass[bucket] += load
        try:
            r.run(2.5)
            r.hold(**levers)
            rows = []
            for _ in range(round(seconds / 0.01)):
                rows.append(self._look(r))
                r.step(10)
            rows.append(self._look(r))
        finally:
            mass[bucket] = before
        table = np.array(rows)
        self.stroke, self.pressure, self.pump = table[:, :3], table[:, 3:9].reshape(-1, 3, 2), table[:, 9:11]

    @staticmethod
    def _look(r: Rig) -> list[float]:
        strokes = [r[f"{name}.stroke"] for name in ARM]
        pressures = [r[f"{name}.pressure_{side}"] for name in ARM for side in "ab"]
        return [*strokes, *pressures, r["pump.pressure"], r["pump.flow"]]

    def speed(self, name: str, first: int = 50, last: int = 100) -> float:
        """Mean speed of a piston between two looks [m/s]."""
        k = ARM.index(name)
        return float((self.stroke[last, k] - self.stroke[first, k]) / (0.01 * (last - first)))


LOADS = (0.0, 2000.0, 4000.0)


def test_the_arm_slows_under_load() -> None:
    """Lifting with the same lever: once power is the limit, a heavier load is slower, by pump power over pressure."""
    seen = []
    for load in LOADS:
        run = Run(oily(), 1.0, LIFT, load)
        seen.append(run.speed("boom"))
        power = run.pump[:, 0] * run.pump[:, 1]
        assert power.max() < LOSSES * P["engine.power"] * 1.02
        late = slice(50, 101)
        flow = min(
            P["pump.flow"], P["boom.speed"] * areas("boom")[0], LOSSES * P["engine.power"] / run.pump[late, 0].mean()
        )
        assert run.speed("boom") == pytest.approx(flow / areas("boom")[0], rel=0.03)
    assert seen[0] > 1.05 * seen[1] > 1.05**2 * seen[2]


def test_the_pump_is_shared() -> None:
    """Two levers, both against gravity: each is slower than alone, and both pistons take what the pump gives."""
    boom = Run(oily(), 1.0, LIFT)
    stick = Run(oily(), 1.0, {"left.y": 1.0})
    both = Run(oily(), 1.0, LIFT | {"left.y": 1.0})
    assert both.speed("boom") < 0.9 * boom.speed("boom")
    assert abs(both.speed("stick")) < 0.9 * abs(stick.speed("stick"))
    for run, names in ((boom, ("boom",)), (stick, ("stick",)), (both, ("boom", "stick"))):
        taken = sum(abs(run.speed(name)) * areas(name)[0 if name == "boom" else 1] for name in names)
        assert run.pump[50:101, 1].mean() == pytest.approx(taken, rel=0.03)
        assert run.pump[:, 1].max() < P["pump.flow"] * 1.02


def test_half_a_lever_is_half_the_speed() -> None:
    """Unloaded by the pump's limits: flow follows the lever."""
    full, half = (-Run(oily(), 1.0, {"right.x": x}).speed("bucket") for x in (0.6, 0.3))
    assert half == pytest.approx(0.5 * full, rel=0.03)
    assert full == pytest.approx(0.6 * P["bucket.speed"], rel=0.03)


def test_pressures_stay_below_relief() -> None:
    """Against the end of the stroke with full levers, and under a load that it can only just hold: a chamber's relief
    opens at 5 % above the pump's and lets all flow go within a few percent more."""
    r = oily()
    cylinder = r.engine.content.model.cylinder
    most = cylinder.relief.max() + P["pump.flow"] / cylinder.relief_gain.min()
    assert cylinder.relief == pytest.approx([1.05 * P["pump.relief"]] * 3)
    run = Run(r, 4.0, {"right.x": -1.0, "left.y": 1.0, "right.y": -1.0}, 4000.0)
    assert run.pressure.max() < most
    assert run.pressure.min() >= 0.0
    assert run.pump[:, 0].max() <= P["pump.relief"] * (1 + 1e-12)


HEAVY = {"uppercarriage.mass": "40 t", "tire.stiffness": "20 MN/m", "tire.damping": "100 kN s/m"}
"""A machine that tips over with no load that its arm can hold, and does not pitch with it."""


def hang(r: Rig, load: float, seconds: float) -> None:
    """A load at the bucket's middle that comes slowly, so that nothing swings."""
    mass, bucket = r.engine.content.model.body.mass, r.engine.index("bucket")
    empty, steps = mass[bucket], round(seconds / 0.01)
    for k in range(steps):
        mass[bucket] = empty + load * (k + 1) / steps
        r.step(10)


def unhang(r: Rig) -> None:
    r.engine.content.model.body.mass[r.engine.index("bucket")] = P["bucket.mass"]


def on_the_ground(r: Rig) -> float:
    """Force of the ground on the bucket [N]."""
    contact, bucket = r.engine.content.data.contact, r.engine.index("bucket")
    mine = [c for c in range(contact.count[0]) if bucket in contact.body[c]]
    return float(contact.impulse[mine, 0].sum()) / r.dt


def mean_of(r: Rig, seconds: float, *names: str) -> list[float]:
    rows = []
    for _ in range(round(seconds / 0.01)):
        r.step(10)
        rows.append([r[name] for name in names])
    return [float(v) for v in np.mean(rows, axis=0)]


def moment_at(load: float) -> float:
    """Pressure under the boom's piston that this load asks for at the posture OUT [Pa]."""
    return expected_push("boom", OUT, load, 0.0) / areas("boom")[0]


def test_a_load_beyond_the_pump_is_held_and_not_lifted() -> None:
    """It asks for 2 % more than the pump's relief pressure, which the chamber's own relief still holds: with the lever
    at its end the boom goes neither up nor, through the open valve, down; and the machine says overload."""
    weightless, heavy = moment_at(0.0), moment_at(10_000.0)
    load = 10_000.0 * (1.02 * P["pump.relief"] - weightless) / (heavy - weightless)
    r = oily(parameters=HEAVY)
    try:
        hang(r, load, 6.0)
        r.run(3.0)
        held, z = mean_of(r, 2.0, "boom.stroke", "teeth.z")
        r.hold(**LIFT)
        r.run(2.0)
        stroke, height, pressure = mean_of(r, 2.0, "boom.stroke", "teeth.z", "boom.pressure_a")
        overload = r["flag.overload"]
    finally:
        unhang(r)
    assert z > 0.8  # in the air
    assert abs(stroke - held) < 1e-3
    assert abs(height - z) < 0.01
    assert P["pump.relief"] < pressure < 1.05 * P["pump.relief"]
    assert overload == 1.0


def test_a_load_that_the_pump_can_lift_is_lifted() -> None:
    """The other side of the same bound: 5 % less than the relief pressure goes up."""
    weightless, heavy = moment_at(0.0), moment_at(10_000.0)
    load = 10_000.0 * (0.95 * P["pump.relief"] - weightless) / (heavy - weightless)
    r = oily(parameters=HEAVY)
    try:
        hang(r, load, 6.0)
        r.run(3.0)
        (held,) = mean_of(r, 2.0, "boom.stroke")
        r.hold(**LIFT)
        r.run(2.0)
        (stroke,) = mean_of(r, 0.5, "boom.stroke")
    finally:
        unhang(r)
    assert stroke > held + 0.05


def test_too_heavy_a_load_is_not_lifted() -> None:
    """16 t at the bucket need twice the relief pressure: the boom came down to the ground through its relief valve,
    does not go up, and says overload. The ground goes on bearing the rest."""
    r = oily(parameters=HEAVY)
    assert moment_at(16_000.0) > 1.9 * P["pump.relief"]
    try:
        hang(r, 16_000.0, 6.0)
        r.run(4.0)
        (before,) = mean_of(r, 1.0, "teeth.z")
        r.hold(**LIFT)
        lowest = math.inf
        for _ in range(150):
            r.step(10)
            lowest = min(lowest, on_the_ground(r))
        after, pressure, overload = mean_of(r, 1.0, "teeth.z", "boom.pressure_a", "flag.overload")
    finally:
        unhang(r)
    assert lowest > 4000.0 * 9.80665  # at no time does the arm carry it
    assert after <= before + 1e-3
    assert 0.97 * P["pump.relief"] < pressure < 1.01 * P["pump.relief"]
    assert overload == 1.0


def test_the_arm_holds_with_valves_shut() -> None:
    """Loaded, levers in the middle: the trapped oil rings for long, but its mean goes nowhere in 7 s."""
    run = Run(oily(), 9.0, {}, 2000.0)
    early, late = slice(0, 200), slice(700, 900)
    assert np.abs(run.stroke[late].mean(axis=0) - run.stroke[early].mean(axis=0)).max() < 2e-4
    assert run.pressure[late, 0, 0].mean() == pytest.approx(run.pressure[early, 0, 0].mean(), rel=0.01)
    assert np.ptp(run.stroke[late], axis=0).max() < 0.5 * np.ptp(run.stroke[early], axis=0).max()
    assert run.pump[:, 1].max() == 0.0


def test_deadheaded_the_pump_gives_nothing() -> None:
    r = oily()
    run = Run(r, 6.0, {"right.x": -1.0})
    stroke = np.diff(P.point("bucket.cylinder.lengths"))[0]
    assert run.stroke[-1, 2] == pytest.approx(stroke, abs=0.01)
    assert run.pump[-1, 1] < 0.02 * P["pump.flow"]


def test_oil_holds_the_posture_that_it_was_built_with() -> None:
    """The pressures at the start carry the arm: it does not fall by what the oil gives way."""
    r = rig(hydraulics=True, posture=OUT)
    r.hold(parking=1.0)
    r.run(10.0)
    for name in ARM:
        assert math.degrees(r[f"{name}.angle"]) == pytest.approx(OUT[name], abs=0.02), name


def test_guided_and_hydraulic_come_to_the_same_push() -> None:
    """At rest, each at its own pressures."""
    pushes = []
    for hydraulics in (False, True):
        r = rig(hydraulics=hydraulics, posture=OUT)
        r.hold(parking=1.0)
        r.run(10.0)
        pushes.append([cylinder_push(name, r) for name in ARM])
    for guided, oil in zip(*pushes, strict=True):
        assert oil == pytest.approx(guided, rel=0.003)
    now = {name: math.degrees(r[f"{name}.angle"]) for name in ARM}
    for name in ("boom", "stick"):
        assert cylinder_push(name, r) == pytest.approx(expected_push(name, now, 0.0, r["tilt.pitch"]), rel=0.003), name


def test_a_reset_shuts_the_valves() -> None:
    """A run after a reset is the first run to the bit, also if the lever is pulled from the first step on."""
    seen = []
    r = oily()
    for _ in range(2):
        r.let_go()
        r.reset()
        r.hold(**{"right.y": 1.0, "left.y": 1.0})
        r.run(0.5)
        seen.append(r.outputs.tobytes() + r.poses.tobytes())
    assert seen[0] == seen[1]
    assert inside(r).drives.hydraulic == 1
