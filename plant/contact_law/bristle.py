"""Force of a smooth contact, normal and tangential (bristle friction), with its derivatives.

Tangential forces over the stretch s (how far the first body's point has gone along the surface since it stuck, a vector
of the tangent plane), the slip v, and the load L (normal force without adhesion):

    bristles     F = k F_stic - (1 - k) mu_d L v / |v| - c_v v,     k = exp(-v^2 / v_s^2)       Luaces eq. 3.6 - 3.10
    (HUNT_CROSSLEY, LANKARANI_NIKRAVESH, KELVIN_VOIGT)
                 F_stic = -w, w = k_b s + c_b v, no longer than mu_s L                          eq. 3.11 - 3.14
                 beyond that the stretch is cut until k_b s + c_b v is mu_s L again, but not turned round;
                 with a `strain` (eta) it becomes strain * mu_s L / k_b along w                 eq. 3.15
    SMC, WANG    F = -w, w = k_t s + c_t v, no longer than mu_d L, less c_v v                    Koerner eq. 2.16, 2.18;
                 beyond that SMC cuts the stretch to mu_d L / k_t along w,                      Wang eq. 11, 17 - 20
                 WANG lets it creep: c_t ds/dt = -F - k_t s                                     Wang eq. 21 - 23
                 SMC: k_t = shear stiffness times the root of the depth, c_t = 2 z sqrt(5 k_t m / 6)

Where the user gives none: v_s = N mu_d (L / m) h, k_b = m / (N h)^2, c_b = 2 sqrt(k_b m) with N = 5 steps, so that
bristles stop a sliding mass in N steps (Luaces 3.3.1, with L / m in place of gravity).

Against the source: the damper of a bristle acts on the slip as a vector. Eq. 3.12 damps the length of the stretch
alone, which is the same on a line, but in the plane leaves swings across the stretch undamped and the force undefined
at s = 0. A bristle that gives way does so along w, where eq. 3.14 and 3.15 take s and v: the same while sliding,
continuous at the limit, and no bristle is turned over when the load drops at rest. What is left of the stretch then:
by eq. 3.15 the whole of it, at any speed. A body that slides, slows down and turns round is then pushed on by its own
friction, until it has gone back by twice the stretch. Cut to what the damper leaves of the limit, bristles lie flat
while a body slides, and rise again with the way that it goes; the force while it slides on is the same. Eq. 3.18
prints s for kappa, and eq. 3.21, 3.22 leave out most of the derivative; here it is whole, with the change of the load.

K = -dF/dx and C = -dF/dv are symmetric while a contact sticks and is at rest (of SMC only C, and K within the tangent
plane: its shear stiffness follows the depth). The load makes them unsymmetric when sliding (friction follows the
normal force, not the other way round), and so does the change of kappa in C.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.contact_law.normal_force import FIVE_SIXTHS, SHALLOW, SMC, WANG, normal

STEPS = 5.0  # N: steps in which bristles stop a mass
CREEP = 1e-6  # [m/s] least stick speed: that of a contact with hardly any load
LIGHTEST = 1e-12  # [kg]


@inline
def add_outer(m, w, ax, ay, az, bx, by, bz):
    """m += w a b'."""
    ax, ay, az = w * ax, w * ay, w * az
    m[0, 0], m[0, 1], m[0, 2] = m[0, 0] + ax * bx, m[0, 1] + ax * by, m[0, 2] + ax * bz
    m[1, 0], m[1, 1], m[1, 2] = m[1, 0] + ay * bx, m[1, 1] + ay * by, m[1, 2] + ay * bz
    m[2, 0], m[2, 1], m[2, 2] = m[2, 0] + az * bx, m[2, 1] + az * by, m[2, 2] + az * bz


@inline
def _set_plane(m, along, across, nx, ny, nz):
    """m = along n n' + across (1 - n n')."""
    w = along - across
    m[0, 0], m[1, 1], m[2, 2] = across + w * nx * nx, across + w * ny * ny, across + w * nz * nz
    m[0, 1] = m[1, 0] = w * nx * ny
    m[0, 2] = m[2, 0] = w * nx * nz
    m[1, 2] = m[2, 1] = w * ny * nz


@inline
def _flat(nx, ny, nz, x, y, z):
    """The part of a vector in the tangent plane."""
    s = nx * x + ny * y + nz * z
    return x - s * nx, y - s * ny, z - s * nz


@inline
def _limited(k, c, most, sx, sy, sz, vx, vy, vz):
    """-(k s + c v), no longer than `most`: its direction (unit, of k s + c v), its length, the length it would have."""
    wx, wy, wz = k * sx + c * vx, k * sy + c * vy, k * sz + c * vz
    size = math.sqrt(wx * wx + wy * wy + wz * wz)
    if size > 0.0:
        wx, wy, wz = wx / size, wy / size, wz / size
    return wx, wy, wz, min(size, most), size


@kernel
def contact_law(p, i, nx, ny, nz, depth, rate, first_rate, sx, sy, sz, ox, oy, oz, vx, vy, vz, mass, h, out):
    """Force on the first body, K = -dF/dx, C = -dF/dv and the stretch to keep, into `out` (a `Response`).

    n [3] unit, from the second body to the first; `depth` [m], `rate` = d depth / dt [m/s], `first_rate` the speed at
    which the contact began; s [3] stretch so far, o [3] that at the beginning of the step, and v [3] velocity of the
    first body's point against the second's (their normal parts are left out); `mass` [kg] effective; `h` [s] the step.
    x moves depth by -n.x and s by its tangential part; v moves the rate by -n.v. Returns the load: the normal force
    without adhesion.
    """
    force, kn, cn = normal(p, i, depth, rate, first_rate, mass)
    _set_plane(out.stiffness, kn, 0.0, nx, ny, nz)
    _set_plane(out.damping, cn, 0.0, nx, ny, nz)
    out.force[0], out.force[1], out.force[2] = force * nx, force * ny, force * nz
    out.stretch[0] = out.stretch[1] = out.stretch[2] = 0.0
    if not depth > 0.0:
        return 0.0
    load, mass = force + p.adhesion[i], max(mass, LIGHTEST)
    sx, sy, sz = _flat(nx, ny, nz, sx, sy, sz)
    vx, vy, vz = _flat(nx, ny, nz, vx, vy, vz)
    if p.law[i] == SMC or p.law[i] == WANG:
        ox, oy, oz = _flat(nx, ny, nz, ox, oy, oz)
        _shear(p, i, nx, ny, nz, depth, load, kn, cn, sx, sy, sz, ox, oy, oz, vx, vy, vz, mass, h, out)
    else:
        _bristles(p, i, nx, ny, nz, load, kn, cn, sx, sy, sz, vx, vy, vz, mass, h, out)
    viscous = p.viscous[i]
    if viscous > 0.0:
        out.force[0], out.force[1], out.force[2] = (
            out.force[0] - viscous * vx,
            out.force[1] - viscous * vy,
            out.force[2] - viscous * vz,
        )
        _add_plane(out.damping, viscous, nx, ny, nz)
    return load


@inline
def _add_plane(m, w, nx, ny, nz):
    """m += w (1 - n n')."""
    m[0, 0], m[1, 1], m[2, 2] = m[0, 0] + w, m[1, 1] + w, m[2, 2] + w
    add_outer(m, -w, nx, ny, nz, nx, ny, nz)


@inline
def _add_force(out, x, y, z):
    out.force[0], out.force[1], out.force[2] = out.force[0] + x, out.force[1] + y, out.force[2] + z


@inline
def _add_load(out, kn, cn, nx, ny, nz, x, y, z):
    """Derivatives of a force that changes by (x, y, z) with the load."""
    add_outer(out.stiffness, kn, x, y, z, nx, ny, nz)
    add_outer(out.damping, cn, x, y, z, nx, ny, nz)


@kernel
def _shear(p, i, nx, ny, nz, depth, load, kn, cn, sx, sy, sz, ox, oy, oz, vx, vy, vz, mass, h, out):
    """Spring and damper under Coulomb's cap: SMC and WANG."""
    k, c, slope_k, slope_c = p.shear_stiffness[i], p.shear_damping[i], 0.0, 0.0
    hertz = p.law[i] == SMC
    if hertz:
        near = max(depth, SHALLOW)
        k *= math.sqrt(near)
        c = FIVE_SIXTHS * p.damping_ratio[i] * math.sqrt(k * mass)
        if depth > SHALLOW:
            slope_k, slope_c = 0.5 * k / near, 0.25 * c / near
    most = p.friction[i] * load
    dx, dy, dz, size, wish = _limited(k, c, most, sx, sy, sz, vx, vy, vz)
    _add_force(out, -size * dx, -size * dy, -size * dz)
    ux, uy, uz = slope_k * sx + slope_c * vx, slope_k * sy + slope_c * vy, slope_k * sz + slope_c * vz
    if wish <= most:
        _add_plane(out.stiffness, k, nx, ny, nz)
        _add_plane(out.damping, c, nx, ny, nz)
        add_outer(out.stiffness, -1.0, ux, uy, uz, nx, ny, nz)
        out.stretch[0], out.stretch[1], out.stretch[2] = sx, sy, sz
        return
    part = most / wish
    _add_plane(out.stiffness, part * k, nx, ny, nz)
    _add_plane(out.damping, part * c, nx, ny, nz)
    add_outer(out.stiffness, -part * k, dx, dy, dz, dx, dy, dz)
    add_outer(out.damping, -part * c, dx, dy, dz, dx, dy, dz)
    s = dx * ux + dy * uy + dz * uz
    add_outer(out.stiffness, -part, ux - s * dx, uy - s * dy, uz - s * dz, nx, ny, nz)
    mu = p.friction[i]
    _add_load(out, kn, cn, nx, ny, nz, -mu * dx, -mu * dy, -mu * dz)
    if hertz or c == 0.0:
        cut = most / k
        out.stretch[0], out.stretch[1], out.stretch[2] = cut * dx, cut * dy, cut * dz
    else:  # implicit in the step
        w = 1.0 / (k + c / h)
        out.stretch[0] = w * (c / h * ox + most * dx)
        out.stretch[1] = w * (c / h * oy + most * dy)
        out.stretch[2] = w * (c / h * oz + most * dz)


@inline
def bristle_constants(p, i, load, mass, h):
    """Stiffness, damping and stick speed of the bristles, and how the stick speed grows with the load."""
    k, c, stick, slope = p.bristle_stiffness[i], p.bristle_damping[i], p.stick_speed[i], 0.0
    if k <= 0.0:
        k = mass / (STEPS * STEPS * h * h)
    if c < 0.0:
        c = 2.0 * math.sqrt(k * mass)
    if stick <= 0.0:
        slope = STEPS * p.friction[i] * h / mass
        stick = slope * load
        if stick < CREEP:
            stick, slope = CREEP, 0.0
    return k, c, stick, slope


@kernel
def _bristles(p, i, nx, ny, nz, load, kn, cn, sx, sy, sz, vx, vy, vz, mass, h, out):
    """Coulomb's friction with stiction by bristles."""
    k, c, stick, slope = bristle_constants(p, i, load, mass, h)
    most, mu = p.stiction[i] * load, p.friction[i]
    dx, dy, dz, size, wish = _limited(k, c, most, sx, sy, sz, vx, vy, vz)
    slip = math.sqrt(vx * vx + vy * vy + vz * vz)
    q = min((slip / stick) * (slip / stick), 700.0)
    sticks = math.exp(-q)
    slides = -math.expm1(-q)
    ex, ey, ez = vx, vy, vz
    if slip > 0.0:
        ex, ey, ez = vx / slip, vy / slip, vz / slip
    fx, fy, fz = -size * dx, -size * dy, -size * dz  # of the bristles
    a = slides * mu * load
    _add_force(out, sticks * fx - a * ex, sticks * fy - a * ey, sticks * fz - a * ez)
    # the bristles' own derivatives, and what the load does to them
    part = sticks if wish <= most else sticks * most / wish
    _add_plane(out.stiffness, part * k, nx, ny, nz)
    across, along = part * c, 0.0
    lx, ly, lz = -slides * mu * ex, -slides * mu * ey, -slides * mu * ez
    if wish <= most:
        out.stretch[0], out.stretch[1], out.stretch[2] = sx, sy, sz
    else:
        add_outer(out.stiffness, -part * k, dx, dy, dz, dx, dy, dz)
        add_outer(out.damping, -part * c, dx, dy, dz, dx, dy, dz)
        w = sticks * p.stiction[i]
        lx, ly, lz = lx - w * dx, ly - w * dy, lz - w * dz
        if p.strain[i] >= 0.0:
            w = p.strain[i] * most / k
            out.stretch[0], out.stretch[1], out.stretch[2] = w * dx, w * dy, w * dz
        else:
            w = min((wish - most) / k, max(0.0, sx * dx + sy * dy + sz * dz))
            out.stretch[0], out.stretch[1], out.stretch[2] = sx - w * dx, sy - w * dy, sz - w * dz
    # sliding, and the change of kappa
    if slip > 0.0:
        gx, gy, gz = fx + mu * load * ex, fy + mu * load * ey, fz + mu * load * ez
        across += a / slip
        along = -a / slip
        w = 2.0 * sticks * q / slip
        add_outer(out.damping, w, gx, gy, gz, ex, ey, ez)
        add_outer(out.damping, along, ex, ey, ez, ex, ey, ez)
        w = 2.0 * sticks * q * slope / stick
        lx, ly, lz = lx + w * gx, ly + w * gy, lz + w * gz
    _add_plane(out.damping, across, nx, ny, nz)
    _add_load(out, kn, cn, nx, ny, nz, lx, ly, lz)
