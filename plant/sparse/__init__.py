"""Sparse linear algebra of the constraints: islands, elimination order, block LDL factorisation."""
