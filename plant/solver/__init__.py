"""Solvers of the mixed linear complementarity problem of a step, impacts, and sleep."""
