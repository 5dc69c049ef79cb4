"""The scope: signals at full rate around a trigger, drawn in the terminal or saved. `hilnode scope`."""
