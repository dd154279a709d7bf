"""`python -m pallas_lint`: the command line."""

if __name__ == "__main__":
    from pallas_lint.start import drop_cwd_from_path

    drop_cwd_from_path()
    from pallas_lint.cli import main

    raise SystemExit(main())
