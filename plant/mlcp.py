"""A dense mixed linear complementarity problem by principal pivoting (Vortex eq. 21; Murty 1974; Judice and
Pires 1994).

    find low <= x <= high with w = A x - b:    x at low: w >= 0,   x at high: w <= 0,   x between: w = 0

Each row is free or at one of its bounds. Solve for the free ones, see who breaks the rules, change all of them
at once (block pivoting) while that lowers their number, else the first one only (Murty's rule, which can not
cycle for a positive definite A). Started from the last step's states, one or two rounds are the rule.
"""

from __future__ import annotations

import math

from hilnode.jit import kernel

TOLERANCE = 1e-9  # relative to the largest impulse and the largest |b|
FORGET = 30  # turns after which block pivoting is given another chance
PATIENCE = 3  # block pivots in a row that do not lower the number of culprits


@kernel
def factor_solve(a, free, n, u, x):
    """x = A_ff^-1 x for the `n` rows listed in `free`, by L D L' with rows of L' in `u`.

    False if not positive definite.
    """
    for i in range(n):
        row = a[free[i]]
        for j in range(i, n):
            u[i, j] = row[free[j]]
    for k in range(n):
        d = u[k, k]
        if not d > 0.0:
            return False
        d = 1.0 / d
        for i in range(k + 1, n):
            f = u[k, i] * d
            for j in range(i, n):
                u[i, j] -= f * u[k, j]
    for k in range(n):
        v = x[k] / u[k, k]
        for j in range(k + 1, n):
            x[j] -= u[k, j] * v
        x[k] = v
    for k in range(n - 1, -1, -1):
        s = 0.0
        for j in range(k + 1, n):
            s += u[k, j] * x[j]
        x[k] -= s / u[k, k]
    return True


@kernel
def solve_mlcp(a, b, low, high, n, x, state, chol, work, free, most):
    """Rows 0 .. n - 1; `x` and `state` (0 free, -1 at low, 1 at high) are found, starting from `state`.

    Returns the pivots used, or -1 if the limit was reached or a block was singular.
    """
    fewest, patience = n + 1, PATIENCE
    scale = 1e-30
    for i in range(n):
        scale = max(scale, abs(b[i]))
        if math.isinf(low[i] if state[i] < 0 else high[i]):
            state[i] = 0  # nobody can stand at a bound that is not there
    for turn in range(most):
        m = 0
        for i in range(n):
            if state[i] == 0:
                free[m] = i
                m += 1
            else:
                x[i] = low[i] if state[i] < 0 else high[i]
        for p in range(m):
            work[p] = b[free[p]]
        for j in range(n):
            if state[j] != 0 and x[j] != 0.0:
                for p in range(m):
                    work[p] -= a[j, free[p]] * x[j]
        if not factor_solve(a, free, m, chol, work):
            return -1
        for p in range(m):
            x[free[p]] = work[p]
        largest = 1e-30
        for i in range(n):
            largest = max(largest, abs(x[i]))
        culprits = _judge(a, b, low, high, n, x, state, scale, largest, work, False)
        if culprits == 0:
            return turn
        if turn % FORGET == FORGET - 1:  # the last step's states may have looked better than they were
            fewest, patience = n + 1, PATIENCE
        if culprits < fewest:
            fewest, patience = culprits, PATIENCE
        else:
            patience -= 1
        _judge(a, b, low, high, n, x, state, scale, largest, work, True) if patience > 0 else _change_first(
            a, b, low, high, n, x, state, scale, largest
        )
    return -1


@kernel
def _verdict(a, b, low, high, n, x, state, scale, largest, i):
    """The state row `i` ought to have."""
    if state[i] == 0:
        slack = TOLERANCE * largest
        if x[i] < low[i] - slack:
            return -1
        if x[i] > high[i] + slack:
            return 1
        return 0
    w = -b[i]
    for j in range(n):
        w += a[i, j] * x[j]
    if state[i] < 0 and w < -TOLERANCE * scale and low[i] < high[i]:
        return 0
    if state[i] > 0 and w > TOLERANCE * scale and low[i] < high[i]:
        return 0
    return state[i]


@kernel
def _judge(a, b, low, high, n, x, state, scale, largest, work, change):
    """Number of rows that break the rules; with `change`, all of them are put right at once."""
    count = 0
    for i in range(n):
        ought = _verdict(a, b, low, high, n, x, state, scale, largest, i)
        if ought != state[i]:
            count += 1
        work[i] = ought
    if change:
        for i in range(n):
            state[i] = int(work[i])
    return count


@kernel
def _change_first(a, b, low, high, n, x, state, scale, largest):
    for i in range(n):
        ought = _verdict(a, b, low, high, n, x, state, scale, largest, i)
        if ought != state[i]:
            state[i] = ought
            return


@kernel
def iterate(a, b, low, high, n, x, state, sweeps):
    """Projected Gauss-Seidel from `x`: never exact, never lost. States are set from where the values end."""
    for i in range(n):
        x[i] = min(max(x[i], low[i]), high[i]) if math.isfinite(x[i]) else min(max(0.0, low[i]), high[i])
    for _ in range(sweeps):
        for i in range(n):
            s = b[i]
            for j in range(n):
                s -= a[i, j] * x[j]
            x[i] = min(max(x[i] + s / a[i, i], low[i]), high[i])
    for i in range(n):
        state[i] = -1 if x[i] <= low[i] else 1 if x[i] >= high[i] else 0
