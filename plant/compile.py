"""Compile: a World to Model and Data. Everything is checked and allocated here; nothing later allocates or raises."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hilnode.jit import kernel
from hilnode.record import Record
from plant import ldl, model
from plant.spook import step
from plant.world import RIGID, Body, Joint, Material, World, WorldError, conjugate, product, rotated

KINDS = {"dynamic": 0, "kinematic": 1, "static": 2}
DAMPING_STEPS = 2.0  # damping time of a locked axis in steps, when none is given


@kernel
def run_steps(address, scratch, count):
    """`count` steps without contacts from outside; 0 or the first bad status."""
    e = model.view_engine(address)
    for _ in range(count):
        status = step(e, scratch)
        if status != 0:
            return status
    return 0


@dataclass
class Engine:
    """A compiled world."""

    world: World
    content: model.Engine
    record: Record
    scratch: np.ndarray
    names: list[str]

    def step(self, count: int = 1) -> int:
        """Advance; 0 or the status that ended it."""
        return int(run_steps(self.record.address, self.scratch, count))

    def index(self, body: str) -> int:
        return self.names.index(body)

    def position(self, body: str) -> np.ndarray:
        """Origin of a body's frame [m]."""
        b, d = self.index(body), self.content.data.state
        return d.pos[b] - rotated(d.quat[b], self.content.model.body.com[b])

    def gap(self) -> float:
        """The largest violation of a locked linear axis [m]."""
        joint, row = self.content.model.joint, self.content.data.row
        linear = (joint.axis >= 0) & (joint.axis < 3)
        return float(np.abs(row.error[linear]).max(initial=0.0))

    def energy(self) -> float:
        """Kinetic and potential [J]."""
        m, s = self.content.model, self.content.data.state
        total = 0.0
        for b in range(len(self.names)):
            if m.body.kind[b] != 0:
                continue
            v = s.vel[b]
            spin = rotated(conjugate(s.quat[b]), v[3:])
            total += 0.5 * m.body.mass[b] * v[:3] @ v[:3] + 0.5 * spin @ m.body.inertia[b] @ spin
            total -= m.body.mass[b] * np.array([m.setup.gx, m.setup.gy, m.setup.gz]) @ s.pos[b]
        return float(total)


def compile_world(world: World, dt: float, *, contacts: int = 64) -> Engine:
    """Arrays for `world` at steps of `dt` seconds, with room for so many contacts."""
    if not (np.isfinite(dt) and dt > 0):
        raise WorldError(f"dt = {dt}: a step must take a positive number of seconds")
    if np.shape(world.gravity) != (3,) or not np.isfinite(np.array(world.gravity, float)).all():
        raise WorldError(f"gravity {tuple(world.gravity)} must be three finite numbers")
    bodies, joints = list(world.bodies.values()), list(world.joints.values())
    for body in bodies:
        _check_body(body)
    names = [b.name for b in bodies]
    number = {n: i for i, n in enumerate(names)}
    dynamic = [i for i, b in enumerate(bodies) if b.kind == "dynamic"]
    for j in joints:
        if not any(n is not None and bodies[number[n]].kind == "dynamic" for n in (j.a, j.b)):
            raise WorldError(f"joint {j.name!r} connects nothing that can move")
    sizes = [6] * len(dynamic) + [3 if len(j.locked) <= 3 else 6 for j in joints]
    place = {b: k for k, b in enumerate(dynamic)}
    edges = [
        (place[number[n]], len(dynamic) + k)
        for k, j in enumerate(joints)
        for n in (j.a, j.b)
        if n is not None and number[n] in place
    ]
    weights = _weights(world, dynamic, names, joints)
    pattern, order = ldl.analyse(sizes, edges, [False] * len(dynamic) + [True] * len(joints), weights)
    new = {old: k for k, old in enumerate(order)}
    materials, names_of_materials = _materials(world, dt)
    made = model.Model(
        setup=_setup(world, dt),
        body=_bodies(bodies, place, new, pattern),
        joint=_joints(world, joints, bodies, number, place, new, pattern, dt),
        actuator=_actuators(world, joints, dt),
        material=materials,
        shape=_shapes(world, number, names_of_materials),
        pattern=pattern,
    )
    data = _data(world, bodies, joints, made, contacts)
    content = model.Engine(made, data)
    return Engine(world, content, Record(content), np.zeros((10, 6)), names)


def _setup(world: World, dt: float) -> model.Setup:
    gx, gy, gz = (float(g) for g in world.gravity)
    return model.Setup(dt, gx, gy, gz, friction_rounds=2, pivots=100, visible=world.visible)


def _weights(world: World, dynamic: list[int], names: list[str], joints: list[Joint]) -> list[float]:
    """Bounded rows that each node may get: contacts of a body's shapes, actuators of its joints."""
    weight = {names[i]: 0.01 for i in dynamic}
    for body, _, _, _ in world.spheres:
        if body in weight:
            weight[body] += 3.0
    for actuator in world.actuators.values():
        joint = world.joints[actuator.joint]
        for end in (joint.a, joint.b):
            if end in weight:
                weight[end] += 1.0
    return [*weight.values(), *[0.0] * len(joints)]


def _check_body(body: Body) -> None:
    if body.kind != "dynamic":
        return
    if not (np.isfinite(body.mass) and body.mass > 0):
        raise WorldError(f"body {body.name!r}: mass {body.mass} kg must be positive; for a fixed one use kind='static'")
    tensor = body.inertia
    if np.isfinite(tensor).all() and not np.allclose(tensor, tensor.T, rtol=1e-9, atol=0):
        raise WorldError(f"body {body.name!r}: its inertia tensor is not symmetric")
    moments = np.linalg.eigvalsh(tensor) if np.isfinite(tensor).all() else np.diag(tensor)
    if not (np.isfinite(moments).all() and moments[0] > 0):
        raise WorldError(f"body {body.name!r}: principal moments {moments.tolist()} kg m^2 must be positive")
    if moments[2] > (moments[0] + moments[1]) * (1 + 1e-9):
        raise WorldError(
            f"body {body.name!r}: principal moments {moments.tolist()} break the triangle rule: no rigid body has them"
        )


def spook_parameters(stiffness: float, damping_time: float | None, h: float) -> tuple[float, float]:
    """Regularisation and stabilisation of a row from physical units (SPOOK eq. 9 with epsilon = 1 / stiffness)."""
    tau = DAMPING_STEPS * h if damping_time is None else damping_time
    upsilon = 1.0 / (1.0 + 4.0 * tau / h)
    return 4.0 / (stiffness * h * h) * upsilon, upsilon


def _bodies(bodies: list[Body], place: dict[int, int], new: dict[int, int], p: ldl.Pattern) -> model.Bodies:
    node = np.array([new[place[i]] if i in place else -1 for i in range(len(bodies))], np.int64)
    paths = [_path(p, n) for n in node]
    longest = max([len(q) for q in paths], default=0)
    path = np.full((len(bodies), max(1, longest)), -1, np.int64)
    for i, q in enumerate(paths):
        path[i, : len(q)] = q
    return model.Bodies(
        kind=np.array([KINDS[b.kind] for b in bodies], np.int64),
        mass=np.array([b.mass for b in bodies], float),
        inertia=np.array([b.inertia for b in bodies], float).reshape(-1, 3, 3),
        com=np.array([b.com for b in bodies], float).reshape(-1, 3),
        node=node,
        path=path,
        path_length=np.array([len(q) for q in paths], np.int64),
    )


def _path(p: ldl.Pattern, node: int) -> list[int]:
    """The node and everything its column reaches, fill included, rising."""
    found: set[int] = set()
    todo = [int(node)] if node >= 0 else []
    while todo:
        n = todo.pop()
        if n not in found:
            found.add(n)
            todo += p.row[p.first[n] : p.first[n + 1]].tolist()
    return sorted(found)


def _joints(world, joints, bodies, number, place, new, p, h) -> model.Joints:
    n = len(joints)
    out = model.Joints(
        a=np.full(n, -1, np.int64),
        b=np.full(n, -1, np.int64),
        pa=np.zeros((n, 3)),
        qa=np.zeros((n, 4)),
        pb=np.zeros((n, 3)),
        qb=np.zeros((n, 4)),
        turning=np.array([int(j.turning) for j in joints], np.int64),
        axis=np.full((n, model.ROWS), -1, np.int64),
        sigma=np.ones((n, model.ROWS)),
        upsilon=np.zeros((n, model.ROWS)),
        rigid=np.array([j.stiffness >= RIGID for j in joints], np.int64),
        node=np.array([new[len(place) + k] for k in range(n)], np.int64),
        block_a=np.full(n, -1, np.int64),
        block_b=np.full(n, -1, np.int64),
        over_a=np.zeros(n, np.int64),
        over_b=np.zeros(n, np.int64),
    )
    for k, j in enumerate(joints):
        for side, name in ((0, j.a), (1, j.b)):
            where = j.at_b if side == 1 and j.at_b is not None else j.at
            point, quat = where, j.quat
            body = -1
            if name is not None:
                body = number[name]
                frame = bodies[body]
                point = rotated(conjugate(frame.quat), where - frame.pos) - frame.com
                quat = product(conjugate(frame.quat), j.quat)
            (out.a, out.b)[side][k] = body
            (out.pa, out.pb)[side][k] = point
            (out.qa, out.qb)[side][k] = quat
            if body in place:
                block, over = _block(p, int(out.node[k]), new[place[body]])
                (out.block_a, out.block_b)[side][k] = block
                (out.over_a, out.over_b)[side][k] = over
        sigma, upsilon = spook_parameters(j.stiffness, j.damping_time, h)
        for row, axis in enumerate(j.locked):
            out.axis[k, row] = axis
            out.sigma[k, row] = sigma
            out.upsilon[k, row] = upsilon
    return out


def _block(p: ldl.Pattern, joint: int, body: int) -> tuple[int, int]:
    low, high = min(joint, body), max(joint, body)
    for s in range(p.first[low], p.first[low + 1]):
        if p.row[s] == high:
            return int(s), int(joint > body)
    raise AssertionError("a joint and its body share no block")


def _actuators(world: World, joints: list[Joint], h: float) -> model.Actuators:
    number = {j.name: i for i, j in enumerate(joints)}
    acts = list(world.actuators.values())
    pairs = [spook_parameters(a.stiffness, a.damping_time, h) for a in acts]
    return model.Actuators(
        joint=np.array([number[a.joint] for a in acts], np.int64),
        axis=np.array([a.axis for a in acts], np.int64),
        kind=np.array([int(a.kind) for a in acts], np.int64),
        side=np.array([a.side for a in acts], float),
        sigma=np.array([s for s, _ in pairs], float),
        upsilon=np.array([u for _, u in pairs], float),
    )


def _materials(world: World, h: float) -> tuple[model.Materials, list[str]]:
    """One entry for each pair of materials in use, and their names."""
    names = sorted({s[3] for s in world.spheres} | {p[2] for p in world.planes} | {"default"})
    pairs = [(a, b) for i, a in enumerate(names) for b in names[: i + 1]]
    made = [world.materials.get(pair, Material()) for pair in pairs]
    pair = np.zeros((len(names), len(names)), np.int64)
    for k, (one, other) in enumerate(pairs):
        i, j = names.index(one), names.index(other)
        pair[i, j] = pair[j, i] = k
    soft = [spook_parameters(m.stiffness, m.damping_time, h) for m in made]

    def column(name: str) -> np.ndarray:
        return np.array([getattr(m, name) for m in made], float)

    table = model.Materials(
        friction=column("friction"),
        sigma=np.array([s for s, _ in soft]),
        upsilon=np.array([u for _, u in soft]),
        adhesion=column("adhesion"),
        slip=column("slip"),
        pair=pair,
    )
    return table, names


def _shapes(world: World, number: dict[str, int], materials: list[str]) -> model.Shapes:
    bodies = world.bodies
    return model.Shapes(
        body=np.array([number[b] for b, _, _, _ in world.spheres], np.int64),
        centre=np.array([c - bodies[b].com for b, c, _, _ in world.spheres], float).reshape(-1, 3),
        radius=np.array([r for _, _, r, _ in world.spheres], float),
        material=np.array([materials.index(m) for _, _, _, m in world.spheres], np.int64),
        plane=np.array([[*n, o] for n, o, _ in world.planes], float).reshape(-1, 4),
        plane_material=np.array([materials.index(m) for _, _, m in world.planes], np.int64),
        apart=_apart(world, number),
        margin=np.array([0.002]),
    )


def _apart(world: World, number: dict[str, int]) -> np.ndarray:
    """Which bodies may touch: all but those that share a joint, and a body and itself."""
    apart = np.ones((len(number), len(number)), np.int64)
    np.fill_diagonal(apart, 0)
    for j in world.joints.values():
        if j.a is not None and j.b is not None:
            a, b = number[j.a], number[j.b]
            apart[a, b] = apart[b, a] = 0
    return apart


def _data(world: World, bodies: list[Body], joints: list[Joint], m: model.Model, contacts: int) -> model.Data:
    nb, nj, acts = len(bodies), len(joints), list(world.actuators.values())
    rows = len(acts) + 3 * contacts
    width = 2 * m.body.path.shape[1]
    state = model.State(
        pos=np.array([b.pos + rotated(b.quat, b.com) for b in bodies], float).reshape(-1, 3),
        quat=np.array([b.quat for b in bodies], float).reshape(-1, 4),
        vel=np.array(
            [np.concatenate([b.vel + np.cross(b.spin, rotated(b.quat, b.com)), b.spin]) for b in bodies], float
        ).reshape(-1, 6),
        wrench=np.zeros((nb, 6)),
        angle=np.zeros(nj),
    )
    return model.Data(
        state=state,
        frame=model.Frames(np.zeros((nb, 3, 3)), np.zeros((nb, 3, 3)), np.zeros((nb, 6))),
        row=model.JointRows(
            np.zeros((nj, 6, 6)),
            np.zeros((nj, 6, 6)),
            np.zeros((nj, 6)),
            np.zeros((nj, 6)),
            np.zeros((nj, 6)),
            np.zeros((nj, 3, 3)),
            np.zeros((nj, 2, 3)),
            np.zeros((nj, 3)),
        ),
        contact=model.Contacts(
            _ints(1),
            np.zeros((contacts, 2), np.int64),
            np.zeros((contacts, 3)),
            np.zeros((contacts, 3)),
            np.zeros(contacts),
            _ints(contacts),
            _ints(contacts),
            np.zeros((contacts, 3)),
            np.zeros((contacts, 3)),
            _ints(1),
            _ints(1),
            _ints(contacts),
            np.zeros((contacts, 3)),
            np.zeros((contacts, 3)),
        ),
        bounded=model.Bounded(
            count=_ints(1),
            kind=_ints(rows),
            of=_ints(rows),
            a=_ints(rows),
            b=_ints(rows),
            ga=np.zeros((rows, 6)),
            gb=np.zeros((rows, 6)),
            rhs=np.zeros(rows),
            sigma=np.zeros(rows),
            low=np.zeros(rows),
            high=np.zeros(rows),
            value=np.zeros(rows),
            state=_ints(rows),
            kept=_ints(len(acts)),
            path=np.zeros((rows, width), np.int64),
            path_length=_ints(rows),
            y=np.zeros((rows, width, 6)),
            z=np.zeros((rows, width, 6)),
            here=np.zeros((len(m.pattern.size), rows), np.int64),
            here_count=_ints(len(m.pattern.size)),
            matrix=np.zeros((rows, rows)),
            chol=np.zeros((rows, rows)),
            work=np.zeros(2 * rows),
            free=_ints(rows),
        ),
        target=model.Targets(
            speed=np.array([a.speed for a in acts], float),
            position=np.array([a.position for a in acts], float),
            gain=np.array([a.gain for a in acts], float),
            low=np.array([a.low for a in acts], float),
            high=np.array([a.high for a in acts], float),
        ),
        factor=ldl.allocate(m.pattern),
        centre=np.zeros((len(m.shape.body), 3)),
        x=np.zeros((len(m.pattern.size), 6)),
        status=_ints(4),
    )


def _ints(n: int) -> np.ndarray:
    return np.zeros(n, np.int64)
