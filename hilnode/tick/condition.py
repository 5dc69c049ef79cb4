"""Conditioning: clamp, rate limit, first-order low pass, for plant inputs and device commands alike."""

from __future__ import annotations

from hilnode.core.jit import inline
from hilnode.tick.layout import CLAMPED, L_FLAGS


@inline
def condition(ch, i, x, live):
    """Signal `i` given the raw value `x` in its own unit; flags CLAMPED when a range or rate limit bit.

    The low pass is y += alpha (x - y) with alpha = 1 - exp(-2 pi f dt): exact for a first-order lag with a held input.
    """
    y = min(max(x, ch.low[i]), ch.high[i])
    limited = y != x
    if ch.primed[i] == 0:
        ch.primed[i] = 1
    else:
        last = ch.last[i]
        if ch.alpha[i] < 1.0:
            y = last + ch.alpha[i] * (y - last)
        if abs(y - last) > ch.slew[i]:
            y = last + ch.slew[i] if y > last else last - ch.slew[i]
            limited = True
    ch.last[i] = y
    if limited:
        live.i[L_FLAGS] |= CLAMPED
    return y


@inline
def prime(ch, i, y):
    """Let the next change of signal `i` start from `y`."""
    ch.last[i] = y
    ch.primed[i] = 1
