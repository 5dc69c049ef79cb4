"""Solver dispatch: the rows of a step, island by island, each by the solver that was chosen for it."""

from __future__ import annotations

from hilnode.core.jit import kernel
from plant.codes import Bound, Solver
from plant.constraint.actuators import row_speed
from plant.model import Status
from plant.numeric.hash_table import get
from plant.solver.direct import assemble, finish_direct, scale_boxes, solve_direct
from plant.solver.iterative import ALL, CONTACTS, FIXED, descend, finish_sweep, prepare, sweep
from plant.sparse.block_ldl import factorise, solve
from plant.sparse.islands import is_free, pair_key

DIRECT, ITERATIVE, GRADIENT, SPLIT = int(Solver.DIRECT), int(Solver.ITERATIVE), int(Solver.GRADIENT), int(Solver.SPLIT)
CONTACT, TANGENT = int(Bound.CONTACT), int(Bound.TANGENT)
FALLBACKS = int(Status.FALLBACKS)


@kernel
def sort_rows(e):
    """Rows by island. What bodies do that the solve can not change goes to the right-hand side."""
    m, d = e.model, e.data
    g, rows = d.graph, d.bounded
    islands = g.islands[0]
    g.row_first[: islands + 1] = 0
    for k in range(rows.count[0]):
        a, b = rows.a[k], rows.b[k]
        free_a, free_b = is_free(m, d, a), is_free(m, d, b)
        prescribed = row_speed(d.state, -1 if free_a else a, -1 if free_b else b, rows.ga[k], rows.gb[k])
        rows.prescribed_speed[k] = prescribed
        rows.rhs[k] -= prescribed
        if not free_a:
            rows.a[k] = -1
        if not free_b:
            rows.b[k] = -1
        if free_a or free_b:
            g.row_first[g.island[a if free_a else b] + 1] += 1
    for i in range(islands):
        g.row_first[i + 1] += g.row_first[i]
    last_a, last_b, block = -1, -1, -1
    for k in range(rows.count[0]):
        a, b = rows.a[k], rows.b[k]
        if a < 0 and b < 0:
            rows.value[k] = 0.0
            continue
        i = g.island[a if a >= 0 else b]
        rows.by_island[g.row_first[i]] = k
        g.row_first[i] += 1
        rows.block[k] = -1
        if a >= 0 and b >= 0 and g.body_node[a] >= 0:
            if a != last_a or b != last_b:
                last_a, last_b, block = a, b, get(g.key, g.block_of, pair_key(m, a, b))
            rows.block[k] = block
    for i in range(islands, 0, -1):
        g.row_first[i] = g.row_first[i - 1]
    g.row_first[0] = 0


@kernel
def solve_rows(e, rounds):
    """Velocities of all bodies and impulses of all rows; friction boxes are scaled `rounds` times."""
    g = e.data.graph
    for i in range(g.islands[0]):
        solver = g.solver[i]
        if solver == DIRECT:
            _direct(e, i, rounds)
        elif solver == SPLIT:
            _split(e, i)
        else:
            prepare(e, i, False)
            if solver == GRADIENT:
                descend(e, i)
            else:
                sweep(e, i, ALL, e.model.setup.sweeps)
            finish_sweep(e, i)


@kernel
def _direct(e, i, rounds):
    for turn in range(rounds):
        if turn > 0:
            scale_boxes(e, i)
        if not solve_direct(e, i):
            if _give_in(e, i):
                return
            break
    finish_direct(e, i)


@kernel
def _give_in(e, i):
    """No end of pivoting, which is counted. An island without joints is solved by iteration (True: velocities are
    there); in one with joints the impulses found so far, clamped, are applied, and the joints are held exactly.
    """
    d = e.data
    g, rows = d.graph, d.bounded
    d.status[FALLBACKS] += 1
    if g.first[i + 1] - g.first[i] == g.members[i]:
        prepare(e, i, False)
        sweep(e, i, ALL, e.model.setup.sweeps)
        return True
    for r in range(g.row_first[i], g.row_first[i + 1]):
        k = rows.by_island[r]
        rows.value[k] = min(max(rows.value[k], rows.low[k]), rows.high[k])
        rows.state[k] = FIXED
        rows.excess[k] = 0.0  # the factor that projection would use does not have these rows
    assemble(e, i)
    factorise(d.pattern, d.factor, g.first[i], g.first[i + 1])
    solve(d.pattern, d.factor, d.x, g.first[i], g.first[i + 1])
    for r in range(g.row_first[i], g.row_first[i + 1]):
        k = rows.by_island[r]
        rows.state[k] = -1 if rows.value[k] <= rows.low[k] else 1 if rows.value[k] >= rows.high[k] else 0
    return False


@kernel
def _split(e, i):
    """Joints and normals direct with the friction of before, friction by iteration, then direct again with the new
    friction (Nordberg and Servin eq. 32, 33, with a final solve of the first kind)."""
    d = e.data
    g, rows = d.graph, d.bounded
    for stage in range(2):
        for r in range(g.row_first[i], g.row_first[i + 1]):
            k = rows.by_island[r]
            if rows.kind[k] == TANGENT:
                rows.state[k] = FIXED
        if not solve_direct(e, i):
            _give_in(e, i)
        finish_direct(e, i)
        if stage == 0:
            prepare(e, i, True)
            sweep(e, i, CONTACTS, e.model.setup.sweeps)
    for r in range(g.row_first[i], g.row_first[i + 1]):
        k = rows.by_island[r]
        if rows.kind[k] == TANGENT:
            rows.state[k] = 0
