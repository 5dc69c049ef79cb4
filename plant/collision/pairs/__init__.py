"""Which kernel finds the contacts of a pair of kinds: `table`, and one file for each family of pairs."""
