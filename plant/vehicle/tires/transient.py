"""Transient slip: the tread deflects over a relaxation length before it pushes, so that a wheel may stand still.

    u' = -vs - T / sigma u,   slip of the tread = u / sigma       Pacejka and Besselink 1997; Pacejka 2012 chapter 7

u is the stretch of the tread along (and, alike, across), vs the speed of the tread over the ground, sigma the
relaxation length, T the speed of travel. At speed this is a lag over the way sigma with the slip -vs / T as its end; at
rest it is a spring that keeps what it has: a parked machine does not creep. The law makes a force of the slip of the
tread.

    T     = max(|travel|, |vs| / MOST): the slip is at most MOST, also of a wheel that spins on the spot
    bound the tread of a sliding wheel is not stretched beyond the slip at which it slides, unless the slip is really
          that large: |slip| <= max(1, |vs| / max(T, SLOW)) in units of the law's peaks. Without it a locked wheel that
          comes to rest would first have to run back its whole stretch. (The bound is ours, to the same end as theirs.)
    damping slip of the tread - k vs / sigma, faded out up to `low_speed` by (1 + cos) / 2     Pacejka 2012 section 8.6

Taken implicitly in u, u+ = (u - h vs) / (1 + h T / sigma), so any speed is stable; against the masses it is a
symplectic Euler step, stable up to a frequency of 2 / h (see `Tire.longest_step`).

The same kind of memory holds a wheel against rolling resistance and against turning about the normal: Dahl's friction,
x' = r - |r| x / most.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel

MOST = 1.5  # largest slip
SLOW = 0.3  # [m/s] below it a slip counts against this instead of the travel, for the bound alone
WOUND = 0.02  # [rad] rolling resistance is fully there after this turn
TWISTED = 0.1  # [rad] and friction about the normal after this one
DAMPED = 0.05  # [s] damping of both over their stiffness, of a wheel that stands


@kernel
def stretch_tread(tires, w, peak_x, peak_y, travel, vx, vy, h):
    """Stretch the tread over a step; slip along and across for the law, and the speed T of travel [m/s].

    `travel` is the speed of the wheel's middle along, (vx, vy) that of the tread over the ground [m/s].
    """
    sx, sy = tires.relax[w, 0], tires.relax[w, 1]
    sliding = math.sqrt(vx * vx + vy * vy)
    speed = max(abs(travel), sliding / MOST)
    u = (tires.stretch[w, 0] - h * vx) / (1.0 + h * speed / sx)
    v = (tires.stretch[w, 1] - h * vy) / (1.0 + h * speed / sy)
    px, py = 1.0 / (sx * peak_x), 1.0 / (sy * peak_y)
    size = math.sqrt(u * px * u * px + v * py * v * py)
    a, b = vx / peak_x, vy / peak_y
    bound = max(1.0, math.sqrt(a * a + b * b) / max(speed, SLOW))
    if size > bound:
        u, v = u * bound / size, v * bound / size
    tires.stretch[w, 0], tires.stretch[w, 1] = u, v
    damp = 0.0
    if speed < tires.low_speed[w]:
        damp = tires.low_damping[w] * 0.5 * (1.0 + math.cos(math.pi * speed / tires.low_speed[w]))
    return (u - damp * vx) / sx, (v - damp * vy) / sy, speed


@inline
def wound(x, rate, most, leak, damp, h):
    """Dahl's friction over a step: the new turn, and the share of the full moment, -1 .. 1, that it holds with."""
    x = (x + h * rate) / (1.0 + h * (abs(rate) / most + leak))
    return x, min(max((x + damp * rate) / most, -1.0), 1.0)
