"""`python -m pallas_lint.server`: the server on standard input and output."""

from pallas_lint.server.app import create

create().start_io()
