"""Complete plants, one file each."""
