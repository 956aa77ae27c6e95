"""File types by suffix."""

from __future__ import annotations

from pathlib import PurePath

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PLAIN = "text/plain"

_LANGUAGES = {
    "bash": "bash", "bat": "batch", "c": "c", "cc": "cpp", "cfg": "ini", "clj": "clojure",
    "cpp": "cpp", "cs": "csharp", "css": "css", "csv": "csv", "cu": "cuda", "dart": "dart",
    "diff": "diff", "ex": "elixir", "go": "go", "h": "c", "hpp": "cpp", "hs": "haskell",
    "htm": "html", "html": "html", "ini": "ini", "java": "java", "jl": "julia", "js": "javascript",
    "json": "json", "jsonl": "json", "jsx": "jsx", "kt": "kotlin", "lua": "lua", "md": "markdown",
    "mk": "make", "ml": "ocaml", "patch": "diff", "php": "php", "pl": "perl", "ps1": "powershell",
    "py": "python", "pyi": "python", "r": "r", "rb": "ruby", "rs": "rust", "rst": "rst",
    "scala": "scala", "sh": "bash", "sql": "sql", "svg": "xml", "swift": "swift", "tex": "latex",
    "toml": "toml", "ts": "typescript", "tsx": "tsx", "vue": "vue", "xml": "xml", "yaml": "yaml",
    "yml": "yaml", "zig": "zig",
}  # fmt: skip


def suffix_of(name: str) -> str:
    """Return the suffix of a name, in lower case and without the dot."""
    return PurePath(name).suffix.lower().removeprefix(".")


def language_of(name: str) -> str:
    """Return the language of a source file; empty for none."""
    return _LANGUAGES.get(suffix_of(name), "")


def text_type_of(name: str) -> str:
    """Return the media type of a text file."""
    language = language_of(name)
    return f"text/x-{language}" if language else PLAIN
