"""Every link of the documents leads somewhere, in the repository and on the site."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs.pages import ROOT, rewritten, site_files

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "resources/models/**/*.md")
    for path in ROOT.glob(pattern)
)
OUTSIDE = re.compile(r"(https?|mailto):")
PARSER = MarkdownIt("commonmark").enable("table")


@cache
def tokens(text: str) -> list[Token]:
    return [child for token in PARSER.parse(text) for child in (token, *(token.children or ()))]


def links(text: str) -> Iterator[str]:
    for token in tokens(text):
        for name in ("href", "src"):
            if name in token.attrs:
                yield str(token.attrs[name])


def anchors(text: str) -> set[str]:
    """Names of headings, as GitHub and Python-Markdown give them; where they differ, neither."""
    found: set[str] = set()
    parsed = PARSER.parse(text)
    seen: Counter[str] = Counter()
    for heading, inline in pairwise(parsed):
        if heading.type != "heading_open":
            continue
        title = "".join(child.content for child in inline.children or ())
        github = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
        ours = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_title).strip().lower())
        seen[github] += 1
        if github == ours and seen[github] == 1:
            found.add(github)
    return found


def page_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_link_of_a_page_leads_to_a_file_and_a_heading() -> None:
    dead = []
    for page in PAGES:
        for link in links(page_of(page)):
            if OUTSIDE.match(link):
                continue
            name, _, anchor = link.partition("#")
            target = ((ROOT / page).parent / name).resolve() if name else ROOT / page
            is_there = target.exists() and target.is_relative_to(ROOT)
            if not is_there or (anchor and anchor not in anchors(target.read_text("utf-8"))):
                dead.append(f"{page}: {link}")
    assert dead == []


def test_every_link_of_the_site_leads_to_a_page_or_a_picture_of_it() -> None:
    files, dead = site_files(), []
    assert [page for page in files if not (ROOT / page).is_file()] == []
    for page in files:
        place = ROOT / "site" / files[page]
        for link in links(rewritten(page_of(page), page, files)) if page.endswith(".md") else ():
            if OUTSIDE.match(link) or link.startswith("#"):
                continue
            target = (place.parent / link.partition("#")[0]).resolve()
            if target.relative_to(ROOT / "site").as_posix() not in files.values():
                dead.append(f"{page}: {link}")
    assert dead == []


def test_links_become_those_of_the_site() -> None:
    files = {
        "README.md": "index.md",
        "docs/a.md": "a.md",
        "docs/decisions/index.md": "decisions/index.md",
        "docs/images/x-light.png": "images/x-light.png",
        "docs/images/x-dark.png": "images/x-dark.png",
    }

    def of(text: str, page: str = "README.md") -> str:
        return rewritten(text, page, files)

    assert of("[a](docs/a.md#b) [c](installer/cli.py)") == "[a](a.md#b) c"
    assert of("[w](https://w.org) [h](#here)") == "[w](https://w.org) [h](#here)"
    assert of("[d](docs/decisions)") == "[d](decisions/index.md)"
    assert of("[up](../a.md)", "docs/decisions/index.md") == "[up](../a.md)"
    light = "[![p](images/x-light.png#only-light)](images/x-light.png)"
    dark = "[![p](images/x-dark.png#only-dark)](images/x-dark.png)"
    assert of("![p](docs/images/x-light.png)") == light + dark
    assert of("```\n[a](docs/a.md)\n```") == "```\n[a](docs/a.md)\n```"


def test_pictures_of_the_documents_are_small_and_used() -> None:
    pictures = [path for path in site_files() if path.endswith(".png")]
    assert sum((ROOT / path).stat().st_size for path in pictures) <= 1_500_000
    shown = {
        ((ROOT / page).parent / link).resolve()
        for page in PAGES
        for link in links(page_of(page))
        if link.endswith(".png")
    }
    light = {(ROOT / path.replace("-dark.", "-light.")) for path in pictures}
    assert light == shown
