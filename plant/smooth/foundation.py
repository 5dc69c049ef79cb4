"""The volumetric elastic foundation: forces of a whole overlap instead of points (Luaces eq. 4.6 - 4.10).

Each body has an elastic layer of modulus k_f over a depth h_f, so a column of overlap of length z pushes with the
pressure K z (1 + a r), K = k_f / h_f, r its rate of approach. Over the overlap (volume V, centroid c, normal n, inertia
tensor J about c at density 1, all from geometry) that sums up to

    F_n = K V (1 + a r_c) n                              eq. 4.6
    T_r = -K a J w_t                                     eq. 4.7    resists rolling
    F_t = -mu |F_n| u / u_m,   u = v_t + w_t x rho       eq. 4.8, 4.9
    T_s = -mu |F_n| / (V u_m) J w_n                      eq. 4.10   resists spinning
    u_m = sqrt(|u|^2 + w_n.J w_n / V + v_s^2)

v and w are velocity at the centroid and angular velocity of the first body against the second, w_n and w_t the parts of
w along n and across, rho the way from the centroid of the overlap to that of the contact surface. The source prints
eq. 4.7 - 4.10 without signs (all four resist) and 4.8 - 4.10 without the speed u_m, which the units demand: it is the
mean slip over the overlap (Gonthier 2004), here with v_s [m/s] so that friction goes to nought with the slip. Sliding
and spinning share one friction: a spinning wheel slides easily.

The source takes J as that of the volume; for thin overlaps its tangential part is the second moment of the surface that
4.7 derives from, thicker ones resist rolling a little more.
"""

from __future__ import annotations

import math

from hilnode.jit import kernel
from plant.algebra import cross


@kernel
def foundation(
    stiffness, dissipation, friction, slow, volume, n, inertia, velocity, spin, offset, force, torque, friction_force
):
    """Force and torque on the first body at the centroid of the overlap; returns the normal force [N].

    `stiffness` K [N/m^3], `dissipation` a [s/m], `friction` mu, `slow` v_s [m/s]; `volume` [m^3], `n` [3] unit from the
    second body to the first, `inertia` [3, 3] J [m^5]; `velocity` [3], `spin` [3], `offset` [3] rho. Writes `force` [3]
    (normal and friction), `torque` [3] (rolling and spinning) and `friction_force` [3] alone.
    """
    for k in range(3):
        force[k] = torque[k] = friction_force[k] = 0.0
    if not volume > 0.0:
        return 0.0
    nx, ny, nz = n[0], n[1], n[2]
    rate = -(velocity[0] * nx + velocity[1] * ny + velocity[2] * nz)
    grow = 1.0 + dissipation * rate
    load = stiffness * volume * grow
    if not load > 0.0:  # departs faster than the foundation follows
        return 0.0
    about = spin[0] * nx + spin[1] * ny + spin[2] * nz
    tx, ty, tz = spin[0] - about * nx, spin[1] - about * ny, spin[2] - about * nz
    px, py, pz = cross(tx, ty, tz, offset[0], offset[1], offset[2])
    ux, uy, uz = velocity[0] + rate * nx + px, velocity[1] + rate * ny + py, velocity[2] + rate * nz + pz
    jx = inertia[0, 0] * nx + inertia[0, 1] * ny + inertia[0, 2] * nz
    jy = inertia[1, 0] * nx + inertia[1, 1] * ny + inertia[1, 2] * nz
    jz = inertia[2, 0] * nx + inertia[2, 1] * ny + inertia[2, 2] * nz
    square = ux * ux + uy * uy + uz * uz + about * about * (nx * jx + ny * jy + nz * jz) / volume + slow * slow
    w = friction * load / math.sqrt(square) if square > 0.0 else 0.0
    friction_force[0], friction_force[1], friction_force[2] = -w * ux, -w * uy, -w * uz
    force[0], force[1], force[2] = load * nx - w * ux, load * ny - w * uy, load * nz - w * uz
    roll, twist = stiffness * dissipation, w * about / volume
    torque[0] = -roll * (inertia[0, 0] * tx + inertia[0, 1] * ty + inertia[0, 2] * tz) - twist * jx
    torque[1] = -roll * (inertia[1, 0] * tx + inertia[1, 1] * ty + inertia[1, 2] * tz) - twist * jy
    torque[2] = -roll * (inertia[2, 0] * tx + inertia[2, 1] * ty + inertia[2, 2] * tz) - twist * jz
    return load
