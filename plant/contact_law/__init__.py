"""Smooth contacts: forces that follow from how deep two bodies overlap, how fast, and how far they were sheared.

model.py        the arrays: constants of the laws, answer of a law
laws.py         normal forces
bristle.py      normal and tangential force together, with their derivatives
foundation.py   forces of a volume of overlap, with their derivatives
material.py     parameters for people
rows.py         the laws as bounded rows of the steppers at velocity level
bed_rows.py     the foundation as bounded rows
"""
