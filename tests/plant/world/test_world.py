"""Worlds that can not be are refused, by name, before anything runs."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from worlds import compiled

from plant.world.checks import WorldError
from plant.world.world import World

NAN = math.nan


def arm(**more: object) -> World:
    world = World()
    world.body("arm", **more)  # type: ignore[arg-type]
    return world


@pytest.mark.parametrize("mass", [0.0, -1.0, NAN, math.inf])
def test_a_mass_must_be_positive(mass: float) -> None:
    with pytest.raises(WorldError, match=r"'arm'.*mass"):
        compiled(arm(mass=mass))


@pytest.mark.parametrize(
    "inertia", [(0, 1, 1), (1, -1, 1), [[1, 0.9, 0], [0.9, 0.5, 0], [0, 0, 1]], (1, 1, NAN), (1, 1, math.inf)]
)
def test_moments_of_inertia_must_be_positive(inertia: object) -> None:
    with pytest.raises(WorldError, match=r"'arm'"):
        compiled(arm(inertia=inertia))


def test_moments_of_inertia_obey_the_triangle_rule() -> None:
    with pytest.raises(WorldError, match=r"'arm'.*triangle"):
        compiled(arm(inertia=(1, 1, 2.1)))
    compiled(arm(inertia=(1, 1, 2.0)))  # a flat plate is the limit


def test_a_tensor_must_be_symmetric_and_three_by_three() -> None:
    with pytest.raises(WorldError, match=r"'arm'.*symmetric"):
        compiled(arm(inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]))
    with pytest.raises(WorldError, match=r"'arm'.*inertia"):
        arm(inertia=(1, 2))


def test_a_static_body_needs_no_mass() -> None:
    compiled(arm(mass=0, inertia=(0, 0, 0), kind="static"))


@pytest.mark.parametrize("quat", [(0, 0, 0, 0), (NAN, 0, 0, 0)])
def test_an_attitude_must_be_a_rotation(quat: object) -> None:
    with pytest.raises(WorldError, match=r"'arm'.*quat"):
        arm(quat=quat)


def test_an_unknown_body_is_answered_with_the_nearest() -> None:
    world = arm()
    with pytest.raises(WorldError, match=r"'pin'.*'amr'.*arm"):
        world.hinge("pin", None, "amr", at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(WorldError, match=r"'amr'.*arm"):
        world.sphere("amr", radius=0.1)


def test_an_unknown_joint_is_answered_with_the_nearest() -> None:
    world = arm()
    world.hinge("shoulder", None, "arm", at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(WorldError, match=r"'drive'.*'sholder'.*shoulder"):
        world.motor("drive", "sholder")


def test_a_joint_needs_something_that_can_move() -> None:
    world = arm()
    world.body("wall", kind="static")
    with pytest.raises(WorldError, match=r"'pin'.*ground"):
        world.ball("pin", None, None, at=(0, 0, 0))
    with pytest.raises(WorldError, match=r"'pin'.*itself"):
        world.ball("pin", "arm", "arm", at=(0, 0, 0))
    world.ball("pin", None, "wall", at=(0, 0, 0))
    with pytest.raises(WorldError, match=r"'pin'.*nothing that can move"):
        compiled(world)


def test_names_are_used_once() -> None:
    world = arm()
    with pytest.raises(WorldError, match=r"'arm'"):
        world.body("arm")
    world.hinge("pin", None, "arm", at=(0, 0, 0), axis=(0, 0, 1))
    with pytest.raises(WorldError, match=r"'pin'"):
        world.ball("pin", None, "arm", at=(0, 0, 0))
    world.motor("drive", "pin")
    with pytest.raises(WorldError, match=r"'drive'"):
        world.friction("drive", "pin", force=1.0)


def test_directions_must_have_one() -> None:
    world = arm()
    with pytest.raises(WorldError, match=r"'pin'.*axis"):
        world.hinge("pin", None, "arm", at=(0, 0, 0), axis=(0, 0, 0))
    with pytest.raises(WorldError, match=r"'pin'.*reference"):
        world.joint(
            "pin",
            None,
            "arm",
            at=(0, 0, 0),
            axis=(0, 0, 1),
            reference=(0, 0, 2),
            locked=(0,),
            turning=0,  # type: ignore[arg-type]
        )
    with pytest.raises(WorldError, match="plane"):
        world.plane(normal=(0, 0, 0))


def test_a_refused_name_can_be_used_again() -> None:
    """What was refused left nothing behind."""
    world = arm()
    with pytest.raises(WorldError):
        world.hinge("pin", None, "arm", at=(0, 0, 0), axis=(0, 0, 0))
    world.hinge("pin", None, "arm", at=(0, 0, 0), axis=(0, 0, 1))


def test_ranges_must_not_be_empty() -> None:
    world = arm()
    world.hinge("pin", None, "arm", at=(0, 0, 0), axis=(0, 0, 1))
    for low, high in ((1.0, 1.0), (1.0, -1.0), (NAN, 1.0)):
        with pytest.raises(WorldError, match=r"'stop'"):
            world.limit("stop", "pin", low=low, high=high)


@pytest.mark.parametrize("stiffness", [0.0, -1.0, NAN])
def test_a_stiffness_must_be_positive(stiffness: float) -> None:
    with pytest.raises(WorldError, match=r"'pin'.*stiffness"):
        arm().ball("pin", None, "arm", at=(0, 0, 0), stiffness=stiffness)


@pytest.mark.parametrize("radius", [-0.1, NAN])
def test_a_radius_must_not_be_negative(radius: float) -> None:
    with pytest.raises(WorldError, match=r"'arm'.*radius"):
        arm().sphere("arm", radius=radius)


def hinged() -> World:
    world = arm()
    world.hinge("pin", None, "arm", at=(0, 0, 0), axis=(0, 0, 1))
    return world


def balled() -> World:
    world = arm()
    world.ball("pin", None, "arm", at=(0, 0, 0))
    return world


UNCHECKED: dict[str, Callable[[], object]] = {
    "step of zero": lambda: compiled(arm(), 0.0),
    "negative step": lambda: compiled(arm(), -1e-3),
    "step not a number": lambda: compiled(arm(), NAN),
    "position not a number": lambda: compiled(arm(pos=(0, NAN, 0))),
    "speed not a number": lambda: compiled(arm(vel=(0, NAN, 0))),
    "centre of mass not a number": lambda: compiled(arm(com=(0, NAN, 0))),
    "gravity of two numbers": lambda: compiled(World(gravity=(0, 1))),
    "joint at no place": lambda: compiled(_placed((0, NAN, 0))),
    "stiffness not a number": lambda: compiled(_stiff(NAN)),
    "negative damping": lambda: compiled(_damped(-0.01)),
    "negative motor force": lambda: compiled(_with(hinged(), "motor", force=-1.0)),
    "motor force not a number": lambda: compiled(_with(hinged(), "motor", force=NAN)),
    "negative friction": lambda: compiled(_with(hinged(), "friction", force=-1.0)),
    "motor on a locked axis": lambda: compiled(_with(hinged(), "motor", axis="x")),
    "motor on an axis that is none": lambda: _with(hinged(), "motor", axis="w"),
    "turning motor on a ball joint": lambda: compiled(_with(balled(), "motor")),
    "negative coefficient of friction": lambda: compiled(_touching(friction=-0.5)),
    "contact stiffness of zero": lambda: compiled(_touching(stiffness=0.0)),
    "universal with axes not perpendicular": lambda: arm().universal(
        "cross", None, "arm", at=(0, 0, 0), axis_a=(1, 0, 0), axis_b=(1, 1, 0)
    ),
}


def _placed(at: tuple[float, ...]) -> World:
    world = arm()
    world.ball("pin", None, "arm", at=at)
    return world


def _stiff(stiffness: float) -> World:
    world = arm()
    world.ball("pin", None, "arm", at=(0, 0, 0), stiffness=stiffness)
    return world


def _damped(damping_time: float) -> World:
    world = arm()
    world.ball("pin", None, "arm", at=(0, 0, 0), damping_time=damping_time)
    return world


def _with(world: World, kind: str, **options: object) -> World:
    getattr(world, kind)("drive", "pin", **options)
    return world


def _touching(**properties: float) -> World:
    world = arm()
    world.sphere("arm", radius=0.1)
    world.plane()
    world.material("default", "default", **properties)
    return world


@pytest.mark.parametrize("what", UNCHECKED)
def test_is_refused(what: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(WorldError):
        UNCHECKED[what]()


def test_a_world_compiles_itself() -> None:
    assert World().compile(dt=1e-3).step(1) == 0  # type: ignore[attr-defined]


def test_a_world_without_bodies_runs() -> None:
    assert compiled(World()).step(10) == 0
