"""Overlap volumes of two shapes, and their moments."""
