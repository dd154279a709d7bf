"""`python -m pallas_lint.server`: the same as `pallas-lint server`."""

import sys

if __name__ == "__main__":
    from pallas_lint.start import leave_current_folder

    leave_current_folder()
    from pallas_lint.cli import main

    raise SystemExit(main(["server", *sys.argv[1:]]))
