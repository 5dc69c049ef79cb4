"""Tires on ground that is given by heights: the forces and torques on each wheel in a step.

model.py            the arrays, and the user-facing `Tire` and `Wheel`
contact.py          the plane under a wheel; depth, contact point and directions
normal.py           the normal force
transient.py        transient slip: relaxation lengths, standing still
magic_formula.py    the laws: forces along and across by slip and load
fiala.py
composite_slip.py
slip.py             what the laws share: one force of two slips
laws.py             the table of the laws
step.py             all of it, wheel by wheel

Signs are those of ISO 8855. Along the ground under a wheel: x to where it rolls when it turns positively about its
axis, y to its left, z out of the ground. An axis (0, 1, 0) on a machine that looks along x makes positive turning drive
forwards. Slips are positive where the force is: slip along x is (rolling speed - travel) / travel, slip across is
-(speed to the left) / travel, the tangent of the slip angle.
"""
