"""Serial lines: framing, checksums, and the driver."""
