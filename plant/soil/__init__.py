"""Soil that is dug, carried, dropped and heaped: height fields that change, and what they push with."""
