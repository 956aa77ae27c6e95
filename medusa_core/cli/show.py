"""`medusa show`: what a model is, by its files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from medusa_core.hub.library.find import installed
from medusa_core.hub.library.installed import size_of
from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import is_gguf, read_gguf

_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")


def add_show_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `show`."""
    parser.add_argument("model", metavar="MODEL", help="folder, GGUF file, or a name of list")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--template", action="store_true", help="print its chat template alone")


def run_show_model(args: argparse.Namespace) -> int:
    """Print what its files say."""
    path = installed(args.model)
    files = ModelFiles.open(path)
    if args.template:
        print(files.written_template.source_or_known(files.tokenizer.knows) or "")
        return 0
    facts = _facts(path, files)
    if args.json:
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    for name, value in facts.items():
        if value not in (None, ""):
            print(f"{name.replace('_', ' '):<20}{_shown(value)}")
    return 0


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _facts(path: Path, files: ModelFiles) -> dict[str, object]:
    """What is known, under the names that `--json` promises."""
    config = files.config
    heads = heads_made_for(path)
    return {
        "name": files.name,
        "family": config.model_type,
        "path": str(path),
        "bytes": size_of(path),
        "weights": config.file_type or config.quantization or "dense",
        "context_tokens": config.context_tokens,
        "layers": config.num_layers,
        "hidden_size": config.hidden_size,
        "vocabulary": config.vocab_size,
        "has_chat_template": not files.is_base,
        "heads": None if heads is None else str(heads),
        "licence": _licence(path),
    }


def _licence(path: Path) -> str | None:
    """What its files say of its licence; None where they say nothing."""
    if is_gguf(path) and (named := read_gguf(path).text("general.license")):
        return named
    folder = path if path.is_dir() else path.parent
    card = folder / "README.md"
    if card.is_file():
        head = card.read_text(encoding="utf-8", errors="replace").split("---")[1:2]
        for line in "".join(head).splitlines():
            if line.startswith("license:"):
                return line.partition(":")[2].strip()
    return next((str(folder / name) for name in _LICENCES if (folder / name).is_file()), None)
