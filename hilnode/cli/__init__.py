"""The command line: `hilnode run`, `doctor`, `replay`, ... One file per family of commands."""
