"""The far phase: which pairs of shapes may touch.

dynamic.py   all pairs of a step, from the places of the shapes: `find_pairs`
model.py     what it knows and keeps between steps: `build_far`
tree.py      the tree of boxes around moving shapes
scenery.py   shapes that never move, in a static tree chosen by name: kdtree.py, octree.py or tree.py
pairs.py     which pairs are left out, and lists of pairs
boxes.py     boxes parallel to the world's axes
"""
