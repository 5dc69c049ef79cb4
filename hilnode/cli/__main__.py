"""`python -m hilnode.cli`: the command line, as the installed `hilnode`."""

from hilnode.cli.main import main

if __name__ == "__main__":
    main()
