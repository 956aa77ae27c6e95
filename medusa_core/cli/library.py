"""`medusa list`, `verify`, `rm`, `import` and `convert`: manage installed models."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medusa_core.errors import RequestError
from medusa_core.hub.library.find import folder_list, listed_name, own_models
from medusa_core.hub.library.installed import (
    Installed,
    find_installed,
    list_installed,
    pairings,
    repo_folder,
)
from medusa_core.hub.library.library_import import import_copy
from medusa_core.hub.library.pairing import HeadsFit
from medusa_core.hub.library.shipped_heads import heads_made_for
from medusa_core.hub.settings import settings_from

if TYPE_CHECKING:
    from medusa_core.hub.library.library_remove import Removal

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def add_list_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    _add_folders(parser)
    parser.set_defaults(run=run_list)


def add_verify_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify`."""
    parser.add_argument("name", metavar="NAME", help="repository, or a folder")
    parser.add_argument("--revision", default="", help="branch, tag or commit")
    parser.add_argument("--repair", action="store_true", help="remove damaged files of the cache")
    _add_folders(parser)
    parser.set_defaults(run=run_verify)


def add_rm_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rm`."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="repository, or one of its GGUF files as list shows it, or as OWNER/NAME:QUANT",
    )
    parser.add_argument("--revision", default="", help="only this branch, tag or commit")
    parser.add_argument("--yes", action="store_true", help="don't ask")
    _add_folders(parser)
    parser.set_defaults(run=run_rm)


def add_import_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `import`."""
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="in Hugging Face layout")
    parser.add_argument("--copy-to", type=Path, metavar="DIR", help="copy it there first")
    parser.set_defaults(run=run_import)


def add_convert_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `convert`."""
    parser.add_argument(
        "source", type=Path, metavar="FILE|DIR", help="torch pickle, or a folder of them"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="default: the same folder")
    parser.add_argument("--yes", action="store_true", help="don't ask")
    parser.set_defaults(run=run_convert)


def _add_folders(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of folders to look into."""
    parser.add_argument(
        "--cache-dir", type=Path, help="folder to use instead of the Hugging Face cache"
    )
    parser.add_argument(
        "--folder",
        type=Path,
        action="append",
        default=[],
        help="look for models in this folder, too",
    )


def run_list(args: argparse.Namespace) -> int:
    """Print the installed models, with the heads for each."""
    installed = _installed(args)
    if args.json:
        print(json.dumps({"installed": [_as_json(one) for one in installed]}))
        return 0
    if not installed:
        print(f"nothing is installed in {_cache_dir(args)}")
    width = max(map(len, (*(one.title for one in installed), *own_models())))
    for one in installed:
        revision = one.revision[:8] or "folder"
        kind = one.contents.kind.value
        state = "complete" if one.is_complete else "; ".join(one.contents.problems)
        size, file = _size(one.nbytes), "" if one.title == one.name else f"  {one.name}"
        print(f"{one.title:{width}}  {kind:7}  {size:>10}  {revision:8}  {state}{file}")
    for name in own_models():
        print(f"{name:{width}}  comes with the program")
    by_name = {one.name: one for one in installed}
    for pairing in pairings(installed):
        target = by_name[pairing.target.name]
        own = heads_made_for(target.path)
        is_none = own is None and not pairing.matches
        print(f"\nheads for {target.title}:" + (" none installed" if is_none else ""))
        if own is not None:
            print(f"  {HeadsFit.MADE_FOR.value:16} {own.name}: comes with the program")
        for match in pairing.matches:
            if own is None or match.heads.name != own.name:
                print(f"  {match.fit.value:16} {match.heads.name}: {match.reason}")
    return 0


def run_verify(args: argparse.Namespace) -> int:
    """Verify files and print their states; returns 1 if one is damaged or missing."""
    from medusa_core.hub.library.library_verify import (
        repair,
        verify,
    )

    one = _found(args)
    report = verify(one.path, _progress("checked"))
    for file in report.files:
        print(f"{file.state.value:9}  {file.name}" + (f": {file.reason}" if file.reason else ""))
    if args.repair and not report.is_whole:
        done = repair(report)
        print(f"removed {_size(done.freed_bytes)}; to fetch again: {', '.join(done.to_fetch)}")
    return 0 if report.is_whole else 1


def run_rm(args: argparse.Namespace) -> int:
    """Remove a repository, a revision or a GGUF file from the cache, after confirmation."""
    from medusa_core.hub.library.library_remove import remove

    cache_dir = _cache_dir(args)
    removal = _planned_removal(args, cache_dir)
    what = f"{args.name} {removal.revision[:8]}".strip()
    print(f"{what}: frees {_size(removal.freed_bytes)}")
    if removal.sharers:
        revisions = ", ".join(sha[:8] for sha in removal.sharers)
        print(f"  {_size(removal.kept_bytes)} stay, which {revisions} needs too")
    if not args.yes and not _agrees("Remove it?"):
        print("nothing was removed")
        return 1
    print(f"freed {remove(cache_dir, removal):,} bytes")
    return 0


def _planned_removal(args: argparse.Namespace, cache_dir: Path) -> Removal:
    """Return what would be removed.

    Raises:
        RequestError: The model isn't in the cache.
    """
    from medusa_core.hub.library.library_remove import plan_file_removal, plan_removal

    repo = repo_folder(cache_dir, args.name)
    if repo.is_dir() and not args.revision:
        return plan_removal(cache_dir, repo)
    one = _found(args)
    if not one.is_cached:
        raise RequestError(
            f"{one.path} isn't in the cache; its files stay.", "Remove the folder yourself."
        )
    if one.path.is_dir():
        return plan_removal(cache_dir, repo_folder(cache_dir, one.name), one.revision)
    return plan_file_removal(cache_dir, one.path.parents[2], one.path)


def run_import(args: argparse.Namespace) -> int:
    """Add a folder to the library, in place or as a copy."""
    folder = args.folder
    if args.copy_to is not None:
        folder = import_copy(folder, args.copy_to).path
    imported = folder_list().add(folder)
    print(f"{imported.path}: {imported.contents.kind.value}")
    return 0


def run_convert(args: argparse.Namespace) -> int:
    """Convert pickles, after confirmation."""
    from medusa_core.hub.convert.convert import convert
    from medusa_core.hub.convert.convert_source import find_source

    source = find_source(args.source, args.output)
    count = f"{len(source.files)} pickles" if len(source.files) > 1 else "a pickle"
    print(f"{source.folder}: {count}, {_size(source.nbytes)}, to {source.output}")
    print("A pickle can run code when it is opened. Here a process of its own opens it, and takes")
    print("nothing but tensors; convert it all the same only if you trust where it comes from.")
    is_consented = args.yes or _agrees("Convert it?")
    if not is_consented:
        print("nothing was converted")
        return 1
    done = convert(source, is_consented=is_consented, on_progress=_progress("written"))
    for path in done.files:
        print(path)
    return 0


COMMANDS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "list": add_list_arguments,
    "verify": add_verify_arguments,
    "rm": add_rm_arguments,
    "import": add_import_arguments,
    "convert": add_convert_arguments,
}


def _found(args: argparse.Namespace) -> Installed:
    """Find the installed model of a command.

    Raises:
        RequestError: The name is unknown or ambiguous.
    """
    found = _installed(args)
    name = listed_name([one.name for one in found], args.name)
    if name in own_models() and name not in (one.name for one in found):
        raise RequestError(
            f"{name} comes with the program.", "It is neither removed nor verified here."
        )
    return find_installed(found, name, args.revision)


def _installed(args: argparse.Namespace) -> tuple[Installed, ...]:
    """List the installed models, with those in folders of the arguments."""
    named = getattr(args, "name", "")
    own = (Path(named),) if named and Path(named).is_dir() else ()
    return list_installed(_cache_dir(args), (*folder_list().read(), *args.folder, *own))


def _cache_dir(args: argparse.Namespace) -> Path:
    """Return the cache folder of the arguments."""
    return settings_from(os.environ, args.cache_dir).cache_dir


def _as_json(item: Installed) -> dict[str, Any]:
    """Return an installed item under the documented names of `--json`."""
    return {
        "name": item.name,
        "title": item.title,
        "path": str(item.path),
        "revision": item.revision,
        "refs": list(item.refs),
        "kind": item.contents.kind.value,
        "storage": item.contents.storage,
        "bytes": item.nbytes,
        "is_complete": item.is_complete,
        "problems": list(item.contents.problems),
    }


def _progress(verb: str) -> Callable[[int, int], None] | None:
    """Return a function that shows progress on one line of a terminal; None without one."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        """Overwrite the progress line."""
        end = "\n" if done == total else ""
        print(f"\r{verb} {_size(done)} of {_size(total)} ", end=end, file=sys.stderr, flush=True)

    return show


def _agrees(question: str) -> bool:
    """Ask for confirmation; no input means no."""
    try:
        return input(f"{question} [y/N] ").strip().casefold() in ("y", "yes")
    except EOFError:
        return False


def _size(nbytes: int) -> str:
    """Format a size in decimal units."""
    for unit, name in _UNITS:
        if nbytes >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes} bytes"
