"""Files of a repository, and which of them a download needs."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import PurePosixPath as Path
from typing import Any
from urllib.parse import quote

from medusa_core.errors import UnusableRepoError
from medusa_core.hub.boundary import (
    check_repo,
    check_revision,
    is_id,
    is_safe_path,
    is_sha1,
    is_sha256,
    printable,
    printable_value,
)
from medusa_core.hub.bounds import MAX_FILE_BYTES, MAX_LISTED_FILES
from medusa_core.hub.hub_api import query_hub
from medusa_core.hub.refusals import unreadable
from medusa_core.hub.settings import HubSettings
from medusa_core.i18n import tr
from medusa_core.system.files.gguf import (
    SUFFIX,
    is_first,
    names_of,
)
from medusa_core.system.files.gguf_companions import is_companion, is_drafter_name

_TEXT_FILES = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab"
    r"|medusa_trees)\.json|merges\.txt|tokenizer\.model|chat_template\.jinja"
    r"|[^/]*\.safetensors\.index\.json"
)
# Copies of the weights in formats of other programs.
_OTHER_LAYOUTS = re.compile(r"consolidated.*|.*/.*|adapter_model.*|openvino.*")
_USUAL_HEADS = ("q8_0", "bf16", "f16", "q4_k_m")  # few bits cost acceptance, and save little
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository.

    Attributes:
        path: Path in the repository.
        size: Bytes.
        blob_id: Name in the cache: sha256 of an LFS file, else git's sha1.
        is_large: Whether it is an LFS file.
        git_id: Git's sha1 of the file or of its LFS pointer.
    """

    path: str
    size: int
    blob_id: str
    is_large: bool
    git_id: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A repository at one commit.

    Attributes:
        repo: `owner/name`.
        revision: Requested revision, such as `main`.
        files: All files.
        takes_pickles: Whether pickles are downloaded and converted if there are no safetensors.
        file: Wanted GGUF file, the first of a split one; empty for safetensors.
    """

    repo: str
    revision: str
    sha: str
    files: tuple[RemoteFile, ...]
    takes_pickles: bool = False
    file: str = ""

    @property
    def needed(self) -> tuple[RemoteFile, ...]:
        """Files that loading needs: a GGUF file; or safetensors, configuration and tokenizer."""
        if self.file:
            return self.parts_of(self.file)
        weights = [file for file in self.files if _is_weights(file.path)]
        # Vicuna: a single file next to shards is a second copy.
        shards = [file for file in weights if re.search(r"-\d+-of-\d+\.", file.path)]
        chosen = shards or weights
        texts = [file for file in self.files if _TEXT_FILES.fullmatch(file.path)]
        return (*texts, *(self.pickles if self.converts else chosen))

    @property
    def has_safetensors(self) -> bool:
        """Whether it has weights as safetensors."""
        return any(_is_weights(file.path) for file in self.files)

    @property
    def ggufs(self) -> tuple[RemoteFile, ...]:
        """GGUF files of models, the first of each split one."""
        return tuple(
            file
            for file in self.files
            if file.path.endswith(SUFFIX)
            and is_first(Path(file.path))
            and not is_companion(Path(file.path).name)
        )

    @property
    def drafters(self) -> tuple[RemoteFile, ...]:
        """GGUF files of drafters by their names, the first of each split one."""
        return tuple(
            file
            for file in self.files
            if file.path.endswith(SUFFIX)
            and is_first(Path(file.path))
            and is_drafter_name(Path(file.path).name)
        )

    @property
    def default_drafter(self) -> str:
        """Default GGUF file of heads; empty if there are safetensors."""
        if self.has_safetensors or not self.drafters:
            return ""
        named = (
            file.path
            for kind in _USUAL_HEADS
            for file in self.drafters
            if kind in file.path.lower()
        )
        return next(named, min(self.drafters, key=lambda file: file.size).path)

    @property
    def only_gguf(self) -> str:
        """The only GGUF model of a repository without other weights; empty otherwise."""
        is_alone = len(self.ggufs) == 1 and not self.has_safetensors
        return self.ggufs[0].path if is_alone else ""

    def parts_of(self, path: str) -> tuple[RemoteFile, ...]:
        """Return all parts of a GGUF file."""
        together = {str(Path(path).with_name(name)) for name in names_of(Path(path).name)}
        return tuple(file for file in self.files if file.path in together)

    @property
    def converts(self) -> bool:
        """Whether pickles are downloaded and converted."""
        has_weights = any(_is_weights(file.path) for file in self.files)
        return self.takes_pickles and bool(self.pickles) and not has_weights

    @property
    def blobs(self) -> tuple[RemoteFile, ...]:
        """The needed files, those of equal content once."""
        return tuple({file.blob_id: file for file in self.needed}.values())

    @property
    def needed_bytes(self) -> int:
        """Bytes to download."""
        return sum(file.size for file in self.blobs)

    @property
    def pickles(self) -> tuple[RemoteFile, ...]:
        """Weights in pickles, which can run code when they are opened."""
        return tuple(file for file in self.files if file.path.endswith(_PICKLES))

    def check(self) -> None:
        """Check that a repository can be loaded; the error names what to download instead.

        Raises:
            UnusableRepoError: It holds neither safetensors nor the GGUF file that is wanted.
        """
        if self.file:
            self._check_file()
            return
        if self.converts or any(_is_weights(file.path) for file in self.files):
            return
        if self.ggufs:
            raise UnusableRepoError(
                tr("{0} holds {1} GGUF files, of which one is enough.", self.repo, len(self.ggufs)),
                tr("Choose one: --file {0}, for example.", printable(self.ggufs[0].path)),
                kind="gguf",
            )
        if companions := [file.path for file in self.files if file.path.endswith(SUFFIX)]:
            raise UnusableRepoError(
                tr(
                    "{0} holds only files that go with a model, such as {1}.",
                    self.repo,
                    printable(companions[0]),
                ),
                "Choose the repository of the model itself, and this one as its heads.",
            )
        if self.pickles:
            raise UnusableRepoError(
                tr(
                    "{0} holds only pickles such as {1}, which can run code when they are opened.",
                    self.repo,
                    printable(self.pickles[0].path),
                ),
                "Look for a version in safetensors; or, if you trust the author, download with "
                "--convert, which looks through them first.",
                kind="pickle",
            )
        raise UnusableRepoError(
            tr("{0} holds no weights.", self.repo), "Choose a repository with .safetensors files."
        )

    def _check_file(self) -> None:
        """Check that all parts of the chosen GGUF file are listed."""
        found = {file.path for file in self.parts_of(self.file)}
        if not found or len(found) < len(names_of(Path(self.file).name)):
            raise UnusableRepoError(
                tr("{0} has no GGUF file {1}, or not all of it.", self.repo, printable(self.file)),
                tr(
                    "It has {0}.",
                    ", ".join(printable(file.path) for file in self.ggufs[:8]) or "none",
                ),
            )


def _is_weights(path: str) -> bool:
    """Whether a path is safetensors in Hugging Face's layout."""
    return path.endswith(".safetensors") and not _OTHER_LAYOUTS.fullmatch(path)


def list_repo(
    settings: HubSettings,
    repo: str,
    revision: str = "main",
    stop: threading.Event | None = None,
) -> Listing:
    """Request the files of a repository; blocks.

    Every id and name in the listing is one that can be used for a file.

    Raises:
        HubError: It can't be reached, has no such repository, requires a token, or its answer
            can't be read.
        Stopped: `stop` was set.
    """
    check_repo(repo)
    check_revision(revision)
    path = f"models/{repo}/revision/{quote(revision, safe='')}"
    return read_listing(repo, revision, query_hub(settings, path, repo, {"blobs": "True"}, stop))


def read_listing(repo: str, revision: str, answer: Any) -> Listing:
    """Parse the Hub's list of files.

    Args:
        repo: `owner/name`.
        revision: Requested revision.
        answer: JSON of the Hub, which may be anything.

    Raises:
        AnswerError: It is no listing, or one with ids or names that aren't safe.
    """
    if not isinstance(answer, dict):
        raise unreadable(repo, tr("it is no object"))
    sha, siblings = answer.get("sha"), answer.get("siblings")
    if not is_id(sha):
        raise unreadable(repo, tr("its commit is {0}", printable_value(sha)))
    if not isinstance(siblings, list) or len(siblings) > MAX_LISTED_FILES:
        raise unreadable(repo, tr("it has no list of files, or too many"))
    files = tuple(_file(repo, sibling) for sibling in siblings)
    if len({file.path for file in files}) < len(files):
        raise unreadable(repo, tr("it names a file twice"))
    if len({(file.blob_id, file.size) for file in files}) > len({file.blob_id for file in files}):
        raise unreadable(repo, tr("it gives a file two sizes"))
    return Listing(repo, revision, sha, files)


def _file(repo: str, sibling: Any) -> RemoteFile:
    """Parse a file of a listing."""
    if not isinstance(sibling, dict) or not is_safe_path(path := sibling.get("rfilename")):
        raise unreadable(repo, tr("it names a file {0}", printable_value(sibling)))
    size, git_id, lfs = sibling.get("size"), sibling.get("blobId"), sibling.get("lfs")
    # bool is a subclass of int.
    if type(size) is not int or not 0 <= size <= MAX_FILE_BYTES:
        raise unreadable(repo, tr("the size of {0} is {1}", path, printable_value(size)))
    if lfs is None:
        if not is_sha1(git_id):
            raise unreadable(repo, tr("the id of {0} is {1}", path, printable_value(git_id)))
        return RemoteFile(path, size, git_id, False, git_id)
    sha256 = lfs.get("sha256") if isinstance(lfs, dict) else lfs
    if not is_sha256(sha256) or not is_id(git_id):
        raise unreadable(repo, tr("the id of {0} is {1}", path, printable_value(sha256)))
    return RemoteFile(path, size, sha256, True, git_id)
