"""Capacity limits of the tick, which the config checks."""

SLOTS = 32
"""Stimuli, and faults, that can be there at once."""

HISTORY = 4096
"""Ticks of the past that a delay fault keeps."""
