"""`python -m pallas_lint`: the command line."""

from pallas_lint.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
