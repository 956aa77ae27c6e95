"""The endpoints of a user, saved in a configuration file."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from medusa_core.errors import CheckpointError, StorageError
from medusa_core.i18n import tr
from medusa_core.messages import EndpointModel
from medusa_core.system.files import record_json
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.json_file import read_json

log = logging.getLogger(__name__)

_FILE_NAME = "endpoints.json"
_ALL = "endpoints"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible endpoint.

    Attributes:
        url: URL of the endpoint.
        name: Name for the user.
        has_key: Whether a key is saved.
        models: Ids of its models at the last request.
    """

    url: str
    name: str
    has_key: bool = False
    models: tuple[str, ...] = ()

    @property
    def remote_models(self) -> tuple[EndpointModel, ...]:
        """Models of the endpoint, for `LoadRemote`."""
        return tuple(EndpointModel(self.url, model_id, self.name) for model_id in self.models)


class Endpoints:
    """The endpoints of one user.

    Attributes:
        folder: Folder of the file; None to save nothing.
        all: Endpoints in the order in which they were added.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.all: tuple[Endpoint, ...] = () if folder is None else _read_all(folder / _FILE_NAME)

    def find(self, url: str) -> Endpoint | None:
        """Return the endpoint with this URL; None if there is none."""
        return next((endpoint for endpoint in self.all if endpoint.url == url), None)

    def add(self, endpoint: Endpoint) -> None:
        """Save an endpoint, in place of an earlier one with the same URL.

        Raises:
            StorageError: The list can't be written.
        """
        self._save(
            tuple({**{other.url: other for other in self.all}, endpoint.url: endpoint}.values())
        )

    def remove(self, url: str) -> None:
        """Remove an endpoint.

        Raises:
            StorageError: The list can't be written.
        """
        self._save(tuple(endpoint for endpoint in self.all if endpoint.url != url))

    def _save(self, endpoints: tuple[Endpoint, ...]) -> None:
        """Write the file and remember the endpoints."""
        if self.folder is not None:
            _write_all(self.folder / _FILE_NAME, endpoints)
        self.all = endpoints


def _read_all(path: Path) -> tuple[Endpoint, ...]:
    """Read the file; one that can't be parsed is renamed, so that it isn't overwritten."""
    try:
        raw = read_json(path).get(_ALL) if path.exists() else []
        if not isinstance(raw, list):
            raise TypeError("it holds no list")
        endpoints = tuple(record_json.from_json(Endpoint, entry, "a connection") for entry in raw)
        for endpoint in endpoints:
            urlsplit(endpoint.url)  # raises ValueError if it is invalid
        return endpoints
    except (CheckpointError, OSError, ValueError, TypeError) as error:
        log.warning("%s is renamed to .damaged: %s", path, error)
        with suppress(OSError):  # on a read-only disk it stays
            path.replace(path.with_suffix(".damaged"))
        return ()


def _write_all(path: Path, endpoints: tuple[Endpoint, ...]) -> None:
    """Replace the file."""
    text = json.dumps({_ALL: [record_json.as_json(one) for one in endpoints]}, indent=1)
    with disk_errors(StorageError, path, tr("Make room on the disk, or see who may write there.")):
        replace_text(path, f"{text}\n")
