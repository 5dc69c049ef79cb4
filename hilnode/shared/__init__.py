"""What the processes of a node share: lock-free buffers, rows, control words, events, commands, logs."""
