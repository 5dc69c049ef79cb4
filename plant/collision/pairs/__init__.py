"""Pair kernels: one file for each family of pairs of shapes; `table` imports them all."""
