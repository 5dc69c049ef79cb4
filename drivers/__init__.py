"""One file per kind of device: bytes to named signals with units, and back."""
