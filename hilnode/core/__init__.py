"""Basics that all packages share: signals, units, structs, kernels, tables of kinds.

Importing this package loads nothing else; each public name is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from hilnode.core.lazy import lazy_names

if TYPE_CHECKING:
    from hilnode.core.jit import exported as exported
    from hilnode.core.jit import inline as inline
    from hilnode.core.jit import kernel as kernel
    from hilnode.core.signals import Signal as Signal
    from hilnode.core.struct import F1 as F1
    from hilnode.core.struct import Struct as Struct
    from hilnode.core.struct import viewer as viewer

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "hilnode.core.jit": "exported inline kernel",
            "hilnode.core.signals": "Signal",
            "hilnode.core.struct": "F1 Struct viewer",
        },
    )
