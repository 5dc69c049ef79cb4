"""The narrow phase: contact points of a pair of shapes; `table` holds the pair kernels, `pairs/` registers them."""
