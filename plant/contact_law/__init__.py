"""Contact laws: forces as functions of the overlap of two bodies, its rate, and their relative tangential motion.

model.py          the arrays: constants of the laws, answer of a law
normal_force.py   normal forces: Hunt-Crossley, Lankarani-Nikravesh, Kelvin-Voigt, SMC, Wang
bristle.py        normal and tangential force together, with their derivatives
foundation.py     elastic foundation: forces of a volume of overlap, with their derivatives
material.py       user-facing parameters

The laws become rows of the velocity-level steppers in constraint/compliant_contact.py and velocity/foundation_rows.py.
"""
