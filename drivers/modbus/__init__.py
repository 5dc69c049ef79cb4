"""Modbus TCP and RTU, as client and as server."""
