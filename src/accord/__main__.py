"""`python -m accord`: the same as the `accord` command."""

from accord.cli import main

if __name__ == "__main__":
    main()
