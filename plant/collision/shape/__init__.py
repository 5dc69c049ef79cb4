"""Shapes, their mass properties, support functions, and the BVH of a mesh."""
