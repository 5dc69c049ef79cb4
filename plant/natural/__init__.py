"""The stepper `ali3p`: natural coordinates, index-3 augmented Lagrangian, implicit integration (Luaces 2).

The rooms:
    model           the arrays
    integrators     Newmark, HHT and generalized-alpha by their parameters
    shared_entities which points and vectors make a body, and which of them bodies share
    builder         a world in these coordinates
    arrays          allocates and fills the arrays
    core            all of it put into an engine
    frames          bodies as points and vectors, and back
    rows            constraints, drives and springs: one function of the coordinates each
    tangent         residual and tangent matrix
    contact         contact forces
    foundation      those of volumes of overlap
    step            the step
    reactions       what joints carry that are nothing but shared points

Bodies are read from and written to the same state as in the other core, so collision detection, joints, sensors and the
node see no difference.
"""
