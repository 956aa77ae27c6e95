"""Remove personal data from a text: home folders, user names, tokens."""

from __future__ import annotations

import getpass
import os
import re
from pathlib import Path

_TOKENS = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|xox[bp]-)[A-Za-z0-9_\-]{6,}"
    r"|(?i:bearer|token|authorization|password|secret|api[_-]?key)\b[\"']?\s*[:=]?\s*"
    r"[\"']?(?!is\b|of\b|for\b)[A-Za-z0-9_\-.~+/]{16,}"
)
_URL_USER = re.compile(r"(?<=://)[^/\s:@]+(?::[^/\s@]*)?@")
_HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s\"':]+")


def redact(text: str) -> str:
    """Return the text without tokens, home folders and the user's name."""
    for folder in _own_homes():
        text = text.replace(folder, "~")
    text = _HOMES.sub("~", text)
    text = _URL_USER.sub("***@", text)
    text = _TOKENS.sub("***", text)
    name = _user()
    return re.sub(rf"\b{re.escape(name)}\b", "***", text) if name else text


def _own_homes() -> list[str]:
    homes = {os.environ.get("HOME", ""), str(Path.home())} - {"", "/"}
    return sorted(homes, key=len, reverse=True)


def _user() -> str:
    """Return the user's name; empty if it is generic or unknown."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
    return "" if name in ("root", "user", "admin") or len(name) < 3 else name
