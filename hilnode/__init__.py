"""hilnode: put a real controller in the loop with a simulated machine.

This package is kept empty on purpose: `hilnode.core.signals` and `hilnode.core.jit` are imported by
every room, so importing them must cost nothing else.
"""

__version__ = "0.1.0"
