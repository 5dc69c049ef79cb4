"""Joint coordinates of a kinematic tree, with loop closure; no contacts. `compile_tree` makes it of a World."""
