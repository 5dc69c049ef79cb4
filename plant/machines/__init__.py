"""Complete plants, one file or folder each."""
