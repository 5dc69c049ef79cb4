"""Everything that leaves the PC: protocol, publisher, ECU lane, recorder, clients, monitor, scope, page.

`from bridge import Node` is a client of a running node.
"""

from typing import TYPE_CHECKING

from hilnode.core.lazy import lazy_names

if TYPE_CHECKING:
    from bridge.client.client import Node as Node
    from bridge.ecu.client import Ecu as Ecu
    from bridge.protocol.operations import NodeError as NodeError
    from bridge.record.run_file import Run as Run

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "bridge.client.client": "Node",
            "bridge.ecu.client": "Ecu",
            "bridge.protocol.operations": "NodeError",
            "bridge.record.run_file": "Run",
        },
    )
