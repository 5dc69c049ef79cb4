"""What the exact bits of a run depend on besides its inputs: compiler versions and the CPU."""

from __future__ import annotations

import platform

import llvmlite
import numba
from llvmlite import binding

from hilnode import __version__


def made_by() -> str:
    """One line for people. Where it is the same, the same inputs give the same bits."""
    compilers = f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, Python {platform.python_version()}"
    return f"hilnode {__version__}, {compilers}, {platform.machine()} {binding.get_host_cpu_name()}"
