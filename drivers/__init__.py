"""Devices: bytes to named signals with units, and back. One folder per kind of device.

What serves every kind stands here: the base class, options, the registry of kinds, the thread that runs a driver,
twins.
"""

from typing import TYPE_CHECKING

from hilnode.core.lazy import lazy_names

if TYPE_CHECKING:
    from drivers.base import HELD as HELD
    from drivers.base import Driver as Driver
    from drivers.base import DriverError as DriverError
    from drivers.base import OptionError as OptionError
    from drivers.base import refuse_unknown as refuse_unknown
    from drivers.operator.phases import Phases as Phases

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "drivers.base": "HELD Driver DriverError OptionError refuse_unknown",
            "drivers.operator.phases": "Phases",
        },
    )
