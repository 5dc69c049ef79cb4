"""Small fixed-size algebra, unrolled: vectors of 3, quaternions w x y z, blocks of at most 6 x 6.

Blocks have a stride of 6 and a size of 3 or 6 in each direction (a constraint with fewer rows is padded), so
that the inner loops have constant length and the compiler keeps a row in registers.
"""

from __future__ import annotations

import math

from hilnode.core.jit import inline


@inline
def rotate(q, x, y, z):
    """The vector (x, y, z) turned by the unit quaternion `q`."""
    w, a, b, c = q[0], q[1], q[2], q[3]
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz, z + w * tz + a * ty - b * tx


@inline
def rotation(q, r):
    """`r` [3, 3] = the rotation matrix of the unit quaternion `q`."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    r[0, 0], r[0, 1], r[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    r[1, 0], r[1, 1], r[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    r[2, 0], r[2, 1], r[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@inline
def quat_mul(a, b, out):
    """`out` = a b; may be neither of them."""
    out[0] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    out[1] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    out[2] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    out[3] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]


@inline
def turn(q, x, y, z):
    """Turn `q` in place by the rotation vector (x, y, z) [rad] in world axes: q = exp(x, y, z) q, normalised."""
    angle = math.sqrt(x * x + y * y + z * z)
    if angle > 1e-6:
        s = math.sin(0.5 * angle) / angle
        c = math.cos(0.5 * angle)
    else:
        s = 0.5 - angle * angle / 48.0
        c = 1.0 - angle * angle / 8.0
    x, y, z = s * x, s * y, s * z
    a, b, d, e = q[0], q[1], q[2], q[3]
    w0 = c * a - x * b - y * d - z * e
    w1 = c * b + x * a + y * e - z * d
    w2 = c * d - x * e + y * a + z * b
    w3 = c * e + x * d - y * b + z * a
    n = 1.0 / math.sqrt(w0 * w0 + w1 * w1 + w2 * w2 + w3 * w3)
    q[0], q[1], q[2], q[3] = w0 * n, w1 * n, w2 * n, w3 * n


@inline
def cross(ax, ay, az, bx, by, bz):
    """a x b."""
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@inline
def sub_outer(c, a, b, n, rows, m):
    """C [rows, m] -= A' B with A [n, rows], B [n, m]."""
    for i in range(rows):
        if m == 6:
            s0, s1, s2, s3, s4, s5 = c[i, 0], c[i, 1], c[i, 2], c[i, 3], c[i, 4], c[i, 5]
            for k in range(n):
                x = a[k, i]
                s0 -= x * b[k, 0]
                s1 -= x * b[k, 1]
                s2 -= x * b[k, 2]
                s3 -= x * b[k, 3]
                s4 -= x * b[k, 4]
                s5 -= x * b[k, 5]
            c[i, 0], c[i, 1], c[i, 2], c[i, 3], c[i, 4], c[i, 5] = s0, s1, s2, s3, s4, s5
        else:
            s0, s1, s2 = c[i, 0], c[i, 1], c[i, 2]
            for k in range(n):
                x = a[k, i]
                s0 -= x * b[k, 0]
                s1 -= x * b[k, 1]
                s2 -= x * b[k, 2]
            c[i, 0], c[i, 1], c[i, 2] = s0, s1, s2


@inline
def spread(r, x, y, n, m):
    """y [m] -= R' x with R [n, m]."""
    if m == 6:
        s0, s1, s2, s3, s4, s5 = y[0], y[1], y[2], y[3], y[4], y[5]
        for k in range(n):
            v = x[k]
            s0 -= v * r[k, 0]
            s1 -= v * r[k, 1]
            s2 -= v * r[k, 2]
            s3 -= v * r[k, 3]
            s4 -= v * r[k, 4]
            s5 -= v * r[k, 5]
        y[0], y[1], y[2], y[3], y[4], y[5] = s0, s1, s2, s3, s4, s5
    else:
        s0, s1, s2 = y[0], y[1], y[2]
        for k in range(n):
            v = x[k]
            s0 -= v * r[k, 0]
            s1 -= v * r[k, 1]
            s2 -= v * r[k, 2]
        y[0], y[1], y[2] = s0, s1, s2
