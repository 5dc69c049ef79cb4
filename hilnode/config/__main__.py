"""`python -m hilnode.config`: write the JSON schema of a configuration."""

import sys

from hilnode.config.config import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
