"""Normal force of a tire: a spring and damper that never pulls (Luaces 6.1), optionally stiffening with deflection.

    F = k d + k2 d^2 + c d'   if that is positive, else 0

d is the deflection, positive in contact. With k2 the tire grows stiffer with its load, as a thick-walled one does.
The radius that the wheel rolls on lies between the free and the loaded one, R - d / 3 (Pacejka 2012 section 8.3.1, for
a tire whose belt hardly stretches).
"""

from __future__ import annotations

from hilnode.core.jit import inline

ROLLS = 1.0 / 3.0  # share of the deflection that is taken off the rolling radius


@inline
def normal_load(tires, w, depth, rate):
    """Force of the ground [N] at the deflection `depth` [m] that grows by `rate` [m/s]."""
    if not depth > 0.0:
        return 0.0
    f = (tires.stiffness[w] + tires.stiffening[w] * depth) * depth + tires.damping[w] * rate
    return max(f, 0.0)
