"""Collision detection: from shapes on bodies to the list of contacts.

model.py          the arrays: shapes, their places, the manifold of one pair
scene.py          all shapes of a world, with what the phases keep between steps
transforms.py     places and AABBs of shapes in the world
shape/            user-facing shapes, mass properties, support functions, the BVH of a mesh
broadphase/       which pairs of shapes may touch
narrowphase/      contact points of a pair: geometry, one file for each method
pairs/            the table of kernels, one for each pair of kinds of shapes
volume/           volumes of overlap
contact_list.py   the contacts of a step
cast.py           rays against the scene
vec3.py           algebra of 3-vectors
"""
