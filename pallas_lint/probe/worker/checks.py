"""checkify on a launch: NaN, division by zero, indices out of bounds and the user's own checks, at their lines.

To 0.9 checkify goes through a `pallas_call` in interpret mode; from 0.10 it silently tells nothing. There the launch is
run as the plain HLO that interpret mode is made of, which checkify sees through.
"""

from __future__ import annotations

from typing import Any

from . import environment, locate
from .launches import Launch


def examine(launch: Launch, values: list[Any]) -> list[dict[str, Any]]:
    """The first error that checkify finds on these operands. Raises what the kernel raises."""
    import jax
    from jax.experimental import checkify

    def call(*given: Any) -> Any:
        if environment.version() < (0, 10):
            return launch.record.bind(*given, interpret=True)
        return _inlined(launch, given)

    error, _ = jax.jit(checkify.checkify(call, errors=checkify.all_checks))(*values)
    text = error.get()
    if text is None:
        return []
    raised = error.get_exception()
    places = []
    traceback = getattr(raised, "traceback_info", None)
    if traceback is not None:
        places = _places(traceback)
    lowered = text.lower()
    kind = (
        "nan" if "nan generated" in lowered
        else "division" if "division by zero" in lowered
        else "out-of-bounds" if "out-of-bounds" in lowered or "out of bounds" in lowered
        else "check"
    )  # fmt: skip
    return [{"kind": kind, "message": text.split("\n")[0][:500], "places": places or locate.in_text(text)}]


def _inlined(launch: Launch, given: tuple[Any, ...]) -> Any:
    import inspect

    interpreter = environment.optional("jax._src.pallas.hlo_interpreter")
    run = interpreter.pallas_call_hlo_interpret
    names = inspect.signature(run).parameters
    params = {**launch.record.params, "interpret": True}
    wanted = {name: params.get(name) for name, each in names.items() if each.kind is each.KEYWORD_ONLY}
    backend = {"backend": None} if "backend" in names else {}
    return list(run(*given, **{**wanted, **backend}))


def _places(traceback: Any) -> list[locate.Place]:
    from jax._src import source_info_util

    try:
        frames: list[Any] = list(source_info_util.user_frames(traceback))
    except Exception:  # to 0.5 it takes the source info around the traceback
        frames = list(source_info_util.user_frames(source_info_util.new_source_info().replace(traceback=traceback)))
    return [locate.of_jax_frame(frame) for frame in frames if locate.is_users(frame.file_name)]
