"""The wire protocol, shared by servers and clients: messages, operations, rows, keys, endpoints."""
