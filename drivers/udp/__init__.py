"""UDP datagrams."""
