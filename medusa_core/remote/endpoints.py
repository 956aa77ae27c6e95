"""The addresses that a user has connected, in a file of the user's configuration."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from medusa_core.errors import CheckpointError, StorageError
from medusa_core.messages import EndpointModel
from medusa_core.system.files import record_json
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.json_file import read_json

log = logging.getLogger(__name__)

_FILE_NAME = "endpoints.json"
_ALL = "endpoints"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Another machine's models.

    Attributes:
        url: Its address.
        name: What the user calls it.
        has_key: A key is kept for it.
        models: Names of its models when it was asked last.
    """

    url: str
    name: str
    has_key: bool = False
    models: tuple[str, ...] = ()

    @property
    def remote_models(self) -> tuple[EndpointModel, ...]:
        """Its models, to be loaded."""
        return tuple(EndpointModel(self.url, model_id, self.name) for model_id in self.models)


class Endpoints:
    """The connected addresses of one user.

    Attributes:
        folder: Where the list is kept; None forgets it.
        all: They, in the order in which they were connected.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.all: tuple[Endpoint, ...] = () if folder is None else _read_all(folder / _FILE_NAME)

    def find(self, url: str) -> Endpoint | None:
        """The connection to an address; None where there is none."""
        return next((one for one in self.all if one.url == url), None)

    def connect(self, endpoint: Endpoint) -> None:
        """Keep a connection, in place of an earlier one to the same address.

        Raises:
            StorageError: The list can't be written.
        """
        if self.find(endpoint.url) is None:
            self._keep((*self.all, endpoint))
        else:
            self._keep(tuple(endpoint if one.url == endpoint.url else one for one in self.all))

    def remove(self, url: str) -> None:
        """Forget a connection.

        Raises:
            StorageError: The list can't be written.
        """
        self._keep(tuple(one for one in self.all if one.url != url))

    def _keep(self, endpoints: tuple[Endpoint, ...]) -> None:
        if self.folder is not None:
            _write_all(self.folder / _FILE_NAME, endpoints)
        self.all = endpoints


def _read_all(path: Path) -> tuple[Endpoint, ...]:
    """The kept list; a file that can't be read is set aside, so that nothing is written over."""
    try:
        raw = read_json(path).get(_ALL) if path.exists() else []
        if not isinstance(raw, list):
            raise TypeError("it holds no list")
        found = tuple(record_json.from_json(Endpoint, each, "a connection") for each in raw)
        for one in found:
            urlsplit(one.url)  # raises ValueError where it is no address
        return found
    except (CheckpointError, OSError, ValueError, TypeError) as error:
        log.warning("%s is set aside: %s", path, error)
        with suppress(OSError):  # on a disk that can't be written it stays where it is
            path.replace(path.with_suffix(".damaged"))
        return ()


def _write_all(path: Path, endpoints: tuple[Endpoint, ...]) -> None:
    written = json.dumps({_ALL: [record_json.as_json(one) for one in endpoints]}, indent=1)
    try:
        replace_text(path, f"{written}\n")
    except OSError as error:
        raise StorageError(
            f"{path} can't be written: {error.strerror or error}.",
            "Make room on the disk, or see who may write there.",
        ) from error
