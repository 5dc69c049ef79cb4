"""The narrow phase: contact points of a pair of shapes; `collision/pairs` says which kernel serves which pair."""
