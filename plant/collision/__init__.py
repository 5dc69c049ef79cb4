"""Collision detection: from shapes on bodies to the list of contacts.

model.py     the arrays: shapes, their places, the manifold of one pair
shapes.py    shapes for people: sizes checked, mass properties
far/         which pairs may touch
near.py      the table of pairs; one file per family of shapes beside it
"""
