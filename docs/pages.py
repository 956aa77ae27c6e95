"""Brings the repository's documents into the site, where their links hold.

MkDocs takes pages from one folder that isn't its own. Ours lie in `docs/` and, for those who read a
repository, at its root. A link to a file that is no page of the site becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = "docs"
# Pages that lie elsewhere, and their places on the site.
ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "installer/LICENCES.md": "licences.md",
}
ASSETS = {"resources/icons/app.svg": "assets/app.svg"}
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^()\s]+)\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_OUTSIDE = re.compile(r"[a-z]+:|#")


def site_files() -> Mapping[str, str]:
    """Files of the repository that the site holds, each with its place there."""
    docs = ROOT / DOCS
    found = {
        f"{DOCS}/{path.relative_to(docs).as_posix()}": path.relative_to(docs).as_posix()
        for kind in ("*.md", "*.png")
        for path in sorted(docs.rglob(kind))
    }
    return ELSEWHERE | ASSETS | found


def rewritten(markdown: str, source: str, files: Mapping[str, str]) -> str:
    """A page's text with links that hold on the site.

    Args:
        markdown: The page.
        source: Its path in the repository.
        files: As `site_files` says.
    """

    def links_of(line: str) -> str:
        return _LINK.sub(lambda link: _linked(link, source, files), line)

    lines, is_code = [], False
    for line in markdown.split("\n"):
        is_fence = bool(_FENCE.match(line))
        is_code ^= is_fence
        lines.append(line if is_code or is_fence else links_of(line))
    return "\n".join(lines)


def _linked(link: re.Match[str], source: str, files: Mapping[str, str]) -> str:
    """One link, as the site has it."""
    to, _, anchor = link["to"].partition("#")
    if _OUTSIDE.match(link["to"]):
        return link[0]
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), to))
    if f"{wanted}/index.md" in files:
        wanted = f"{wanted}/index.md"
    if wanted not in files:
        return link["text"]
    here = posixpath.dirname(files[source])
    place = posixpath.relpath(files[wanted], here or ".") + (anchor and f"#{anchor}")
    if not link["picture"]:
        return f"[{link['text']}]({place})"
    light, dark = place, place.replace("-light.", "-dark.")
    if dark == light or wanted.replace("-light.", "-dark.") not in files:
        return _picture(link["text"], light)
    text = link["text"]
    return _picture(text, light, "#only-light") + _picture(text, dark, "#only-dark")


def _picture(text: str, place: str, theme: str = "") -> str:
    """A picture that opens in its full size; `theme` is the part of the address that hides it."""
    return f"[![{text}]({place}{theme})]({place})"


def on_files(files: Any, config: Any) -> Any:
    """MkDocs: all pages and pictures join the site."""
    from mkdocs.structure.files import File

    for source, place in site_files().items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_others: Any) -> str:
    """MkDocs: a page's links, as the site has them."""
    places = site_files()
    source = next(path for path, place in places.items() if place == page.file.src_uri)
    return rewritten(markdown, source, places)
