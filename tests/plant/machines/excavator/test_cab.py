"""The cab: patterns, ranges, what is not a number, steering, brakes, gears and throttle."""

import math

import numpy as np
import pytest
from excavator_cases import G, P, inside, masses, rig, settle
from excavator_rig import Rig

from plant.machines.excavator.cab import INPUTS
from plant.vehicle.tires.magic_formula import MagicFormula

ARM = ("boom", "stick", "bucket", "swing")


def way(r: Rig, lever: str, value: float, pattern: float) -> dict[str, float]:
    """Which joints a lever moves, and to where."""
    r.let_go()
    r.reset()
    r.hold(parking=1.0, pattern=pattern)
    r.run(0.2)
    before = {name: r[f"{name}.angle"] for name in ARM}
    r.hold(**{lever: value})
    r.run(0.8)
    moved = {name: r[f"{name}.angle"] - before[name] for name in ARM}
    return {name: math.copysign(1.0, v) for name, v in moved.items() if abs(v) > 0.05}


# ISO 10968: left stick away is stick out, to the left swings left; right stick away is boom down, to the left curls.
# SAE J1177 exchanges the two forward movements.
ISO = {"left.x": ("swing", -1.0), "left.y": ("stick", 1.0), "right.x": ("bucket", 1.0), "right.y": ("boom", -1.0)}
SAE = ISO | {"left.y": ("boom", -1.0), "right.y": ("stick", 1.0)}


@pytest.mark.parametrize("lever", ISO)
@pytest.mark.parametrize(("pattern", "table"), [(0.0, ISO), (1.0, SAE)], ids=["ISO", "SAE"])
def test_patterns(lever: str, pattern: float, table: dict[str, tuple[str, float]]) -> None:
    joint, sign = table[lever]
    r = rig(posture={"boom": 45.0})
    for value in (1.0, -1.0):
        assert way(r, lever, value, pattern) == {joint: sign * value}


@pytest.mark.parametrize("name", [s.name for s in INPUTS])
def test_beyond_its_range_is_clamped_and_flagged(name: str) -> None:
    """A run with a value far outside is, to the bit, the run with the end of the range; only the flag differs."""
    signal = next(s for s in INPUTS if s.name == name)
    r = rig()
    for beyond, end in ((signal.high + 50.0, signal.high), (signal.low - 50.0, signal.low), (math.inf, signal.high)):
        seen = []
        for value in (beyond, end):
            r.let_go()
            r.reset()
            r.hold(**{name: value})
            r.step(40)
            flag = r["flag.clamped"]
            assert flag == (1.0 if value == beyond else 0.0)
            seen.append(
                r.outputs[[k for n, k in r._output.items() if n != "flag.clamped"]].tobytes() + r.poses.tobytes()
            )
        assert seen[0] == seen[1]
    r.hold(**{name: signal.default})
    r.step()
    assert r["flag.clamped"] == 0.0


def test_what_is_not_a_number_is_safe() -> None:
    """All inputs gone: flagged, every output finite, and the machine comes to rest with the engine at idle."""
    r = rig()
    r.hold(drive=1.0, **{"right.y": -1.0})
    r.run(1.0)
    r.inputs[:] = math.nan
    r.run(3.0)
    assert r["flag.clamped"] == 1.0
    assert np.isfinite(r.outputs).all()
    assert np.isfinite(r.poses).all()
    assert abs(r["speed"]) < 0.05
    assert r["engine.speed"] == pytest.approx(P["engine.idle"], rel=1e-6)
    boom = r["boom.angle"]
    r.run(0.5)
    assert r["boom.angle"] == pytest.approx(boom, abs=1e-3)


def wheel_angles(r: Rig) -> np.ndarray:
    angle, names = r.engine.content.data.state.angle, r.engine.joint_names
    return np.array(
        [angle[names.index(f"axle_{w}"), 0] for w in ("front_left", "front_right", "rear_left", "rear_right")]
    )


def heading_of(place: np.ndarray) -> float:
    return math.atan2(place[1], place[0])


def test_ackermann_all_axes_meet_in_one_point() -> None:
    """cot(outer) - cot(inner) = track over wheelbase, the rear axle straight; and it drives in that circle."""
    r = rig()
    r.hold(steer=1.0, drive=0.3)
    r.run(3.0)
    fl, fr, rl, rr = wheel_angles(r)
    base = P["axle.front"] - P["axle.rear"]
    assert (rl, rr) == pytest.approx((0.0, 0.0), abs=1e-3)
    assert 1 / math.tan(fr) - 1 / math.tan(fl) == pytest.approx(P["track"] / base, rel=5e-3)
    assert fl > fr > 0.0
    assert math.atan2(2.0, 1 / math.tan(fl) + 1 / math.tan(fr)) == pytest.approx(P["steer.most"], rel=5e-3)
    before, speed, place = r["heading"], [], r.place("undercarriage")
    for _ in range(100):
        r.run(0.02)
        speed.append(r["speed"])
    rate = math.remainder(r["heading"] - before, 2 * math.pi) / 2.0
    radius = base / math.tan(P["steer.most"])
    assert np.mean(speed) / rate == pytest.approx(radius, rel=0.05)  # of the middle, slip of the tires included
    assert rate > 0.0
    assert np.linalg.norm(r.place("undercarriage") - place) > 0.5


def test_pivot_turns_on_the_spot() -> None:
    """All axes meet in the middle between the axles, which half a turn moves by less than 5 % of the wheelbase."""
    r = rig()
    r.hold(steer_mode=1.0, steer=1.0)
    r.run(2.5)
    base, half = P["axle.front"] - P["axle.rear"], P["track"] / 2
    expected = math.atan2(base / 2, half)
    assert wheel_angles(r) == pytest.approx([-expected, expected, expected, -expected], abs=2e-3)

    def middle() -> np.ndarray:
        ahead = 0.5 * (P["axle.front"] + P["axle.rear"])
        at = r.place("undercarriage")[:2]
        return at + ahead * np.array([math.cos(r["heading"]), math.sin(r["heading"])])

    start = middle()
    r.hold(drive=0.6)
    turned, last = 0.0, r["heading"]
    for _ in range(400):
        r.run(0.02)
        turned += math.remainder(r["heading"] - last, 2 * math.pi)
        last = r["heading"]
        assert np.linalg.norm(middle() - start) < 0.05 * base
        if turned > math.pi:
            break
    assert turned > math.pi  # to the left with the steering wheel to the left


def test_pivot_turns_no_faster_than_the_wheel_is_turned() -> None:
    """With the steering wheel in the middle the pedal turns nothing; half way is half the rate; back is back."""
    rates = []
    for steer, drive in ((0.0, 1.0), (1.0, 0.6), (0.5, 0.6), (-1.0, 0.6), (1.0, -0.6)):
        r = rig()
        r.hold(steer_mode=1.0, steer=steer)
        r.run(2.5)
        r.hold(drive=drive)
        r.run(1.5)
        before = r["heading"]
        r.run(1.0)
        rates.append(math.remainder(r["heading"] - before, 2 * math.pi))
    still, full, half, right, back = rates
    assert abs(still) < 1e-3
    assert full > 0.1
    assert half == pytest.approx(0.5 * full, rel=0.05)
    assert (right, back) == pytest.approx((-full, -full), rel=0.05)


def test_crab_drives_sideways_without_turning() -> None:
    r = rig()
    r.hold(steer_mode=2.0, steer=1.0)
    r.run(2.0)
    assert wheel_angles(r) == pytest.approx([P["steer.most"]] * 4, abs=2e-3)
    start = r.place("undercarriage")
    r.hold(drive=0.6)
    r.run(4.0)
    moved = r.place("undercarriage") - start
    assert np.linalg.norm(moved[:2]) > 1.0
    assert heading_of(moved) == pytest.approx(P["steer.most"], abs=math.radians(1.5))
    assert abs(r["heading"]) < math.radians(1.0)


def stopping(r: Rig, gear: float) -> tuple[float, float, float]:
    """Speed at which the brake begins, distance to rest, and the most that a wheel slipped."""
    r.hold(drive=1.0, gear=gear)
    r.run_until(lambda: r["speed"] > 5.2, 12.0)
    r.hold(drive=0.0, brake=1.0)
    v, start, slip = r["speed"], r["x"], 0.0
    while r["speed"] > 0.02:
        r.step(10)
        slip = max(slip, *(abs(r[f"wheel_{w}.slip"]) for w in ("front_left", "rear_right")))
    return v, r["x"] - start, slip


LAW = MagicFormula()
PEAK = LAW.pdx1 * P["tire.grip"]
SLIDING = PEAK * math.sin(LAW.cx * math.atan(LAW.pkx1 / (LAW.cx * LAW.pdx1)))  # of a locked wheel: slip 1, curvature 0


def test_brakes_stop_it_by_torque_ahead_and_by_grip_behind() -> None:
    """v^2 / 2a. Braking takes load off the rear wheels, which lock and slide; the front ones roll to the end.

    (m + 2 I / r^2) a = front torque / r + mu (rear load - m a h / wheelbase)
    """
    v, way, _ = stopping(rig(x=-14.0), 3.0)
    m = masses()
    a, _, c = P.point("wheel.size")
    turning = 2 * P["wheel.mass"] / 12 * (a * a + c * c) / P["wheel.radius"] ** 2
    base = P["axle.front"] - P["axle.rear"]
    rear = m.total * G * (P["axle.front"] - m.centre[0]) / base
    low, _, high = P.point("drive.gears")
    front = 0.5 * (P["brake.torque"] / P["wheel.radius"] + 0.33 * P["drive.pull"] * low / high)
    slower = (front + SLIDING * rear) / (m.total + turning + SLIDING * m.total * m.centre[2] / base)
    assert SLIDING * (rear - m.total * slower * m.centre[2] / base) < front  # they do lock
    assert way == pytest.approx(v * v / (2 * slower), rel=0.1)


def test_locked_wheels_stop_it_by_their_grip() -> None:
    """With brakes that lock, v^2 / (2 mu g), mu of sliding tires; never shorter than their peak allows."""
    v, way, slip = stopping(rig(x=-14.0, parameters={"brake.torque": "200 kN m"}), 3.0)
    assert slip > 0.8
    assert way > v * v / (2 * PEAK * G) * 0.98
    assert way == pytest.approx(v * v / (2 * SLIDING * G), rel=0.1)


def top_speed(r: Rig, **levers: float) -> float:
    r.hold(**levers)
    r.run(6.0 if levers.get("gear", 1.0) > 1.0 else 3.0)
    return r["speed"]


@pytest.mark.parametrize("gear", [1, 2, 3])
def test_each_gear_has_its_top_speed(gear: int) -> None:
    """Wheels turn at the gear's speed over the tire's free radius; the machine is slower by the tires' sinking."""
    share = P.point("drive.gears")[gear - 1]
    r = rig(x=-14.0)
    found = top_speed(r, drive=1.0, gear=float(gear))
    assert found == pytest.approx(share * P["drive.speed"], rel=0.03)


def test_pedal_and_throttle_scale_the_speed() -> None:
    r = rig()
    full = top_speed(r, drive=1.0)
    r.let_go()
    r.reset()
    assert top_speed(r, drive=0.5) == pytest.approx(0.5 * full, rel=0.02)
    r.let_go()
    r.reset()
    assert top_speed(r, drive=-1.0) == pytest.approx(-full, rel=0.02)
    r.let_go()
    r.reset()
    idle = top_speed(r, drive=1.0, throttle=0.0)
    assert idle == pytest.approx(full * P["engine.idle"] / P["engine.rated"], rel=0.02)
    assert r["engine.speed"] == pytest.approx(P["engine.idle"], rel=1e-9)


def test_throttle_slows_the_arm_and_the_swing() -> None:
    """Stick half way out; the swing after 3 s, when its torque has brought it to speed."""
    for throttle, share in ((1.0, 1.0), (0.0, P["engine.idle"] / P["engine.rated"])):
        for lever, way, output, speed, after in (
            ("left.y", 1.0, "stick.stroke", -P["stick.speed"], 1.2),
            ("left.x", -1.0, "swing.angle", P["swing.speed"], 3.0),
        ):
            r = rig()
            r.hold(throttle=throttle, parking=1.0)
            r.run(1.5)
            r.hold(**{lever: way})
            r.run(after)
            before = r[output]
            r.run(0.2)
            assert (r[output] - before) / 0.2 == pytest.approx(share * speed, rel=0.02), (output, throttle)


@pytest.mark.parametrize("lost", ["defaults", "not a number"])
def test_nobody_at_the_levers_means_the_parking_brake(lost: str) -> None:
    """Driving uphill on 15 degrees when everything is lost: it stops, and stays for 3 s within a millimetre."""
    r = rig(terrain="slope", slope=15.0)
    r.hold(drive=0.9)
    r.run(2.5)
    assert r["speed"] > 0.3
    r.inputs[:] = [s.default for s in INPUTS] if lost == "defaults" else math.nan
    r.run(6.0)
    before = r.place("undercarriage")
    r.run(3.0)
    assert np.linalg.norm(r.place("undercarriage") - before) < 1e-3
    r.let_go()
    r.run(3.0)
    assert np.linalg.norm(r.place("undercarriage") - before) > 0.05  # the hydrostat alone does not hold it


def test_the_parking_brake_holds_on_a_slope() -> None:
    """10 degrees: it leans on its tires first, and then stays for 3 s within a millimetre."""
    r = settle(rig(terrain="slope", slope=10.0), 5.0)
    before = r.place("undercarriage")
    r.run(3.0)
    assert np.linalg.norm(r.place("undercarriage") - before) < 1e-3
    assert inside(r).cab.lever.min() >= -1.0
