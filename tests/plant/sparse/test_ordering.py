"""The order of elimination and the block factorisation, against dense solves of numpy and symbolic elimination by sets.

Graphs of bodies and constraints are drawn at random, filled with random masses and Jacobians, and solved by the
compiled kernels; the last tests take steps of machines and rebuild their whole systems densely.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import G, compiled

from plant.engine.compile import Engine
from plant.solver.direct import SHARE
from plant.sparse.block_ldl import Factor, factorise, new_factor, solve
from plant.sparse.ordering import Pattern, Sketch, analyse, begin, connect, lay_out, new_pattern, new_sketch
from plant.world.rotations import rotated
from plant.world.world import World

Graph = tuple[list[int], list[tuple[int, int]], list[int]]  # sizes, edges, rows (0 = a body)
RIGID = 1e-10  # compliance of a rigid joint against the inverse masses that it holds


def graph_of(bodies: int, joints: list[tuple[int, int | None, int]], touching: list[tuple[int, int]] = ()) -> Graph:  # type: ignore[assignment]
    """Bodies first, then joints (body, body or ground, rows); pairs of touching bodies are edges of their own."""
    sizes = [6] * bodies + [3 if rows <= 3 else 6 for _, _, rows in joints]
    edges = [(b, bodies + k) for k, (one, other, _) in enumerate(joints) for b in (one, other) if b is not None]
    return sizes, edges + list(touching), [0] * bodies + [rows for _, _, rows in joints]


@st.composite
def graphs(draw: st.DrawFn, extra: int = 0, touching: int = 0) -> Graph:
    """A random tree of bodies, perhaps on the ground; `extra` joints at most make loops, `touching` pairs fill more."""
    bodies = draw(st.integers(1, 7))
    rows = st.integers(1, 6)
    joints: list[tuple[int, int | None, int]] = []
    if draw(st.booleans()):
        joints.append((draw(st.integers(0, bodies - 1)), None, draw(rows)))
    joints += [(b, draw(st.integers(0, b - 1)), draw(rows)) for b in range(1, bodies)]
    others = st.lists(st.integers(0, bodies - 1), min_size=2, max_size=2, unique=True)
    for _ in range(draw(st.integers(0, extra)) if bodies > 1 else 0):
        one, other = draw(others)
        joints.append((one, draw(st.sampled_from([other, None])), draw(rows)))
    pairs = [tuple(draw(others)) for _ in range(draw(st.integers(0, touching)) if bodies > 1 else 0)]
    return graph_of(bodies, joints, pairs)  # type: ignore[arg-type]


def starts(graph: Graph) -> np.ndarray:
    """Where each node begins in the dense matrix."""
    return np.concatenate([[0], np.cumsum(graph[0])])


def random_matrix(graph: Graph, seed: int, compliance: float) -> np.ndarray:
    """Dense saddle-point matrix in the numbering of the graph; rows that pad a constraint are -1 on the diagonal.

    Pairs of touching bodies get a stiff row between them, as free contacts do: g g' over compliance on both bodies.
    """
    sizes, edges, rows = graph
    rng = np.random.default_rng(seed)
    at = starts(graph)
    k = np.zeros((at[-1], at[-1]))
    for n, size in enumerate(sizes):
        block = k[at[n] : at[n + 1], at[n] : at[n + 1]]
        if rows[n]:
            block[:] = -np.diag([compliance] * rows[n] + [1.0] * (size - rows[n]))
        else:
            m = rng.normal(size=(3, 3))
            block[:3, :3] = np.eye(3) * rng.uniform(0.5, 20)
            block[3:, 3:] = m @ m.T + np.eye(3)
    for one, other in edges:
        if rows[one] or rows[other]:
            body, joint = (other, one) if rows[one] else (one, other)
            here = slice(at[joint], at[joint] + rows[joint])
            g = np.linalg.qr(rng.normal(size=(6, 6)))[0][: rows[joint]]
            k[here, at[body] : at[body + 1]] = g
            k[at[body] : at[body + 1], here] = g.T
        else:
            g = np.zeros(at[-1])
            g[at[one] : at[one] + 6], g[at[other] : at[other] + 6] = rng.normal(size=(2, 6))
            k += np.outer(g, g) / 1e-2
    return k


def filled(graph: Graph, k: np.ndarray, pattern: Pattern, order: list[int]) -> Factor:
    """The matrix in the blocks of a pattern."""
    sizes, edges, rows = graph
    at = starts(graph)
    factor = new_factor(len(order), max(1, int(pattern.count[1])))
    touched = {n for edge in edges if not any(rows[n] for n in edge) for n in edge}
    for new, old in enumerate(order):
        size = sizes[old]
        factor.fresh[new] = pattern.fresh[new] if old not in touched else 0
        factor.diagonal[new, :size, :size] = k[at[old] : at[old + 1], at[old] : at[old + 1]]
        for s in range(pattern.first[new], pattern.first[new + 1]):
            other = order[pattern.row[s]]
            factor.above[s, :size, : sizes[other]] = k[at[old] : at[old + 1], at[other] : at[other + 1]]
    return factor


def solved(graph: Graph, k: np.ndarray, right: np.ndarray) -> np.ndarray:
    """K^-1 right by the kernels."""
    pattern, order = analyse(*graph)
    factor, at = filled(graph, k, pattern, order), starts(graph)
    x = np.zeros((len(order), 6))
    for new, old in enumerate(order):
        x[new, : graph[0][old]] = right[at[old] : at[old + 1]]
    factorise(pattern, factor, 0, len(order))
    solve(pattern, factor, x, 0, len(order))
    got = np.zeros(len(k))
    for new, old in enumerate(order):
        got[at[old] : at[old + 1]] = x[new, : graph[0][old]]
    return got


def blocks_of(pattern: Pattern) -> set[tuple[int, int]]:
    """(row, column) of the blocks below the diagonal."""
    return {
        (int(pattern.row[s]), c) for c in range(pattern.count[0]) for s in range(pattern.first[c], pattern.first[c + 1])
    }


def eliminated(graph: Graph, order: list[int]) -> set[tuple[int, int]]:
    """Blocks of L by the definition: neighbours of a node that goes become neighbours of each other."""
    near: dict[int, set[int]] = {n: set() for n in order}
    for a, b in graph[1]:
        near[a].add(b)
        near[b].add(a)
    place, blocks = {old: new for new, old in enumerate(order)}, set()
    for old in order:
        for n in near[old]:
            blocks.add((place[n], place[old]))
            near[n] |= near[old] - {n}
            near[n].discard(old)
    return blocks


@settings(max_examples=60, deadline=None)
@given(graph=graphs(), seed=st.integers(0, 1000))
def test_a_tree_with_rigid_joints_is_as_exact_as_a_dense_solve(graph: Graph, seed: int) -> None:
    """Eliminated from the leaves, every joint finds bodies that can carry it: no digit is lost."""
    k = random_matrix(graph, seed, RIGID)
    right = np.random.default_rng(seed + 1).normal(size=len(k))
    exact = np.linalg.solve(k, right)
    assert solved(graph, k, right) == pytest.approx(exact, rel=0, abs=1e-10 * np.abs(exact).max())


@settings(max_examples=60, deadline=None)
@given(graph=graphs(extra=4, touching=4), seed=st.integers(0, 1000))
def test_loops_and_contacts_against_a_dense_solve(graph: Graph, seed: int) -> None:
    """Joints soft enough that any order will do: what is tested is the bookkeeping of blocks and updates."""
    k = random_matrix(graph, seed, 1e-2)
    right = np.random.default_rng(seed + 1).normal(size=len(k))
    exact = np.linalg.solve(k, right)
    assert solved(graph, k, right) == pytest.approx(exact, rel=0, abs=1e-8 * np.abs(exact).max())


@settings(max_examples=60, deadline=None)
@given(graph=graphs(extra=4, touching=4))
def test_the_pattern_is_what_elimination_by_the_definition_fills(graph: Graph) -> None:
    sizes, edges, rows = graph
    pattern, order = analyse(*graph)
    assert sorted(order) == list(range(len(sizes)))
    assert pattern.size[: len(order)].tolist() == [sizes[n] for n in order]
    assert blocks_of(pattern) == eliminated(graph, order)
    for c in range(len(order)):
        column = pattern.row[pattern.first[c] : pattern.first[c + 1]]
        assert (np.diff(column) > 0).all()
        assert (column > c).all()
    place = {old: new for new, old in enumerate(order)}
    for n in range(len(sizes)):
        before = {place[a if b == n else b] for a, b in edges if n in (a, b)} & set(range(place[n]))
        assert pattern.fresh[place[n]] == (rows[n] == 0 and not before)


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_a_tree_makes_no_fill(graph: Graph) -> None:
    """As many blocks below the diagonal as the graph has edges, wherever it hangs on the ground."""
    assert analyse(*graph)[0].count[1] == len(set(graph[1]))


@settings(max_examples=60, deadline=None)
@given(graph=graphs(extra=4))
def test_a_constraint_goes_after_one_of_its_bodies(graph: Graph) -> None:
    """Else its own pivot would be the regularisation alone."""
    _, edges, rows = graph
    place = {old: new for new, old in enumerate(analyse(*graph)[1])}
    for n in np.flatnonzero(rows):
        assert any(place[a if b == n else b] < place[n] for a, b in edges if n in (a, b))


@pytest.mark.parametrize("rows", [3, 5, 6])
def test_a_long_chain_costs_as_much_per_link_as_a_short_one(rows: int) -> None:
    """Two blocks for a body and its joint, and no updates beyond: linear, as in the articulated-body method."""

    def counts(bodies: int) -> np.ndarray:
        return analyse(*graph_of(bodies, [(0, None, rows)] + [(b, b - 1, rows) for b in range(1, bodies)]))[0].count

    assert (counts(80) - counts(40)).tolist() == [80, 80, 0]


def test_a_ring_is_filled_as_little_as_can_be() -> None:
    """A ring of n nodes needs n - 3 chords to be triangulated, whichever way: 2 n - 3 blocks."""
    for bodies in (3, 10, 40):
        ring = [(b, (b + 1) % bodies, 5) for b in range(bodies)]
        assert analyse(*graph_of(bodies, ring))[0].count[1] == 2 * (2 * bodies) - 3


def sketched(graph: Graph, sketch: Sketch) -> int:
    """The graph in a sketch, as the engine does it for each island."""
    sizes, edges, rows = graph
    n = len(sizes)
    sketch.size[:n], sketch.rows[:n], sketch.ends[:] = sizes, rows, -1
    begin(sketch, n)
    for a, b in edges:
        connect(sketch, a, b)
        sketch.ends[b, int((sketch.ends[b] >= 0).sum())] = a
    return n


def test_islands_stand_one_after_the_other_and_are_solved_alone() -> None:
    """Both islands are parts of one pattern; a factorisation of the second leaves the numbers of the first alone."""
    graphs_of_both = graph_of(3, [(0, None, 5), (1, 0, 3), (2, 1, 6), (2, 0, 1)]), graph_of(2, [(1, 0, 5)])
    sketch, pattern = new_sketch(10), new_pattern(10, 100, 1000)
    ranges, orders = [], []
    for graph in graphs_of_both:
        n = sketched(graph, sketch)
        ranges.append((int(pattern.count[0]), int(pattern.count[0]) + n))
        assert lay_out(sketch, n, pattern) == 0
        orders.append(sketch.order[:n].tolist())
    factor = new_factor(10, 100)
    factor.diagonal[:], factor.above[:], x = 7.0, 7.0, np.full((10, 6), 7.0)
    first, last = ranges[1]
    assert (first, last) == (7, 10)
    k, at = random_matrix(graphs_of_both[1], 3, RIGID), starts(graphs_of_both[1])
    right = np.random.default_rng(4).normal(size=len(k))
    for new, old in enumerate(orders[1], first):
        here = slice(at[old], at[old + 1])
        factor.fresh[new], factor.diagonal[new], x[new] = pattern.fresh[new], k[here, here], right[here]
        for s in range(pattern.first[new], pattern.first[new + 1]):
            other = orders[1][pattern.row[s] - first]
            factor.above[s] = k[here, at[other] : at[other + 1]]
    factorise(pattern, factor, first, last)
    solve(pattern, factor, x, first, last)
    exact = np.linalg.solve(k, right)
    for new, old in enumerate(orders[1], first):
        assert x[new] == pytest.approx(exact[at[old] : at[old + 1]], abs=1e-12)
    assert (x[:first] == 7.0).all()
    assert (factor.diagonal[:first] == 7.0).all()
    assert (factor.above[: pattern.first[first]] == 7.0).all()


@pytest.mark.parametrize("room", [(6, 100, 100), (20, 5, 100), (20, 100, 0)])
def test_a_graph_that_finds_no_room_leaves_the_pattern_as_it_was(room: tuple[int, int, int]) -> None:
    """Four bodies in a ring of joints: eight nodes, eight edges and some fill; then two bodies that fit."""
    ring = graph_of(4, [(b, (b + 1) % 4, 5) for b in range(4)])
    pair = graph_of(2, [(1, 0, 5)])
    sketch, pattern = new_sketch(10), new_pattern(room[0], room[1], room[2])
    assert lay_out(sketch, sketched(ring, sketch), pattern) == 1
    assert pattern.count.tolist() == [0, 0, 0]
    assert lay_out(sketch, sketched(pair, sketch), pattern) == 0
    assert pattern.count.tolist() == [3, 2, 0]


def dense_step(engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """Linear velocities and reactions of one step from a dense copy of K; the engine then takes that step.

    Joint rows are those that the step before has left at the poses of now. Rigid joints of an over-constrained island
    share their load by a compliance that is larger by SHARE.
    """
    m, d, h = engine.content.model, engine.content.data, engine.content.model.setup.h
    nb = len(engine.names)
    momentum = np.zeros(6 * nb)
    mass = np.zeros((6 * nb, 6 * nb))
    for b in range(nb):
        w, v = d.state.quat[b, 0], d.state.quat[b, 1:]
        skew = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
        r = np.eye(3) + 2 * w * skew + 2 * skew @ skew
        block = np.zeros((6, 6))
        block[:3, :3] = np.eye(3) * m.body.mass[b]
        block[3:, 3:] = r @ m.body.inertia[b] @ r.T
        mass[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = block
        weight = np.array([m.setup.gx, m.setup.gy, m.setup.gz, 0, 0, 0]) * m.body.mass[b]
        momentum[6 * b : 6 * b + 6] = block @ d.state.vel[b] + h * weight
    before = d.state.vel.copy()
    soften = SHARE if d.graph.strained[0] else 1.0
    rows, right, sigma = [], [], []
    for j in range(len(m.joint.a)):
        for i in np.flatnonzero(m.joint.axis[j] >= 0):
            row = np.zeros(6 * nb)
            for body, g in ((m.joint.a[j], d.row.ga[j, i]), (m.joint.b[j], d.row.gb[j, i])):
                if body >= 0:
                    row[6 * body : 6 * body + 6] += g
            y, bend = m.joint.upsilon[j, i], 0.5 * h * d.row.g_ddot[j, i]
            right.append(-4 / h * y * d.row.error[j, i] + y * (row @ before.ravel() - bend) - bend)
            rows.append(row)
            sigma.append(m.joint.sigma[j, i] * soften)
    g = np.array(rows)
    k = np.block([[mass, g.T], [g, -np.diag(sigma)]])
    x = np.linalg.solve(k, np.concatenate([momentum, right]))
    assert engine.step() == 0
    return x[: 6 * nb].reshape(nb, 6)[:, :3], -x[6 * nb :] / h


def random_machine(seed: int, loops: int = 2, moving: bool = True) -> Engine:
    """Seven bodies joined at random, with `loops` joints more than a tree has."""
    rng = np.random.default_rng(seed)
    world = World()
    count = 7
    for b in range(count):
        world.body(
            f"b{b}",
            mass=rng.uniform(0.5, 20),
            inertia=rng.uniform(1, 1.9, 3),
            pos=rng.normal(size=3),
            quat=rng.normal(size=4),
            vel=rng.normal(size=3) * moving,
            spin=rng.normal(size=3) * moving,
        )
    kinds = [world.hinge, world.prismatic, world.cylindrical, world.planar, world.point_line]
    for k in range(count + loops):
        a, b = (None, "b0") if k == 0 else (f"b{rng.integers(0, k)}", f"b{k}") if k < count else ("b1", f"b{k - 3}")
        kinds[rng.integers(len(kinds))](f"j{k}", a, b, at=rng.normal(size=3), axis=rng.normal(size=3))
    return compiled(world)


def check_step(engine: Engine, tolerance: float, reactions_too: bool = True) -> None:
    """Three steps of a machine that began at rest, so that no velocity broke a joint."""
    assert engine.step(3) == 0
    m, d = engine.content.model, engine.content.data
    for _ in range(3):
        velocities, reactions = dense_step(engine)
        assert d.state.vel[:, :3] == pytest.approx(velocities, rel=0, abs=tolerance * np.abs(velocities).max())
        if reactions_too:
            got = d.row.force[m.joint.axis >= 0]
            assert got == pytest.approx(reactions, rel=0, abs=100 * tolerance * np.abs(reactions).max())


@pytest.mark.parametrize("seed", range(6))
def test_a_step_of_a_random_tree_solves_its_dense_system(seed: int) -> None:
    """Velocities and reactions of the compiled step."""
    check_step(random_machine(seed, loops=0, moving=False), 1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_so_does_a_tree_in_motion(seed: int) -> None:
    """With velocities that its joints do not allow at first, and with gyroscopic and bending terms after that."""
    engine = random_machine(seed, loops=0)
    assert engine.step() == 0
    velocities, reactions = dense_step(engine)
    m, d = engine.content.model, engine.content.data
    assert d.state.vel[:, :3] == pytest.approx(velocities, rel=0, abs=1e-11)
    assert d.row.force[m.joint.axis >= 0] == pytest.approx(reactions, rel=0, abs=1e-9 * np.abs(reactions).max())


@pytest.mark.parametrize(
    ("loops", "seed"),
    [
        *[(1, s) for s in (0, 1, 2, 3, 6, 8, 12, 13, 14)],
        *[(2, s) for s in (2, 6, 14, 18)],
        (1, 20),  # in these three a part that hangs loosely hides the loop from a count of directions
        (2, 0),
        (2, 3),
    ],
)
def test_loops_that_are_not_redundant_are_as_exact_as_a_dense_solve(loops: int, seed: int) -> None:
    check_step(random_machine(seed, loops, moving=False), 1e-10)


@pytest.mark.parametrize(
    ("loops", "seed"),
    [
        (1, 5),
        (1, 10),
        (2, 1),
        (1, 4),
        (1, 22),
        (2, 22),
    ],
)
def test_over_constrained_machines_move_as_a_dense_solve_says(loops: int, seed: int) -> None:
    """One to five rows too many. How they share the load is a matter of rounding, how the machine moves is not."""
    check_step(random_machine(seed, loops, moving=False), 1e-7, reactions_too=False)


@pytest.mark.parametrize("base", ["hinge", "fixed"])
def test_a_chain_on_the_ground_is_as_exact_as_a_dense_solve(base: str) -> None:
    """Whatever the order of elimination, no pivot may be the regularisation alone."""
    world = World()
    before = None
    for k in range(6):
        world.body(f"b{k}", mass=5, inertia=(0.3, 0.4, 0.5), pos=(0.5 + k, 0, 0), spin=(0, 0.3, 0))
        if k == 0 and base == "fixed":
            world.fixed("j0", None, "b0", at=(0, 0, 0))
        else:
            world.hinge(f"j{k}", before, f"b{k}", at=(k, 0, 0), axis=(0, 1, 0))
        before = f"b{k}"
    engine = compiled(world)
    assert engine.step() == 0
    velocities, _ = dense_step(engine)
    assert engine.content.data.state.vel[:, :3] == pytest.approx(velocities, rel=0, abs=1e-11)


def linkage(loads: int) -> Engine:
    """A four-bar linkage of hinges, three rows too many, turned in space; loads hang from its bars on rods."""
    q = np.array([0.9, 0.3, -0.2, 0.4]) / np.linalg.norm([0.9, 0.3, -0.2, 0.4])

    def at(x: float, z: float) -> np.ndarray:
        return rotated(q, np.array([x, 0, z]))

    world = World(gravity=rotated(q, np.array([0, 0, -G])))
    for name, x, z in (("crank", 0.2, 0.4), ("coupler", 1.0, 0.9), ("rocker", 1.7, 0.5)):
        world.body(name, mass=4, inertia=(0.05, 0.2, 0.2), pos=at(x, z), quat=q)
    for name, a, b, x, z in (
        ("A", None, "crank", 0, 0),
        ("B", "crank", "coupler", 0.4, 0.8),
        ("C", "coupler", "rocker", 1.6, 1.0),
        ("D", None, "rocker", 1.8, 0),
    ):
        world.hinge(name, a, b, at=at(x, z), axis=rotated(q, np.array([0, 1, 0])))
    for k in range(loads):
        x = 0.5 + 0.3 * k
        world.body(f"load {k}", mass=3, inertia=(0.05, 0.2, 0.2), pos=at(x, 0.3), quat=q)
        world.distance(f"rod {k}", ("coupler", "crank")[k % 2], f"load {k}", at_a=at(x, 0.9), at_b=at(x, 0.6))
    return compiled(world)


@pytest.mark.parametrize(
    "loads",
    [0, 1, 2],
)
def test_reactions_of_a_redundant_linkage_are_of_the_size_of_its_weights(loads: int) -> None:
    """It swings gently from rest: no hinge bears more than a few times all the weight there is."""
    engine = linkage(loads)
    weight = (3 * 4 + 3 * loads) * G
    largest = 0.0
    for _ in range(30):
        assert engine.step(10) == 0
        largest = max(largest, float(np.abs(engine.content.data.row.force).max()))
    assert 0.2 * weight < largest < 3 * weight
    assert engine.gap() < 4e-6
