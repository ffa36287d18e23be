"""The page at `/`, as a person uses it: in a real browser, over HTTP."""

import csv
import io
import json
import os
import re
import shutil
import socket
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import sync_playwright

from app.main import create_app
from app.settings import Settings
from medlink.kb.builds import Builds
from medlink.kb.database import migrate, open_engine
from medlink.kb.keys import Keys
from medlink.manifest import read_manifest

WEB = Path(__file__).parents[2] / "app/web"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# .ci/run installs one; nobody else has to.
in_browser = pytest.mark.skipif(not BROWSER and not os.environ.get("CI"), reason="no Chromium on this machine")


@pytest.fixture(scope="module")
def settings(make_build, tmp_path_factory):
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("data"),
        rebuild_in_service=False,
        build_poll_seconds=0.1,
        max_mention_chars=100,
        max_bulk_mentions=50,
        max_mentions=50,
    )
    engine = open_engine(settings.database_url)
    migrate(engine)
    for _ in range(2):
        build = make_build(settings.builds_dir)
        Builds(engine).register_build(build.id, read_manifest(settings.builds_dir / build.id))
        Builds(engine).activate_build(build.id)
    return settings


@pytest.fixture(scope="module")
def admin_key(settings):
    return Keys(open_engine(settings.database_url)).create("ann", ["admin"])[1]


@pytest.fixture(scope="module")
def address(settings):
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(settings), log_config=None))
    thread = threading.Thread(target=server.run, args=[[listening]])
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address):
    """The page, loaded; a script that fails or is refused fails the test."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if "Content Security" in message.text else None)
    page.goto(address)
    page.wait_for_selector("#index:has-text('concepts')")
    yield page
    context.close()
    assert faults == []


def link(page, *mentions):
    page.fill("#mentions", "\n".join(mentions))
    page.press("#mentions", "Control+Enter")
    page.wait_for_selector(f"#said:has-text('{len(mentions)} mention')")


def row(page, number):
    return page.locator("#rows > tr:not(.details)").nth(number).locator("th, td").all_inner_texts()


@in_browser
def test_mentions_are_linked_from_the_keyboard_and_explained(page):
    link(page, "heart attack", "cold", "asthma and itching")

    assert page.inner_text("#said") == "3 mentions: 1 ambiguous, 2 linked." or "ambiguous" in page.inner_text("#said")
    mention, status, concept, matched, probability, score, _ = row(page, 0)
    assert (mention, status, matched, probability, score) == ("heart attack", "linked", "heart attack", "–", "1.0000")
    assert concept == "Myocardial infarction C0027051"
    shown = page.inner_text("#details-1")
    assert "why: exact 1.0000" in shown
    assert "MONDO SY; as written" in shown
    assert "Several concepts own this name" in page.inner_text("#details-2")
    parts = page.inner_text("#details-3")
    assert "Parts: asthma" in parts
    assert "and itching" in parts


@in_browser
def test_a_pasted_column_shows_one_row_a_mention_and_details_on_demand(page):
    column = [f"asthma {number}" for number in range(120)]
    page.fill("#mentions", "\r\n".join([*column, "", "  "]))
    page.click("#link-button")
    page.wait_for_selector("#said:has-text('120 mentions')")

    assert page.locator("#rows > tr:not(.details)").count() == 120
    details = page.locator("#details-120")
    assert not details.is_visible()
    toggle = page.locator("button[aria-controls=details-120]")
    toggle.focus()
    page.keyboard.press("Enter")
    assert (toggle.get_attribute("aria-expanded"), details.is_visible()) == ("true", True)
    assert "Asthma" in details.inner_text()


@in_browser
def test_filters_and_options_are_sent(page):
    page.click("summary")
    assert page.locator("#sabs option").all_inner_texts() == ["HPO", "ICD10CM", "MESH", "MONDO"]
    page.select_option("#sabs", "HPO")
    page.fill("#top-k", "1")
    link(page, "cold")

    assert row(page, 0)[2] == "Cold HP:0000001"
    page.click("#clear-filters")
    page.check("#definitions")
    page.uncheck("#explain")
    link(page, "heart attack")
    assert "Death of heart muscle" in page.inner_text("#details-1")
    assert "why" not in page.inner_text("#details-1")


@in_browser
def test_what_the_service_refuses_is_said(page):
    page.fill("#threshold", "0.5")
    page.fill("#mentions", "asthma")
    page.click("#link-button")
    page.wait_for_selector("#problem:visible")
    assert "calibration" in page.inner_text("#problem")

    page.fill("#threshold", "")
    link(page, "asthma", "a" * 101)
    assert row(page, 1)[1:3] == ["error", "longer than max_mention_chars = 100"]
    assert not page.is_visible("#problem")


@in_browser
def test_markup_in_a_mention_stays_text(page):
    evil = "<img src=x onerror=\"document.title='gone'\">"
    link(page, evil, "<script>document.title='gone'</script>")

    assert row(page, 0)[0] == evil
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "medlink"


@in_browser
def test_answers_are_copied_as_json_and_as_csv(page):
    link(page, "heart attack", '=1+1 "x"')

    page.click("#copy-json")
    page.wait_for_selector("#said:has-text('Copied 2 answers as JSON')")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    page.click("#copy-csv")
    page.wait_for_selector("#said:has-text('as CSV')")
    rows = list(csv.DictReader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))

    assert [result["text"] for result in copied["results"]] == ["heart attack", '=1+1 "x"']
    assert copied["index"]["id"]
    assert (rows[0]["mention"], rows[0]["rank"], rows[0]["cui"]) == ("heart attack", "1", "C0027051")
    # A spreadsheet would otherwise compute it.
    assert rows[-1]["mention"] == '\'=1+1 "x"'


@in_browser
def test_builds_and_jobs_are_for_those_with_an_admin_key(page, admin_key, settings):
    page.click("text=Builds and jobs")
    assert "Type an admin key" in page.inner_text("#admin-problem")
    page.fill("#key", "wrong")
    page.click("#refresh")
    page.wait_for_selector("#admin-problem:has-text('key')")
    assert page.locator("#builds tr").count() == 0

    page.fill("#key", admin_key)
    page.click("#refresh")
    page.wait_for_selector("#builds tr")
    newest, older = page.locator("#builds th").all_inner_texts()
    assert "active" in page.locator("#builds tr").first.inner_text()
    page.click("text=Activate >> visible=true")
    page.wait_for_selector(f"#builds tr:has-text('{older}'):has-text('active, answers here')", timeout=10_000)
    page.click("text=Activate >> visible=true")
    page.wait_for_selector(f"#builds tr:has-text('{newest}'):has-text('active')")

    page.click("#rebuild")
    page.wait_for_selector("#jobs tr:has-text('queued')")
    page.click("#rebuild")
    page.wait_for_selector("#admin-problem:visible")
    page.click("#jobs >> text=Cancel")
    page.wait_for_selector("#jobs tr:has-text('cancelled')")


@in_browser
@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_fits_a_narrow_window_and_everything_has_a_name(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    link(page, "heart attack", "W" * 90)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unnamed = "[...document.querySelectorAll('input,textarea,select')].filter(e => !e.labels.length).map(e => e.id)"
    assert page.evaluate(unnamed) == []
    assert page.get_attribute("#said", "aria-live") == "polite"


def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(client):
    answer = client.get("/")

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    linked = re.findall(r"""(?:src|href)="([^"#]+)""", answer.text)
    assert linked
    for target in linked:
        assert client.get(target).status_code == 200, target
    assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", answer.text)


def test_its_scripts_never_make_markup_of_text():
    scripts = {path.name: path.read_text(encoding="utf-8") for path in WEB.glob("*.js")}

    assert len(scripts) > 3
    unsafe = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://")
    assert [name for name, text in scripts.items() if unsafe.search(text)] == []
    assert all(len(text.splitlines()) <= 300 for text in scripts.values())


@pytest.mark.parametrize("path", ["/static/../settings.py", "/static/%2e%2e/settings.py", "/static/"])
def test_nothing_but_its_files_is_served(client, path):
    assert client.get(path).status_code == 404
