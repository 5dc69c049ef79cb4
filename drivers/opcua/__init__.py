"""OPC UA, as client and as server."""
