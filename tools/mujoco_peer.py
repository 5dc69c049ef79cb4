"""The same World for MuJoCo, so that both engines are measured on one mechanism.

Joints that close a loop become two `connect` equalities on the hinge's axis (MuJoCo has no loop joint); the
others build the tree. Shapes of bodies become geoms.
"""

from __future__ import annotations

import numpy as np

from plant.collision.model import Kind
from plant.model import Bound, Turning
from plant.world.joints import Joint
from plant.world.rotations import conjugate, product, rotated
from plant.world.world import World

GEOMS = {Kind.SPHERE: "sphere", Kind.BOX: "box", Kind.CAPSULE: "capsule", Kind.CYLINDER: "cylinder"}
SIZES = {Kind.SPHERE: 1, Kind.BOX: 3, Kind.CAPSULE: 2, Kind.CYLINDER: 2}


def _text(v) -> str:
    return " ".join(f"{x:.15g}" for x in np.atleast_1d(v))


def to_mjcf(world: World, dt: float, *, solver: str = "Newton", solref: str = "") -> str:
    """MJCF of the world; every body hangs below the one it is joined to first."""
    children: dict[str | None, list[tuple[str, Joint | None]]] = {}
    placed: set[str | None] = {None}
    loops: list[Joint] = []
    todo = list(world.joints.values())
    bodies = list(world.bodies)
    while len(placed) <= len(bodies):
        grown = False
        for j in list(todo):
            if (j.a in placed) != (j.b in placed):
                parent, child = (j.a, j.b) if j.a in placed else (j.b, j.a)
                children.setdefault(parent, []).append((child, j))
                placed.add(child)
                todo.remove(j)
                grown = True
        if not grown:
            free = next(b for b in bodies if b not in placed)
            children.setdefault(None, []).append((free, None))
            placed.add(free)
    loops = todo
    solref = f'solref="{solref}"' if solref else ""
    equality = "".join(_loop(world, j, solref) for j in loops)
    slip = f'friction="{_friction(world)} 0 0"'
    planes = "".join(
        f'<geom type="plane" size="0 0 1" pos="{_text(s.at)}" quat="{_text(s.quat)}" '
        f'conaffinity="1" contype="2" {slip}/>'
        for s in world.shapes
        if s.body is None and s.shape.kind == Kind.PLANE
    )
    motors = "".join(_motor(a) for a in world.actuators.values() if a.kind == Bound.MOTOR)
    return f"""<mujoco><option timestep="{dt}" gravity="{_text(world.gravity)}" solver="{solver}"/>
<worldbody>{planes}{"".join(_body(world, c, j, None, children) for c, j in children.get(None, []))}</worldbody>
<equality>{equality}</equality><actuator>{motors}</actuator></mujoco>"""


def _friction(world: World) -> float:
    return next(iter(world.materials.values())).friction if world.materials else 0.5


def _body(world: World, name: str, joint: Joint | None, parent: str | None, children) -> str:
    b = world.bodies[name]
    pos, quat = b.pos, b.quat
    if parent is not None:
        p = world.bodies[parent]
        pos, quat = rotated(conjugate(p.quat), b.pos - p.pos), product(conjugate(p.quat), b.quat)
    inner = "".join(_body(world, c, j, name, children) for c, j in children.get(name, []))
    i = b.inertia
    full = _text([i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])
    # Without joints everything meets everything; machines meet the ground alone, as their neighbours would overlap.
    meets = 'contype="1" conaffinity="2"' if world.joints else 'contype="3" conaffinity="3"'
    geoms = "".join(
        f'<geom type="{GEOMS[s.shape.kind]}" size="{_text(s.shape.sizes()[: SIZES[s.shape.kind]])}" '
        f'pos="{_text(s.at)}" quat="{_text(s.quat)}" mass="0" {meets} friction="{_friction(world)} 0 0"/>'
        for s in world.shapes
        if s.body == name
    )
    return (
        f'<body name="{name}" pos="{_text(pos)}" quat="{_text(quat)}"><inertial pos="{_text(b.com)}" mass="{b.mass}" '
        f'fullinertia="{full}"/>{_joint(world, name, joint)}{geoms}{inner}</body>'
    )


def _joint(world: World, body: str, j: Joint | None) -> str:
    if j is None:
        return "<freejoint/>"
    b = world.bodies[body]
    at = _text(rotated(conjugate(b.quat), j.at - b.pos))
    z = rotated(j.quat, np.array([0, 0, 1.0])) * (1 if j.b == body else -1)
    axis = _text(rotated(conjugate(b.quat), z))
    if j.turning == Turning.ALL_FREE:
        return f'<joint name="{j.name}" type="ball" pos="{at}"/>'
    kind = "hinge" if j.turning == Turning.ONE_FREE else "slide"
    return f'<joint name="{j.name}" type="{kind}" pos="{at}" axis="{axis}"/>'


def _loop(world: World, j: Joint, solref: str) -> str:
    if j.turning not in (Turning.ALL_FREE, Turning.ONE_FREE) or 2 not in j.locked:
        raise ValueError(f"joint {j.name!r} closes a loop: only a ball or a hinge can; declare another one later")
    b = world.bodies[j.b]
    z = rotated(j.quat, np.array([0, 0, 1.0]))
    points = (j.at,) if j.turning == Turning.ALL_FREE else (j.at + 0.1 * z, j.at - 0.1 * z)
    return "".join(
        f'<connect body1="{j.b}" body2="{j.a}" anchor="{_text(rotated(conjugate(b.quat), p - b.pos))}" {solref}/>'
        for p in points
    )


def _motor(a) -> str:
    return f'<velocity joint="{a.joint}" kv="1e6" forcerange="{a.low} {a.high}" forcelimited="true"/>'
