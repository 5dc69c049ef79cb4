"""One file for each family of pairs; `near` imports them all."""
