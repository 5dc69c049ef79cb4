"""The stepper `articulated`: joint coordinates of a kinematic tree, with loop closure."""
