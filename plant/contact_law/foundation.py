"""The volumetric elastic foundation: forces of a whole overlap instead of points (Luaces eq. 4.6 - 4.10).

Each body has an elastic layer of modulus k_f over a depth h_f, so a column of overlap of length z pushes with the
pressure K z (1 + a r), K = k_f / h_f, r its rate of approach. Over the overlap (volume V, centroid c, normal n, second
moments, all from geometry) that sums up to

    F_n = K V (1 + a r_c) n                              eq. 4.6
    T_r = -K a S w_t                                     eq. 4.7    resists rolling
    F_t = -mu |F_n| v_t / u_m                            eq. 4.9
    T_s = -mu |F_n| / u_m g^2 w_n                        eq. 4.10   resists spinning
    u_m = sqrt(|v_t|^2 + g^2 |w_n|^2 + v_s^2),   g^2 = n.J n / V

at the centroid. v and w are velocity there and angular velocity of the first body against the second, in their parts
along n and across; J is the inertia tensor of the overlap about c at density 1. The source prints eq. 4.7 - 4.10
without signs (all four resist) and 4.8 - 4.10 without the speed u_m, which the units demand: it is the mean slip
over the overlap (Gonthier 2004), here with v_s [m/s] so that friction goes to zero with the slip. Sliding and
spinning share one friction: a spinning wheel slides easily. Eq. 4.8 has a term for contact surfaces above or below the
centroid; here the contact plane goes through it.

Where the source has J in 4.7, S is the part of it across n, less the spread of the overlap along n, which columns
do not feel: with it T_r is the sum over the columns. Pressure along n has no torque about n, and friction in the plane
none across n, so what J has in common between the two is left out; it could add energy.

How the push changes when the first body is displaced by x at the middle p of the patch (area A, inertia I_p for 1
kg/m^2) and turned by q across n:

    F_n:  -K A n.x           T about p:  -K I_p q + |F_n| b q

These two do not mix at p, so the force through c is given as one through p and a torque. The second term of the torque
is what the centre of mass, at the height b over the plane, gains on the force when the body turns on its patch. For a
ball and a wheel the two are equal: nothing holds them against rolling.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline, kernel
from plant.numeric.algebra import cross

EXTENT = 2.0  # radii of gyration of a patch that the centre of its pressure is at most away from its middle


@kernel
def foundation_force(
    stiffness,
    dissipation,
    friction,
    slow,
    volume,
    area,
    n,
    inertia,
    patch,
    lever,
    height,
    velocity,
    spin,
    out,
):
    """What an overlap pushes the first body with, into `out` (a `FoundationForce`); returns the normal force [N].

    `stiffness` K [N/m^3], `dissipation` a [s/m], `friction` mu, `slow` v_s [m/s]; `volume` [m^3], `area` of the patch
    [m^2], `n` [3] unit from the second body to the first, `inertia` [3, 3] J [m^5], `patch` [3, 3] I_p [m^4], `lever`
    [3] from p to c; `height` b [m]; `velocity` [3], `spin` [3]. The first tangent is read from `out.way[1]`.
    """
    force, damping, reach, way = out.force, out.damping, out.reach, out.way
    for k in range(6):
        force[k] = out.stiffness[k] = damping[k] = reach[k] = 0.0
    nx, ny, nz = n[0], n[1], n[2]
    rate = -(velocity[0] * nx + velocity[1] * ny + velocity[2] * nz)
    grow = 1.0 + dissipation * rate
    load = stiffness * volume * grow
    if not (volume > 0.0 and load > 0.0):  # or it departs faster than the foundation follows
        return 0.0
    _set(way, 0, nx, ny, nz)
    force[0], out.stiffness[0], damping[0], reach[0] = (
        load,
        stiffness * area * grow,
        stiffness * volume * dissipation,
        math.inf,
    )
    jx, jy, jz = _times(inertia, nx, ny, nz)
    spread = nx * jx + ny * jy + nz * jz
    _write_friction(friction * load, slow, spread / volume, n, velocity, rate, spin, out)
    # rolling, about the principal axes of the patch
    ax, ay, az, bx, by, bz = _patch_axes(patch, nx, ny, nz, way[1, 0], way[1, 1], way[1, 2])
    _set(way, 4, ax, ay, az)
    _set(way, 5, bx, by, bz)
    thick = 0.5 * (inertia[0, 0] + inertia[1, 1] + inertia[2, 2]) - spread
    jx, jy, jz = _times(inertia, ax, ay, az)
    aa, ab = ax * jx + ay * jy + az * jz - thick, bx * jx + by * jy + bz * jz
    jx, jy, jz = _times(inertia, bx, by, bz)
    bb = bx * jx + by * jy + bz * jz - thick
    roll = stiffness * dissipation
    wa, wb = ax * spin[0] + ay * spin[1] + az * spin[2], bx * spin[0] + by * spin[1] + bz * spin[2]
    lx, ly, lz = cross(lever[0], lever[1], lever[2], nx, ny, nz)
    force[4] = load * (ax * lx + ay * ly + az * lz) - roll * (aa * wa + ab * wb)
    force[5] = load * (bx * lx + by * ly + bz * lz) - roll * (ab * wa + bb * wb)
    damping[4], damping[5] = roll * max(aa, 0.0), roll * max(bb, 0.0)
    for k in range(4, 6):
        jx, jy, jz = _times(patch, way[k, 0], way[k, 1], way[k, 2])
        moment = max(way[k, 0] * jx + way[k, 1] * jy + way[k, 2] * jz, 0.0)
        out.stiffness[k] = max(stiffness * grow * moment - load * height, 0.0)
        reach[k] = EXTENT * load * math.sqrt(moment / area) if area > 0.0 else 0.0
    return load


@inline
def _set(way, k, x, y, z):
    way[k, 0], way[k, 1], way[k, 2] = x, y, z


@inline
def _times(m, x, y, z):
    return (
        m[0, 0] * x + m[0, 1] * y + m[0, 2] * z,
        m[1, 0] * x + m[1, 1] * y + m[1, 2] * z,
        m[2, 0] * x + m[2, 1] * y + m[2, 2] * z,
    )


@inline
def _write_friction(most, slow, turning, n, velocity, rate, spin, out):
    """Sliding and drilling friction, into `out`; `turning` is the square of the overlap's radius of gyration."""
    force, damping, reach, way = out.force, out.damping, out.reach, out.way
    nx, ny, nz = n[0], n[1], n[2]
    about = spin[0] * nx + spin[1] * ny + spin[2] * nz
    ux, uy, uz = velocity[0] + rate * nx, velocity[1] + rate * ny, velocity[2] + rate * nz
    square = ux * ux + uy * uy + uz * uz + about * about * turning + slow * slow
    grip = most / math.sqrt(square) if square > 0.0 else 0.0
    x, y, z = cross(nx, ny, nz, way[1, 0], way[1, 1], way[1, 2])
    _set(way, 2, x, y, z)
    _set(way, 3, nx, ny, nz)
    for k in range(1, 3):
        force[k] = -grip * (ux * way[k, 0] + uy * way[k, 1] + uz * way[k, 2])
        damping[k], reach[k] = grip, most
    force[3], damping[3], reach[3] = -grip * turning * about, grip * turning, most * math.sqrt(turning)


@inline
def _patch_axes(patch, nx, ny, nz, ux, uy, uz):
    """Principal axes of the patch in its plane; u is any direction there."""
    vx, vy, vz = cross(nx, ny, nz, ux, uy, uz)
    px, py, pz = _times(patch, ux, uy, uz)
    a, b = ux * px + uy * py + uz * pz, vx * px + vy * py + vz * pz
    px, py, pz = _times(patch, vx, vy, vz)
    turned = 0.5 * math.atan2(2.0 * b, a - (vx * px + vy * py + vz * pz))
    co, si = math.cos(turned), math.sin(turned)
    return (
        co * ux + si * vx,
        co * uy + si * vy,
        co * uz + si * vz,
        co * vx - si * ux,
        co * vy - si * uy,
        co * vz - si * uz,
    )
