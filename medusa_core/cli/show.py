"""`medusa show`: describe a model by its files."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from medusa_core.hub.drafters import DRAFTER_KINDS, find_drafters, sized_drafters
from medusa_core.hub.gguf_choice import split_quant
from medusa_core.hub.library.catalog import published_drafters, read_catalog
from medusa_core.hub.library.find import find_named, folder_list, installed, refuse_heads
from medusa_core.hub.library.installed import list_installed, name_at, size_of
from medusa_core.hub.library.library_folder import look_into
from medusa_core.hub.library.pairing import HeadsFit, pair
from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.hub.settings import settings_from
from medusa_core.models.checkpoints.gguf_config import base_model_of
from medusa_core.models.model_files import ModelFiles
from medusa_core.system.files.gguf import SUFFIX, is_gguf, read_gguf

_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `show`."""
    parser.set_defaults(run=run)
    parser.add_argument("model", metavar="MODEL", help="folder, GGUF file, or a name of list")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--template", action="store_true", help="print its chat template alone")
    parser.add_argument(
        "--drafters", action="store_true", help="ask the Hub what is published to draft for it"
    )


def run(args: argparse.Namespace) -> int:
    """Print the data of a model, or the published drafters for it."""
    if args.drafters:
        return _show_drafters(args.model, args.json)
    path = installed(args.model)
    refuse_heads(path)
    files = ModelFiles.open(path)
    if args.template:
        print(files.written_template.source_or_known(files.tokenizer.knows) or "")
        return 0
    facts = _facts(path, files)
    if args.json:
        print(json.dumps(facts, ensure_ascii=False))
        return 0
    for name, value in facts.items():
        if value not in (None, "", []):
            print(f"{name.replace('_', ' '):<20}{_shown(value)}")
    return 0


def _show_drafters(name: str, as_json: bool) -> int:
    """Print the published drafters for a model, which may not be installed.

    Raises:
        HubError: The Hub can't be reached.
    """
    names = _names(name)
    known = published_drafters(names)
    settings = settings_from(os.environ)
    found = find_drafters(settings, names)
    repos = {one.repo for one in known}
    offers = sized_drafters(settings, (*known, *(one for one in found if one.repo not in repos)))
    if as_json:
        print(json.dumps({"drafters": [asdict(one) for one in offers]}))
        return 0
    if not offers:
        print(f"The Hub knows no drafter for {name}.")
    for one in offers:
        where = one.repo or f"in the files of {one.made_for}"
        made_for = f", made for {one.made_for}" if one.made_for else ""
        kind = DRAFTER_KINDS[one.kind]
        size = f", {one.nbytes / 1e6:,.0f} MB" if one.nbytes else ""
        print(f"{where}\n    {kind.label}{made_for}{size}. {kind.text}")
    return 0


def _names(name: str) -> tuple[str, ...]:
    """Return the names by which drafters may refer to a model."""
    repo, _ = split_quant(name)
    path = find_named(name)
    own = repo if path is None else name_at(path if path.is_dir() else path.parent)
    if own.casefold().endswith(SUFFIX) or "/" not in own:
        own = Path(own).stem
    bases = [one.bases[0] for one in read_catalog() if one.pair.model == own]
    if path is not None and is_gguf(path) and (base := base_model_of(read_gguf(path))):
        bases.append(base)
    return (own, *bases)


def _drafters_here(path: Path) -> list[str]:
    """Return the installed heads for a model, those made for it first."""
    contents = look_into(path, name_at(path))
    if contents.target is None:
        return []
    every = list_installed(settings_from(os.environ).cache_dir, folder_list().read())
    heads = [one.contents.heads for one in every if one.contents.heads is not None]
    (found,) = pair([contents.target], heads)
    own = [] if contents.heads is None else [f"{contents.heads.shape.kind} in its own files"]
    return own + [match.heads.name for match in found.fitting if match.fit is not HeadsFit.FOREIGN]


def _shown(value: object) -> str:
    """Format a value for people."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _facts(path: Path, files: ModelFiles) -> dict[str, object]:
    """Return the data of a model under the documented names of `--json`."""
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
        "drafters_here": _drafters_here(path),
        "drafters_published": [
            one.repo for one in published_drafters(_names(str(path))) if one.repo
        ],
        "licence": _licence(path),
    }


def _licence(path: Path) -> str | None:
    """Return the licence of a model from its files; None if unknown."""
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
