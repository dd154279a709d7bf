"""Tools that coding agents call, on the official SDK of the Model Context Protocol.

Each call runs the command line in a process of its own: a compiler that aborts takes one answer with it, and a call
that is cancelled ends at once. Texts are the agent format, structured results the JSON that `--output-format json` has.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from pallas_lint import __version__
from pallas_lint.cli.exit import TROUBLE

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSTRUCTIONS = (
    "Checks JAX Pallas kernels without the device. Begin with `facts` for the target, `lint` after each edit; its last "
    "line lists what to pass where shapes are not known."
)
_SHOW_PROGRESS_EVERY = 1.0  # seconds
_MAX_WAIT = 5.0  # seconds for a process to end by itself


def server(*, allow_probe: bool) -> MCPServer[Any]:
    """The server with its tools; `allow_probe`: also those that run the project's code."""
    made: MCPServer[Any] = MCPServer("pallas-lint", instructions=_INSTRUCTIONS, version=__version__)
    _add_tools(made)
    if allow_probe:
        _add_probe_tools(made)
    return made


# -- running the command line ------------------------------------------------------------------------------------------


async def _output(
    arguments: Sequence[str], text: str | None = None, context: Context[Any, Any] | None = None
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `pallas-lint ARGUMENTS`; `text` is its standard input."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-m", "pallas_lint", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    ended = asyncio.ensure_future(process.communicate((text or "").encode()))
    try:
        seconds = 0.0
        while not (await asyncio.wait([ended], timeout=_SHOW_PROGRESS_EVERY))[0]:
            seconds += _SHOW_PROGRESS_EVERY
            if context is not None:
                await context.report_progress(seconds, message=f"{seconds:.0f} s")
        out, err = ended.result()
    finally:
        if process.returncode is None:  # cancelled
            ended.cancel()
            await _end(process)
    return process.returncode or 0, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _MAX_WAIT)
        except asyncio.TimeoutError:
            process.kill()


async def _looked_up(options: Sequence[str], words: Sequence[str]) -> CallToolResult:
    """What is read from tables, in the agent format and as JSON: two short processes."""
    (status, plain, errors), (_, structured, _) = await asyncio.gather(
        _output([*options, "--output-format", "agent", *words]),
        _output([*options, "--output-format", "json", *words]),
    )
    return _result(status, plain, errors, structured)


async def _reported(
    options: Sequence[str], words: Sequence[str], text: str | None = None, context: Context[Any, Any] | None = None
) -> CallToolResult:
    """The report of one run in the agent format, and the same as JSON. The word `-` reads `text`."""
    with tempfile.TemporaryDirectory(prefix="pallas-lint-") as folder:
        report = Path(folder, "report.json")
        formats = ["--output-format", "agent", "--report", f"json={report}"]
        status, plain, errors = await _output([*options, *formats, *words], text, context)
        structured = report.read_text(encoding="utf-8") if report.exists() else ""
    return _result(status, plain, errors, structured)


def _result(status: int, plain: str, errors: str, structured: str) -> CallToolResult:
    try:
        document = json.loads(structured)
    except ValueError:
        document = None
    shown = "\n".join(part.rstrip() for part in (plain, errors) if part.strip())
    return CallToolResult(
        content=[TextContent(type="text", text=shown)],
        structured_content=document if isinstance(document, dict) else {"results": document},
        is_error=status == TROUBLE,
    )


async def _plain(arguments: Sequence[str]) -> CallToolResult:
    """What a command prints that has no JSON."""
    status, out, stderr = await _output(arguments)
    return CallToolResult(
        content=[TextContent(type="text", text=(out + stderr).rstrip())],
        structured_content={"text": out},
        is_error=status == TROUBLE,
    )


def _settings(target: str | None, jax_version: str | None) -> list[str]:
    return [
        *(["--target", target] if target else []),
        *(["--jax-version", jax_version] if jax_version else []),
    ]


def _named(paths: Sequence[str]) -> list[str]:
    """Paths that are no options, whatever they begin with."""
    return ["--", *paths]


# -- tools -------------------------------------------------------------------------------------------------------------


def _add_tools(server: MCPServer[Any]) -> None:
    """Tools that read, and run no code of the project."""
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(annotations=reads)
    async def lint(paths: list[str], target: str | None = None, jax_version: str | None = None) -> CallToolResult:
        """Find what will fail or go silently wrong in the Pallas kernels of files and folders, without running them.

        target: "tpu:v6e", "tpu:v5e", "triton", "mosaic-gpu"; by default each kernel's own backend. jax_version: by
        default the project's.
        """
        return await _reported([*_settings(target, jax_version), "--no-cache"], _named(paths))

    @server.tool(annotations=reads)
    async def lint_code(code: str, target: str | None = None, jax_version: str | None = None) -> CallToolResult:
        """Lint the text of one Python module. Call the kernel with literal shapes in it: most verdicts need them."""
        return await _reported([*_settings(target, jax_version), "--no-cache"], ["-"], code)

    @server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False))
    async def fix(
        paths: list[str], unsafe: bool = False, write: bool = False, target: str | None = None
    ) -> CallToolResult:
        """Fix what can be fixed: by default the diff; with write the files are changed and what is left is reported.

        unsafe: also fixes after which the result may differ, which have to be read.
        """
        options = [*_settings(target, None), *(["--unsafe-fixes"] if unsafe else []), "--no-cache"]
        if not write:
            return await _plain([*options, "--diff", *_named(paths)])
        return await _plain([*options, "--fix", "--output-format", "agent", *_named(paths)])

    @server.tool(annotations=reads)
    async def rule(code: str) -> CallToolResult:
        """Explain a rule by its code or name: what it is about, how to fix it, bad and good lines."""
        return await _looked_up(["rule"], _named([code]))

    @server.tool(annotations=reads)
    async def support(query: str, target: str | None = None, jax_version: str | None = None) -> CallToolResult:
        """Whether a function, dtype or primitive works in a kernel: "jnp.cumsum", "argsort bf16 tpu"."""
        return await _looked_up(["support", *_settings(target, jax_version)], _named([query]))

    @server.tool(annotations=reads)
    async def facts(target: str = "tpu", jax_version: str | None = None) -> CallToolResult:
        """Memories, tiles, dtypes, what does not lower and what to write instead, and names that are gone."""
        return await _plain(["facts", *_settings(target, jax_version)])


def _add_probe_tools(server: MCPServer[Any]) -> None:
    """Tools that run code of the project, in its own interpreter."""
    runs = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)

    @server.tool(annotations=runs)
    async def probe(
        function: str,
        context: Context[Any, Any],
        arguments: list[str] | None = None,
        target: list[str] | None = None,
        reference: str | None = None,
        stages: list[str] | None = None,
    ) -> CallToolResult:
        """Trace, lower, compile and run kernels without their device. This runs the code.

        function: "kernels.py::matmul"; arguments: "f32[512,512]", "bm=128"; reference: a function that computes the
        same, "plain" of the same file or "before.py::matmul"; stages: "compile" stops after the compiler.
        """
        options = [*(["--reference", reference] if reference else []), *_repeated("--stage", stages)]
        return await _probe(function, arguments, target, options, context)

    @server.tool(annotations=runs)
    async def predict(
        function: str,
        context: Context[Any, Any],
        arguments: list[str] | None = None,
        target: list[str] | None = None,
    ) -> CallToolResult:
        """Predict what the launches of a function cost on TPUs, and what bounds them. This runs the code."""
        return await _probe(function, arguments, target, ["--perf"], context)

    @server.tool(annotations=runs)
    async def tune(
        function: str,
        values: dict[str, list[int]],
        context: Context[Any, Any],
        arguments: list[str] | None = None,
        target: list[str] | None = None,
    ) -> CallToolResult:
        """Compare predicted times for values of keyword arguments: {"bm": [128, 256]}. This runs the code."""
        tried = [f"{name}={','.join(map(str, numbers))}" for name, numbers in values.items()]
        return await _probe(function, arguments, target, _repeated("--tune", tried), context)


def _repeated(option: str, values: Sequence[str] | None) -> list[str]:
    return [word for value in values or () for word in (option, value)]


async def _probe(
    function: str,
    arguments: list[str] | None,
    target: list[str] | None,
    options: list[str],
    context: Context[Any, Any],
) -> CallToolResult:
    words = [function, *(arguments or ())]
    if any(word.startswith("-") for word in words):
        raise ValueError("a function is FILE::NAME, and arguments are types or NAME=VALUE")
    return await _reported(["probe", *_repeated("--target", target), *options], words, context=context)
