"""Sizes of a repository's model, read from headers: a few kilobytes instead of gigabytes."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from medusa_core.errors import CheckpointError, HubError, NotFoundError
from medusa_core.files.safetensors_header import (
    LENGTH_BYTES,
    TensorEntry,
    header_bytes,
    parse_header,
)
from medusa_core.hub.listing import Listing, list_repo
from medusa_core.hub.refusals import access_error, unreachable, unreadable
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.wire import BrokenError, Head, Wire
from medusa_core.messages import HeadsShape
from medusa_core.models.config import ModelConfig, parse_config

_FIRST_BYTES = 1 << 16  # holds most headers whole
_MOST_TEXT_BYTES = 16 << 20
_REFUSED = (401, 403)
_NOT_FOUND = 404
_ERRORS, _OK, _PARTIAL = 400, 200, 206
HEADS_FILE = "medusa_lm_head.safetensors"


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """What is known of a repository without its weights.

    Attributes:
        listing: Its files.
        config: Sizes of its model.
        heads: Sizes of heads that lie among its weights; no heads otherwise.
    """

    listing: Listing
    config: ModelConfig
    heads: HeadsShape


def look_at_model(settings: HubSettings, repo: str, revision: str = "main") -> RemoteModel:
    """Read a model's configuration and the headers of its weights; blocks.

    Raises:
        HubError: The Hub can't be reached, or lacks it.
        ModelError: It isn't a model that can be loaded.
    """
    listing = list_repo(settings, repo, revision)
    listing.check()
    names = {file.path for file in listing.files}
    raw = _read_json(settings, listing, "config.json")
    generation = {}
    if "generation_config.json" in names:
        generation = _read_json(settings, listing, "generation_config.json")
    config = parse_config(raw, generation)
    heads = HeadsShape()
    if raw.get("medusa_num_heads") and "model.safetensors" in names:
        heads = _heads_shape(read_remote_header(settings, listing, "model.safetensors"))
    return RemoteModel(listing, config, heads)


def look_at_heads(settings: HubSettings, repo: str) -> HeadsShape:
    """Read the sizes of a repository's Medusa heads; blocks.

    Raises:
        HubError: The Hub can't be reached, or lacks it.
        HeadsError: It holds no heads.
    """
    listing = list_repo(settings, repo)
    listing.check()
    found = [file.path for file in listing.needed if file.path.endswith(".safetensors")]
    name = HEADS_FILE if HEADS_FILE in found else found[0]
    return _heads_shape(read_remote_header(settings, listing, name))


def read_remote_header(
    settings: HubSettings, listing: Listing, path: str
) -> dict[str, TensorEntry]:
    """Names, dtypes and shapes of the tensors of a file on the Hub; blocks.

    Raises:
        CheckpointError: It is no safetensors file.
        HubError: It can't be read.
    """
    size = next((file.size for file in listing.files if file.path == path), None)
    first = _read(settings, listing, path, 0, _FIRST_BYTES)
    length = header_bytes(first[:LENGTH_BYTES], path)
    header = first[LENGTH_BYTES : LENGTH_BYTES + length]
    if len(header) < length:
        header += _read(settings, listing, path, len(first), LENGTH_BYTES + length - len(first))
    return parse_header(header, size, path)


def _heads_shape(entries: dict[str, TensorEntry]) -> HeadsShape:
    from medusa_core.heads.reader import heads_shape

    return heads_shape({name: entry.shape for name, entry in entries.items()})


def _read_json(settings: HubSettings, listing: Listing, path: str) -> dict[str, Any]:
    text = _read(settings, listing, path, 0, _MOST_TEXT_BYTES)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} of {listing.repo} is no JSON.", "Choose another.") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} of {listing.repo} is no JSON object.", "Choose another.")
    return value


def _read(settings: HubSettings, listing: Listing, path: str, start: int, count: int) -> bytes:
    """Some bytes of a file."""
    settings.require_online()
    url = f"{settings.endpoint}/{listing.repo}/resolve/{listing.sha}/{quote(path)}"
    headers = {"Range": f"bytes={start}-{start + count - 1}", "Accept-Encoding": "identity"}
    wire = Wire(settings)
    found = bytearray()
    try:
        with wire.get(url, threading.Event(), headers) as exchange:
            _check(settings, listing, path, exchange.head(), start)
            for piece in exchange.pieces():
                found += piece
                if len(found) >= count:  # a server that ignores ranges would send all
                    break
    except BrokenError as error:
        raise unreachable(settings, str(error)) from error
    finally:
        wire.close()
    return bytes(found[:count])


def _check(settings: HubSettings, listing: Listing, path: str, head: Head, start: int) -> None:
    if head.status in _REFUSED:
        raise access_error(settings, listing.repo)
    if head.status == _NOT_FOUND:
        raise NotFoundError(f"{listing.repo} has no {path}.", "Choose another repository.")
    if head.status >= _ERRORS:
        raise HubError(f"The Hub failed ({head.status}).", "Try again later.")
    if head.status != _PARTIAL and (head.status != _OK or start):
        raise unreadable(listing.repo, f"its status is {head.status}")
