"""Tests of the compiled tick, with the real loop on a bench of its own (`bench.py`) and small plants (`plants.py`)."""
