"""Messages to and from captured programs: the request, and the calls on record, each a line of JSON.

Shared with the worker, as `protocol` is: nothing but the standard library, and nothing that Python 3.10 lacks.
"""

from __future__ import annotations

from typing import TypedDict, final

from .protocol import RequestOptions, read_as


class RecordingRequest(TypedDict):
    """What is noted of the calls that lead to launches, of functions in the project's folder `root`."""

    root: str
    values: bool  # floats and any short strings too
    stub: bool  # launches are not run: each returns zeros


@final
class CaptureRequest(RequestOptions):
    """What to do about the launches of a program."""

    record: RecordingRequest | None


class RecordedCall(TypedDict):
    """A call of a function that led to a launch, as shapes files write it."""

    function: str
    arguments: dict[str, str]
    on: str
    seen: str


def read_capture(text: str) -> CaptureRequest:
    """How a program is captured. Raises ProtocolError."""
    request: CaptureRequest = read_as(text, CaptureRequest, "request")
    return request


def read_call(line: str | bytes) -> RecordedCall:
    """A call that a captured program has noted. Raises ProtocolError."""
    call: RecordedCall = read_as(line, RecordedCall, "call")
    return call
