"""The second dynamics core: natural coordinates, index-3 augmented Lagrangian, implicit integration (Luaces 2).

The rooms:
    model           the arrays
    integrators     Newmark, HHT and generalized-alpha by their parameters
    sharing         which points and vectors make a body, and which of them bodies share
    builder         a world in these coordinates
    frames          bodies as points and vectors, and back
    rows            constraints, drives and springs: one function of the coordinates each
    tangent         residual and tangent matrix
    touch           contact forces
    bed             those of volumes of overlap
    step            the step
    reactions       what joints carry that are nothing but shared points

Bodies are read from and written to the same state as in the other core, so collision detection, joints, sensors and the
node see no difference.
"""
