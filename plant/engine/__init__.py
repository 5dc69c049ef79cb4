"""Compiles a World, changes and queries it while it runs, and makes it a plant of the node."""
