"""The complementarity solver against enumeration of all states and against bounded least squares.

The source is run as plain Python here: what is tested is the method, and the compiled form of it is what every
contact test runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from plant import mlcp

HELPERS = ("factor_solve", "_verdict", "_judge", "_change_first")


@contextmanager
def plain_python() -> Iterator[None]:
    """Every function of the module by its Python source; only as long as no kernel is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        for name in HELPERS:
            patch.setattr(mlcp, name, getattr(mlcp, name).py_func)
        yield


def solve(
    a: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, state: np.ndarray | None = None, most: int = 500
) -> tuple[int, np.ndarray, np.ndarray]:
    n = len(b)
    x = np.zeros(n)
    state = np.zeros(n, np.int64) if state is None else state.copy()
    scratch = np.zeros((n, n)), np.zeros(2 * n), np.zeros(n, np.int64)
    with plain_python():
        used = mlcp.solve_mlcp.py_func(a, b, low, high, n, x, state, *scratch, most)
    return used, x, state


def random_problem(seed: int, n: int, condition: float = 1e2) -> tuple[np.ndarray, ...]:
    """Positive definite, with a mix of free rows, one-sided and two-sided bounds."""
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    a = q @ np.diag(np.geomspace(1, condition, n)) @ q.T
    a = (a + a.T) / 2
    kind = rng.integers(0, 4, n)
    low = np.where(kind == 0, -np.inf, np.where(kind == 1, 0.0, -rng.uniform(0, 0.1, n)))
    high = np.where(kind == 3, rng.uniform(0, 0.1, n), np.where(kind == 2, 0.05, np.inf))
    return a, rng.normal(size=n), low, high


def assert_solution(a: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray, x: np.ndarray) -> None:
    """The rules themselves."""
    w = a @ x - b
    slack = 1e-7 * max(1.0, float(np.abs(b).max()))
    assert (x >= low - slack).all()
    assert (x <= high + slack).all()
    inside = (x > low + slack) & (x < high - slack)
    assert np.abs(w[inside]).max(initial=0) < slack
    assert (w[x <= low + slack] >= -slack).all() or (low == high).any()
    assert (w[(x >= high - slack) & (low < high - 2 * slack)] <= slack).all()


def enumerated(a: np.ndarray, b: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Try every combination of states; a positive definite problem has one solution."""
    choices = [
        [0] + ([-1] if np.isfinite(lo) else []) + ([1] if np.isfinite(hi) else [])
        for lo, hi in zip(low, high, strict=True)
    ]
    for states in product(*choices):
        s = np.array(states)
        x = np.where(s < 0, low, np.where(s > 0, high, 0.0))
        f = s == 0
        x[f] = np.linalg.solve(a[np.ix_(f, f)], b[f] - a[np.ix_(f, ~f)] @ x[~f])
        w = a @ x - b
        if (
            (x >= low - 1e-9).all()
            and (x <= high + 1e-9).all()
            and (w[s < 0] >= -1e-9).all()
            and (w[s > 0] <= 1e-9).all()
        ):
            return x
    raise AssertionError("no combination of states solves it")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
def test_against_every_combination_of_states(seed: int, n: int) -> None:
    problem = random_problem(seed, n)
    used, x, _ = solve(*problem)
    assert used >= 0
    assert x == pytest.approx(enumerated(*problem), abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(7, 24))
def test_against_bounded_least_squares(seed: int, n: int) -> None:
    """min x' A x / 2 - b' x within bounds = min |L' x - L^-1 b|^2."""
    a, b, low, high = random_problem(seed, n)
    used, x, _ = solve(a, b, low, high)
    assert used >= 0
    assert_solution(a, b, low, high, x)
    chol = np.linalg.cholesky(a)
    reference = lsq_linear(chol.T, np.linalg.solve(chol, b), (low, high), method="bvls", tol=1e-14).x
    assert x == pytest.approx(reference, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 15))
def test_any_starting_state_leads_to_the_same_solution(seed: int, n: int) -> None:
    """A warm start is a hint, not a command; only bounds that are finite can be started from."""
    a, b, low, high = random_problem(seed, n)
    rng = np.random.default_rng(seed + 1)
    start = rng.integers(-1, 2, n)
    start[(start < 0) & ~np.isfinite(low)] = 0
    start[(start > 0) & ~np.isfinite(high)] = 0
    cold, warm = solve(a, b, low, high), solve(a, b, low, high, start)
    assert warm[0] >= 0
    assert warm[1] == pytest.approx(cold[1], abs=1e-6)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 15))
def test_started_from_the_solution_it_is_done_at_once(seed: int, n: int) -> None:
    a, b, low, high = random_problem(seed, n)
    state = solve(a, b, low, high)[2]
    assert solve(a, b, low, high, state)[0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_ill_conditioned_problems_as_redundant_contacts_give_them(seed: int) -> None:
    """Twelve rows of rank four with a small regularisation, all one-sided."""
    rng = np.random.default_rng(seed)
    j = rng.normal(size=(12, 4))
    a = j @ j.T + 1e-8 * np.eye(12)
    b = rng.normal(size=12)
    low, high = np.zeros(12), np.full(12, np.inf)
    used, x, _ = solve(a, b, low, high)
    assert used >= 0
    w = a @ x - b
    assert (x >= -1e-6).all()
    assert (w >= -1e-6).all()
    assert np.abs(x * w).max() < 1e-5 * max(1, np.abs(x).max())


def test_murtys_hard_case_needs_patience_but_ends() -> None:
    """Murty's 1978 example: A lower triangular with ones and twos, made symmetric as M M'; the count of pivots is
    bounded.
    """
    n = 8
    m = np.tril(2 * np.ones((n, n)), -1) + np.eye(n)
    a = m @ m.T
    b = np.array([2.0 ** (n - k) for k in range(n)])
    low, high = np.zeros(n), np.full(n, np.inf)
    used, x, _ = solve(a, b, low, high)
    assert used >= 0
    assert_solution(a, b, low, high, x)


def test_no_pivots_left_is_said() -> None:
    problem = random_problem(3, 12)
    assert solve(*problem, most=1)[0] == -1


def test_an_indefinite_matrix_is_said() -> None:
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    bounds = np.full(2, np.inf)
    assert solve(a, np.ones(2), -bounds, bounds)[0] == -1


def test_a_row_with_equal_bounds_stays_there() -> None:
    a = np.diag([2.0, 3.0])
    used, x, _ = solve(a, np.array([4.0, 3.0]), np.array([0.5, -10.0]), np.array([0.5, 10.0]))
    assert used >= 0
    assert x == pytest.approx([0.5, 1.0])


def test_small_impulses_are_as_exact_as_large_ones() -> None:
    """The same problem a billion times smaller."""
    a, b, low, high = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, -1.0]), np.zeros(2), np.full(2, np.inf)
    assert solve(a, b, low, high)[1] == pytest.approx([0.5, 0.0])
    assert solve(a, b * 1e-9, low, high)[1] * 1e9 == pytest.approx([0.5, 0.0])


def test_a_state_at_an_infinite_bound_is_put_right() -> None:
    a, b, bounds = np.diag([2.0, 4.0]), np.array([1.0, 1.0]), np.full(2, np.inf)
    with np.errstate(all="ignore"):
        used, x, _ = solve(a, b, -bounds, bounds, np.array([-1, 0]))
    assert used >= 0
    assert x == pytest.approx([0.5, 0.25])
