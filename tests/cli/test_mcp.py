"""`pallas-lint mcp`, with the official client."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from invocation import KERNEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp import ClientSession

pytestmark = pytest.mark.slow
READING = {"lint", "lint_code", "fix", "rule", "support", "facts"}


@asynccontextmanager
async def client(folder: Path, *arguments: str) -> AsyncIterator[ClientSession]:
    from mcp import ClientSession, StdioServerParameters  # here: a second for each run that only collects this
    from mcp.client.stdio import stdio_client

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "pallas_lint", "mcp", *arguments], cwd=str(folder)
    )
    async with stdio_client(command) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


async def text(session: ClientSession, tool: str, arguments: dict[str, Any]) -> str:
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, result
    return str(result.content[0].text)


async def test_tools_that_read(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    async with client(tmp_path) as session:
        assert {tool.name for tool in (await session.list_tools()).tools} == READING
        found = await text(session, "lint_code", {"code": KERNEL, "jax_version": "0.4.35"})
        assert found.startswith("<stdin>:14 PAL301 error: ")
        assert (await text(session, "lint", {"paths": ["kernel.py"]})).startswith("kernel.py:14 PAL301 error: ")
        result = await session.call_tool("lint", {"paths": ["kernel.py"]})
        assert result.structured_content["findings"][0]["code"] == "PAL301"
        assert (await text(session, "rule", {"code": "PAL301"})).startswith("PAL301 ")
        assert "does not lower" in await text(session, "support", {"query": "jnp.cumsum tpu"})
        assert "VMEM of v5e" in await text(session, "facts", {"target": "tpu:v5e"})


async def test_fixes_are_written_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    async with client(tmp_path) as session:
        assert "+        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))]," in await text(
            session, "fix", {"paths": ["kernel.py"]}
        )
        assert file.read_text() == KERNEL
        assert "fixed 1 finding" in await text(session, "fix", {"paths": ["kernel.py"], "write": True})
        assert file.read_text() == KERNEL.replace("i * 8", "i")


async def test_what_is_no_file_is_an_error(tmp_path: Path) -> None:
    async with client(tmp_path) as session:
        result = await session.call_tool("lint", {"paths": ["--probe"]})
        assert result.is_error


async def test_code_is_run_only_where_that_is_allowed(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "k.py").write_text(f"with open({str(ran)!r}, 'a') as ran: ran.write('.')\ndef f(x):\n    return x\n")
    async with client(tmp_path) as session:
        assert (await session.call_tool("probe", {"function": "k.py::f", "arguments": ["f32[8]"]})).is_error
    assert not ran.exists()
    async with client(tmp_path, "--allow-probe") as session:
        names = {tool.name for tool in (await session.list_tools()).tools}
        assert names == READING | {"probe", "predict", "tune"}
        assert (await session.call_tool("probe", {"function": "--capture", "arguments": []})).is_error
        result = await session.call_tool("probe", {"function": "k.py::f", "arguments": ["f32[8]"], "stages": ["trace"]})
    assert ran.read_text() == ".", "one call runs the code once"
    assert result.structured_content["launches"] == []
