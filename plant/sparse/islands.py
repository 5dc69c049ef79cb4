"""Islands: sets of bodies connected by joints or contacts, and the place of each body and constraint in the factor.

Bodies are joined by joints, couplings, actuators and contacts. The graph is built again only when an edge appears
that the last one did not have, or when something was added or taken away; contacts that end leave a block of zeros
behind until then. Contacts with the ground are no edges: a machine on the ground never builds its graph twice.

Each island is solved on its own (Vortex 2.6, partitions): with a direct solver while its graph is nearly a tree, by
iteration when contacts make so many loops that the factor would fill up.
"""

from __future__ import annotations

from hilnode.core.jit import inline, kernel
from plant.codes import BodyKind, Solver
from plant.numeric.hash_table import clear, get, put
from plant.sparse.ordering import ENDS, begin, connect, lay_out

DYNAMIC = int(BodyKind.DYNAMIC)
DIRECT, ITERATIVE, GRADIENT = int(Solver.DIRECT), int(Solver.ITERATIVE), int(Solver.GRADIENT)
SPLIT, AUTO = int(Solver.SPLIT), int(Solver.AUTO)
LOOPS = 12  # more than these in an island, and AUTO iterates


@inline
def pair_key(m, a, b):
    """One number for two bodies, whatever their order."""
    n = m.body.mass.size
    return a * n + b if a < b else b * n + a


@inline
def is_free(m, d, b):
    """Whether a body moves by the solve."""
    return b >= 0 and m.body.kind[b] == DYNAMIC and d.state.asleep[b] == 0


@kernel
def update_graph(e):
    """Build the graph if it has changed; find the block of every contact between two moving bodies."""
    m, d = e.model, e.data
    g, contact = d.graph, d.contact
    if g.dirty[0] == 0:
        last_a, last_b = -2, -2
        for c in range(contact.count[0]):
            a, b = contact.body[c, 0], contact.body[c, 1]
            if a == last_a and b == last_b:
                continue
            last_a, last_b = a, b
            if is_free(m, d, a) and is_free(m, d, b) and not _is_known(m, g, a, b):
                g.dirty[0] = 1
                break
    if g.dirty[0] != 0:
        _build(e)
        g.dirty[0] = 0


@inline
def _is_known(m, g, a, b):
    """Whether the graph has an edge for two bodies: an island in common, and in a factor a block."""
    if g.island[a] != g.island[b]:
        return False
    return g.body_node[a] < 0 or get(g.key, g.block_of, pair_key(m, a, b)) >= 0


@kernel
def _find(g, b):
    while g.root[b] != b:
        g.root[b] = g.root[g.root[b]]
        b = g.root[b]
    return b


@kernel
def _unite(m, d, a, b):
    if is_free(m, d, a) and is_free(m, d, b):
        p, q = _find(d.graph, a), _find(d.graph, b)
        if p < q:  # the smaller number leads, so that islands come in the order of bodies
            d.graph.root[q] = p
        elif q < p:
            d.graph.root[p] = q


@kernel
def holds(m, d, j):
    """Whether a joint takes part: it is on, and one of its bodies moves."""
    return m.joint.on[j] == 1 and (is_free(m, d, m.joint.a[j]) or is_free(m, d, m.joint.b[j]))


@kernel
def couples(m, d, p):
    """Whether a coupling takes part."""
    if m.coupling.on[p] == 0:
        return False
    for k in range(3):
        j = m.coupling.joint[p, k]
        if j >= 0 and m.joint.on[j] == 0:
            return False
    for k in range(ENDS):
        if is_free(m, d, m.coupling.body[p, k]):
            return True
    return False


@kernel
def _build(e):
    m, d = e.model, e.data
    g = d.graph
    bodies, joints = m.body.mass.size, m.joint.a.size
    g.islands[1] += 1
    for b in range(bodies):
        g.root[b] = b
        g.body_node[b] = -1
        g.island[b] = -1
    _unite_all(e)
    count = 0
    for b in range(bodies):
        if is_free(m, d, b):
            r = _find(g, b)
            if r == b:
                g.island[b] = count
                g.members[count] = 0
                g.loops[count] = 1
                count += 1
            g.island[b] = g.island[r]
            g.members[g.island[b]] += 1
            g.loops[g.island[b]] -= 1
    g.islands[0] = count
    _count_loops(e)
    clear(g.key)
    d.pattern.count[:] = 0
    d.pattern.first[0] = 0
    d.pattern.update_at[0] = 0
    g.islands[2] = 0
    for j in range(joints):
        g.joint_node[j] = -1
    for p in range(m.coupling.on.size):
        g.coupling_node[p] = -1
    _sort_by_island(e)
    for i in range(count):
        g.first[i] = d.pattern.count[0]
        g.solver[i] = _choose(e, i)
        if (g.solver[i] == DIRECT or g.solver[i] == SPLIT) and _lay_out_island(e, i) != 0:
            g.solver[i] = ITERATIVE
        if g.solver[i] == ITERATIVE or g.solver[i] == GRADIENT:
            g.islands[2] += 1
        g.first[i + 1] = d.pattern.count[0]


@kernel
def _unite_all(e):
    m, d = e.model, e.data
    for j in range(m.joint.a.size):
        if holds(m, d, j):
            _unite(m, d, m.joint.a[j], m.joint.b[j])
    for p in range(m.coupling.on.size):
        if couples(m, d, p):
            lead = -1
            for k in range(ENDS):
                b = m.coupling.body[p, k]
                if is_free(m, d, b):
                    if lead >= 0:
                        _unite(m, d, lead, b)
                    lead = b
    for s in range(m.spring.on.size):
        if m.spring.on[s] == 1:
            _unite(m, d, m.spring.a[s], m.spring.b[s])
    for c in range(d.contact.count[0]):
        _unite(m, d, d.contact.body[c, 0], d.contact.body[c, 1])


@kernel
def _count_loops(e):
    """Edges beyond a tree in each island: pairs of bodies in contact, joints between moving bodies."""
    m, d = e.model, e.data
    g = d.graph
    clear(g.key)
    for c in range(d.contact.count[0]):
        a, b = d.contact.body[c, 0], d.contact.body[c, 1]
        if is_free(m, d, a) and is_free(m, d, b):
            key = pair_key(m, a, b)
            if get(g.key, g.block_of, key) < 0:
                put(g.key, g.block_of, key, 1)
                g.loops[g.island[a]] += 1
    for i in range(g.islands[0]):
        g.coupled[i] = 0
    for p in range(m.coupling.on.size):
        i = _island_of(m, d, m.joint.a.size + p)
        if i >= 0:
            g.coupled[i] = 1
    for j in range(m.joint.a.size):
        a, b = m.joint.a[j], m.joint.b[j]
        if m.joint.on[j] == 1 and is_free(m, d, a) and is_free(m, d, b):
            g.loops[g.island[a]] += 1


@kernel
def _choose(e, i):
    g, setup = e.data.graph, e.model.setup
    if g.coupled[i] == 1:  # a coupling holds more bodies than a row of the iteration has
        return DIRECT
    if setup.solver != AUTO:
        return setup.solver
    return ITERATIVE if g.loops[i] > LOOPS else DIRECT


@kernel
def _lay_out_island(e, i):
    """Nodes, edges and pattern of one island; 1 if it is too large for the room that is there."""
    m, d = e.model, e.data
    g, s = d.graph, d.sketch
    bodies, joints = m.body.mass.size, m.joint.a.size
    n, item = 0, g.head[i]
    while item >= 0:
        if n == s.size.size:
            return 1
        g.local[item], g.list[n] = n, item
        s.size[n], s.rows[n] = 6, 0
        if item >= bodies + joints:
            s.rows[n] = 1
        elif item >= bodies:
            s.rows[n] = max(1, m.joint.rows[item - bodies])  # 0 is the mark of a body
        if 0 < s.rows[n] <= 3:
            s.size[n] = 3
        n += 1
        item = g.next[item]
    begin(s, n)
    for k in range(n):
        for q in range(ENDS):
            s.ends[k, q] = -1
            if g.list[k] >= bodies:
                b = end_of(m, g.list[k] - bodies, q)
                if is_free(m, d, b):
                    s.ends[k, q] = g.local[b]
                    connect(s, k, g.local[b])
    _connect_pairs(e, i)
    base = d.pattern.count[0]
    if lay_out(s, n, d.pattern) != 0:
        return 1
    g.strained[i] = 1 if _has_loop(m, g, n) else 0
    _register(e, i, base, n)
    return 0


@kernel
def _has_loop(m, g, n):
    """Whether constraints of the island close a loop, the ground being one of its nodes. Only then can there be
    redundant ones, and a loop that has none does not mind being taken for one that has."""
    bodies, ends, holds_ground, constraints = 0, 0, 0, 0
    for k in range(n):
        c = g.list[k] - m.body.mass.size
        if c < 0:
            bodies += 1
            continue
        constraints += 1
        free = 0
        for q in range(ENDS):
            b = end_of(m, c, q)
            free += 1 if b >= 0 and g.island[b] >= 0 else 0
        ends += free
        if free == 1 or (c >= m.joint.a.size):
            holds_ground = 1
            ends += 1
    return ends - constraints > bodies + holds_ground - 1


@kernel
def end_of(m, c, q):
    """Body `q` of constraint `c` (joints, then couplings), -1 = ground or none."""
    if c >= m.joint.a.size:
        return m.coupling.body[c - m.joint.a.size, q]
    if q > 1:
        return -1
    return m.joint.a[c] if q == 0 else m.joint.b[c]


@kernel
def _island_of(m, d, c):
    joints = m.joint.a.size
    if c < joints:
        if not holds(m, d, c):
            return -1
    elif not couples(m, d, c - joints):
        return -1
    for q in range(ENDS):
        b = end_of(m, c, q)
        if is_free(m, d, b):
            return d.graph.island[b]
    return -1


@kernel
def _sort_by_island(e):
    """Bodies and constraints of each island as a list, bodies first; and its bounded rows, which join two bodies."""
    m, d = e.model, e.data
    g = d.graph
    bodies = m.body.mass.size
    for i in range(g.islands[0]):
        g.head[i] = g.pair_head[i] = -1
    for k in range(m.spring.on.size + d.contact.count[0]):
        a, b = _row_pair(m, d, k)
        if is_free(m, d, a) and is_free(m, d, b):
            g.pair_next[k], g.pair_head[g.island[a]] = g.pair_head[g.island[a]], k
    for c in range(m.joint.a.size + m.coupling.on.size - 1, -1, -1):
        i = _island_of(m, d, c)
        if i >= 0:
            g.next[bodies + c], g.head[i] = g.head[i], bodies + c
    for b in range(bodies - 1, -1, -1):
        i = g.island[b]
        if i >= 0:
            g.next[b], g.head[i] = g.head[i], b


@kernel
def _connect_pairs(e, i):
    m, d = e.model, e.data
    k = d.graph.pair_head[i]
    while k >= 0:
        a, b = _row_pair(m, d, k)
        connect(d.sketch, d.graph.local[a], d.graph.local[b])
        k = d.graph.pair_next[k]


@kernel
def _row_pair(m, d, k):
    """The two bodies of spring or contact `k`, counted in that order."""
    if k < m.spring.on.size:
        if m.spring.on[k] == 0:
            return -1, -1
        return m.spring.a[k], m.spring.b[k]
    k -= m.spring.on.size
    return d.contact.body[k, 0], d.contact.body[k, 1]


@kernel
def _register(e, i, base, n):
    """Nodes of bodies and constraints, blocks of constraints and of pairs of bodies."""
    m, d = e.model, e.data
    g, s, p = d.graph, d.sketch, d.pattern
    bodies, joints = m.body.mass.size, m.joint.a.size
    for k in range(n):
        what, node = g.list[k], base + s.place[k]
        g.owner[node] = what
        if what < bodies:
            g.body_node[what] = node
        elif what < bodies + joints:
            g.joint_node[what - bodies] = node
        else:
            g.coupling_node[what - bodies - joints] = node
    for k in range(n):
        c = g.list[k] - bodies
        for q in range(ENDS):
            if c < 0 or s.ends[k, q] < 0:
                if c >= 0:
                    g.block[c, q] = -1
                continue
            mine, other = base + s.place[k], base + s.place[s.ends[k, q]]
            g.block[c, q] = _block(p, mine, other)
            g.over[c, q] = 1 if mine > other else 0
    for node in range(base, base + n):
        a = g.owner[node]
        if a < bodies:
            for t in range(p.first[node], p.first[node + 1]):
                b = g.owner[p.row[t]]
                if b < bodies:
                    put(g.key, g.block_of, pair_key(m, a, b), t)


@kernel
def _block(p, a, b):
    low, high = min(a, b), max(a, b)
    for t in range(p.first[low], p.first[low + 1]):
        if p.row[t] == high:
            return t
    return -1
