"""The broad phase: which pairs of shapes may touch, from their AABBs.

find_pairs.py     all pairs of a step, from the places of the shapes: `find_pairs`
model.py          what it knows and keeps between steps
dynamic_tree.py   the BVH around moving shapes
static_tree.py    shapes that never move, in a tree chosen by name: kdtree.py, octree.py or dynamic_tree.py
pairs.py          which pairs are left out, and lists of pairs
aabb.py           axis-aligned bounding boxes
"""
