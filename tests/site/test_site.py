"""The documentation, built as it is published and read in a browser: nothing is fetched from elsewhere."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from pallas_lint.compat import support
from pallas_lint.finding import DOCS_URL
from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.nightly


def build(folder: Path, *options: str) -> Path:
    subprocess.run([sys.executable, "tools/site.py", "--to", str(folder), *options], cwd=ROOT, check=True)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "chromium is needed (CHROMIUM says where it is)"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page on which errors and requests to other hosts fail the test."""
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    wrong: list[str] = []

    def phrase(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(message.text)

    opened.on("console", phrase)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on(
        "request",
        lambda request: (
            wrong.append(request.url) if not request.url.startswith((address, "file:", "data:", "blob:")) else None
        ),
    )
    yield opened
    opened.close()
    assert wrong == []


def test_search_and_filters(page: Page, address: str) -> None:
    page.goto(f"{address}/support/")
    count = page.locator("#support-count")
    everything = int((count.text_content() or "0").split()[0])
    assert everything > 1000
    page.get_by_label("Function or name").fill("cumsum")
    expect(page.locator("#support-list details").first).to_contain_text("jnp.cumsum")
    row = page.locator('[id="jnp.cumsum"]')
    expect(row.locator(".on", has_text="TPU")).to_contain_text("no")
    expect(row.locator(".on", has_text="Triton")).to_contain_text("runs")
    page.get_by_label("Backend").select_option("triton")
    page.get_by_label("Show").select_option("fails")
    expect(row).to_have_count(0)
    page.get_by_label("Function or name").fill("isfinite")
    expect(page.locator('[id="jnp.isfinite"]')).to_have_count(0)
    page.get_by_label("dtype").select_option("f32")
    expect(page.locator('[id="jnp.isfinite"]')).to_have_count(0)
    page.get_by_label("jax").select_option("0.7.2")
    expect(page.locator('[id="jnp.isfinite"]')).to_have_count(1)
    # The address holds what is shown: it can be sent as a link.
    page.goto(page.url)
    expect(page.locator('[id="jnp.isfinite"]')).to_have_count(1)
    expect(page.get_by_label("jax")).to_have_value("0.7.2")


def test_an_entry_has_the_failure_and_the_replacement(page: Page, address: str) -> None:
    page.goto(f"{address}/support/#jnp.cumsum")
    entry = page.locator('[id="jnp.cumsum"]')
    expect(entry).to_have_attribute("open", "")
    expect(entry).to_be_in_viewport()
    expect(entry).to_contain_text("no lowering rule for the primitive cumsum")
    expect(entry).to_contain_text("Instead:")
    expect(entry.get_by_role("table").first).to_contain_text("0.4.35")
    page.goto(f"{address}/support/?query=nothing+is+called+so#pl.load")
    expect(page.locator('[id="pl.load"]')).to_contain_text("gone in")


def test_by_keyboard(page: Page, address: str) -> None:
    page.goto(f"{address}/support/")
    page.get_by_label("Function or name").fill("jnp.cumsum")
    page.locator('[id="jnp.cumsum"] summary').focus()
    page.keyboard.press("Enter")
    expect(page.locator('[id="jnp.cumsum"]')).to_have_attribute("open", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_both_schemes_and_a_phone(browser: Browser, address: str, scheme: str, width: int) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})  # type: ignore[arg-type]
    opened = context.new_page()
    opened.goto(f"{address}/support/#jnp.cumsum")
    look = opened.locator("body").get_attribute("data-md-color-scheme")
    assert look == ("slate" if scheme == "dark" else "default")
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    # Letters on their ground: WCAG requests 4.5 of small text.
    worst = opened.evaluate(
        """() => Math.min(...[...document.querySelectorAll('#support .verdict')].slice(0, 60).map((badge) => {
            const style = getComputedStyle(badge);
            const luminance = (colour) => {
                const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
                if (a < 1) return null;
                const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
                return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
            };
            const [a, b] = [luminance(style.color), luminance(style.backgroundColor)];
            return a === null || b === null ? 21 : (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }))"""
    )
    assert worst >= 4.5
    context.close()


def test_no_page_scrolls_sideways_on_a_phone(browser: Browser, address: str, site: Path) -> None:
    opened = browser.new_page(viewport={"width": 390, "height": 844})
    wide: list[str] = []
    for file in sorted(site.rglob("*.html")):
        opened.goto(f"{address}/{file.relative_to(site).as_posix()}")
        if opened.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(file.relative_to(site).as_posix())
    opened.close()
    assert wide == []


def test_people_find_what_they_look_for_first(page: Page, address: str) -> None:
    page.goto(f"{address}/support/")
    first = page.locator("#support-list details").evaluate_all("all => all.slice(0, 12).map((each) => each.id)")
    assert {"jnp.sort", "jnp.cumsum", "jnp.dot", "jnp.exp", "jnp.where", "lax.gather"} <= set(first)


def test_words_are_those_of_the_terminal(page: Page, address: str) -> None:
    page.goto(f"{address}/support/?query=jnp.exp#jnp.exp")
    entry = page.locator('[id="jnp.exp"]')
    # That blocks of float16 cannot be loaded is reported for them, and not held against the function.
    expect(entry.locator("summary .on", has_text="TPU")).to_contain_text("compiles")
    expect(entry.get_by_role("row", name=re.compile("^f16")).first).to_contain_text("no load")
    for word in support.LEGEND:
        expect(page.locator("dt", has_text=re.compile(f"^{re.escape(word)}$"))).to_be_visible()


def test_every_rule_has_its_page(page: Page, address: str, site: Path) -> None:
    for code in all_rules():
        assert (site / "rules" / code / "index.html").exists(), code
    page.goto(f"{address}/rules/PAL301/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("index-map-element-offset")
    page.goto(f"{address}/rules/")
    assert sorted(page.locator("article .rules a").all_text_contents()) == sorted(all_rules())
    page.locator("article a", has_text="PAL103").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("PAL103")


def test_search_engines_are_sent_to_the_newest_release(page: Page, address: str) -> None:
    page.goto(f"{address}/rules/PAL301/")
    assert page.locator("link[rel=canonical]").get_attribute("href") == f"{DOCS_URL}PAL301/"


def test_all_pages_are_searched(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")  # the key is bound by a script
    page.keyboard.press("Control+k")
    page.keyboard.type("uninitialised-accumulator")
    expect(page.get_by_role("option", name="PAL401").first).to_be_visible(timeout=30_000)


def test_settings_and_upgrades_are_made_from_the_program(page: Page, address: str) -> None:
    page.goto(f"{address}/settings/")
    expect(page.locator("#jax-version")).to_be_visible()
    page.goto(f"{address}/upgrading/")
    expect(page.locator("article")).to_contain_text("pl.load")


def test_it_can_be_read_as_files(browser: Browser, tmp_path: Path) -> None:
    place = build(tmp_path / "offline", "--offline")
    opened = browser.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.goto((place / "support.html").as_uri())
    expect(opened.locator('[id="jnp.cumsum"]')).to_be_attached()
    opened.goto((place / "rules" / "PAL301.html").as_uri())
    expect(opened.get_by_role("heading", level=1)).to_contain_text("PAL301")
    assert wrong == []
    opened.close()
