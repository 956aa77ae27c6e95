"""The documents as a site: all pages are in it, it builds strictly, and fetches nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.pages import ROOT, site_files

CONFIG = ROOT / "docs" / "mkdocs.yml"
FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}
ABSOLUTE = re.compile(r"(?:[a-z]+:)?//")
IN_STYLES = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")


class Fetched(HTMLParser):
    """Parser that collects the addresses that a browser loads for a page.

    Attributes:
        addresses: As they stand there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name == FETCHED.get(tag)]


def test_the_sites_navigation_names_every_page_once() -> None:
    named = re.findall(r"^ +- [^:#]+: (\S+\.md)$", CONFIG.read_text("utf-8"), re.MULTILINE)
    pages = {place for place in site_files().values() if place.endswith(".md")}
    records = {page for page in pages if re.match(r"decisions/\d", page)}
    assert sorted(named) == sorted(pages - records)


def test_every_decision_is_in_their_list() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"\((\d\S+\.md)\)", (folder / "index.md").read_text("utf-8"))
    assert listed == sorted(path.name for path in folder.glob("0*.md"))


def test_resources_that_a_page_loads_are_detected() -> None:
    seen = Fetched()
    seen.feed('<link href="https://a.org/x.css"><script src="y.js"></script><a href="//b.org">')
    assert seen.addresses == ["https://a.org/x.css", "y.js"]
    assert IN_STYLES.search("@import url(https://fonts.org)")
    assert IN_STYLES.search("src: url('//fonts.org/a')")
    assert not IN_STYLES.search("url(data:image/svg+xml;charset=utf-8,<svg)")


@pytest.mark.slow
def test_the_site_builds_strictly_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra docs isn't installed")
    build = (sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(CONFIG))
    built = subprocess.run(
        [*build, "-d", str(tmp_path)], capture_output=True, text=True, timeout=240, check=False
    )
    assert built.returncode == 0, built.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        seen = Fetched()
        seen.feed(page.read_text("utf-8"))
        assert seen.addresses
        assert [one for one in seen.addresses if ABSOLUTE.match(one)] == [], page
    for style in tmp_path.rglob("*.css"):
        assert not IN_STYLES.search(style.read_text("utf-8")), style
