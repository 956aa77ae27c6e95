"""Brings the translations up to date: `python -m tests.tools.translations`.

Finds all texts, keeps what is translated, and compiles the result. New texts are to be translated
in `resources/translations/medusa_XX.ts`, by hand or with Qt Linguist; then run this again.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

import PySide6

from medusa_core.chats.presets import (
    BUILTIN,
    RECOMMENDED,
)
from medusa_core.chats.setting import When
from medusa_core.chats.settings import SETTINGS
from medusa_core.loading.choice import DEMO_NOTE
from medusa_core.loading.memory.probe import CARD, NO_CARD, OWN_MEMORY, PROCESSOR
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.speculation.drafters.forced_text import source_infos
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS
from tests.tools.engine_texts import engine_texts

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "resources" / "translations"
_TOOLS = Path(PySide6.__file__).parent


def extract(path: Path) -> None:
    """Bring a `.ts` file up to date with the texts of the application."""
    sources = sorted(str(one.relative_to(ROOT)) for one in (ROOT / "app").rglob("*.py"))
    with TemporaryDirectory() as folder:
        declared = Path(folder) / "declared.py"
        calls = [f"QT_TRANSLATE_NOOP('Setting', {text!r})\n" for text in declared_texts()]
        calls += [f"QT_TRANSLATE_NOOP('Engine', {text!r})\n" for text in engine_texts()]
        declared.write_text("".join(calls), encoding="utf-8")
        texts = (*sources, str(declared))
        _run("lupdate", "-no-obsolete", "-locations", "none", *texts, "-ts", str(path))


def declared_texts() -> tuple[str, ...]:
    """Return the declared English texts of the engine's components."""
    settings = SETTINGS.values()
    texts = [text for s in settings for text in (s.label, s.meaning, s.drafting, s.off_text)]
    texts += [DEMO_NOTE, OWN_MEMORY, PROCESSOR, CARD, NO_CARD]
    texts += [when.value for when in When if when.value and not when.is_of_one_choice]
    texts += [text for preset in (*BUILTIN, RECOMMENDED) for text in (preset.name, preset.meaning)]
    texts += [text for info in source_infos() for text in (info.label, info.explanation)]
    offered = (spec.choice for spec in drafter_registry().specs if spec.is_offered)
    choices = (*offered, *(spec.choice for spec in rule_registry().specs))
    texts += [text for choice in choices for text in (choice.label, choice.explanation)]
    rules = (spec.choice for spec in rule_registry().specs)
    texts += [label for rule in rules for _, label in rule.numbers]
    kinds = (kind for kind in TRAINED_KINDS.values() if kind.label)
    texts += [text for kind in kinds for text in (kind.label, kind.gist, kind.explanation)]
    texts += [spec.label for spec in weight_formats().specs]
    return tuple(dict.fromkeys(texts))


def compile_ts(path: Path, out: Path) -> None:
    """Compile a `.ts` file."""
    _run("lrelease", "-silent", str(path), "-qm", str(out))


def messages(path: Path) -> dict[tuple[str, str], str]:
    """The translations in a `.ts` file by context and source; empty where one is missing."""
    found: dict[tuple[str, str], str] = {}
    for context in ET.parse(path).getroot().iter("context"):
        name = context.findtext("name") or ""
        for message in context.iter("message"):
            translation = message.find("translation")
            is_done = translation is not None and translation.get("type") != "unfinished"
            text = translation.text if translation is not None and is_done else ""
            found[name, message.findtext("source") or ""] = text or ""
    return found


def _run(tool: str, *arguments: str) -> None:
    subprocess.run([str(_TOOLS / tool), *arguments], cwd=ROOT, check=True, capture_output=True)


def main() -> int:
    """Update and compile all languages; 1 if a text isn't translated."""
    missing = 0
    for path in sorted(FOLDER.glob("medusa_*.ts")):
        extract(path)
        compile_ts(path, path.with_suffix(".qm"))
        lacks = [source for (_, source), translation in messages(path).items() if not translation]
        missing += len(lacks)
        for source in lacks:
            print(f"{path.name}: {source}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
