"""The tables of a configuration, one file each: keys, ranges, defaults and what each key means."""
