"""From a TOML file to a checked configuration, and from there to the arrays of the tick."""

from typing import TYPE_CHECKING

from hilnode.core.lazy import lazy_names

if TYPE_CHECKING:
    from hilnode.config.config import Config as Config
    from hilnode.config.config import ConfigError as ConfigError
    from hilnode.config.config import load as load
    from hilnode.config.config import overlay as overlay

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "hilnode.config.config": "Config ConfigError load overlay",
        },
    )
