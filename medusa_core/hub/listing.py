"""What a repository holds, and what of it is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from medusa_core.errors import (
    AccessError,
    HubError,
    NetworkError,
    NotFoundError,
    UnusableRepoError,
)
from medusa_core.hub.settings import HubSettings

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")

_TEXT_FILES = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab"
    r"|medusa_trees)\.json|merges\.txt|tokenizer\.model|chat_template\.jinja"
    r"|[^/]*\.safetensors\.index\.json"
)
# Copies of the weights in the layouts of other programs.
_OTHER_LAYOUTS = re.compile(r"consolidated.*|.*/.*|adapter_model.*|openvino.*")
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository.

    Attributes:
        path: Its path there.
        size: Bytes.
        blob_id: What the cache calls it: the sha256 of a large file, git's sha1 of another.
        is_large: The Hub keeps it apart from git (LFS), under its sha256.
        git_id: Git's own hash of it, or of the pointer that stands for it.
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
        revision: What was asked for, such as `main`.
        sha: The commit.
        files: All of its files.
        takes_pickles: Where there are no safetensors, pickles are taken, to be converted.
    """

    repo: str
    revision: str
    sha: str
    files: tuple[RemoteFile, ...]
    takes_pickles: bool = False

    @property
    def needed(self) -> tuple[RemoteFile, ...]:
        """The files that loading it takes: weights as safetensors, configuration, tokenizer."""
        weights = [file for file in self.files if _is_weights(file.path)]
        # Vicuna and its relatives: one file beside shards is a second copy.
        shards = [file for file in weights if re.search(r"-\d+-of-\d+\.", file.path)]
        chosen = shards or weights
        texts = [file for file in self.files if _TEXT_FILES.fullmatch(file.path)]
        return (*texts, *(self.pickles if self.converts else chosen))

    @property
    def converts(self) -> bool:
        """Does it come as pickles that are converted once they are here?"""
        has_weights = any(_is_weights(file.path) for file in self.files)
        return self.takes_pickles and bool(self.pickles) and not has_weights

    @property
    def blobs(self) -> tuple[RemoteFile, ...]:
        """The needed files, those of the same content once."""
        return tuple({file.blob_id: file for file in self.needed}.values())

    @property
    def needed_bytes(self) -> int:
        """Bytes to fetch for it."""
        return sum(file.size for file in self.blobs)

    @property
    def pickles(self) -> tuple[RemoteFile, ...]:
        """Weights that only running code can open."""
        return tuple(file for file in self.files if file.path.endswith(_PICKLES))

    def check(self) -> None:
        """Refuse a repository of which nothing can be loaded, and say what to get instead.

        Raises:
            UnusableRepoError: It holds no safetensors.
        """
        if self.converts or any(_is_weights(file.path) for file in self.files):
            return
        ggufs = [file.path for file in self.files if file.path.endswith(".gguf")]
        if ggufs:
            raise UnusableRepoError(
                f"{self.repo} holds GGUF files such as {ggufs[0]}, which are llama.cpp's.",
                "Get the repository that they were made from: its files end in .safetensors.",
                kind="gguf",
            )
        if self.pickles:
            raise UnusableRepoError(
                f"{self.repo} holds only pickles such as {self.pickles[0].path}, which can run "
                "code when they are opened.",
                "Look for a version in safetensors; or, if you trust the author, download with "
                "--convert, which looks through them first.",
                kind="pickle",
            )
        raise UnusableRepoError(
            f"{self.repo} holds no weights.", "Choose a repository with .safetensors files."
        )


def _is_weights(path: str) -> bool:
    return path.endswith(".safetensors") and not _OTHER_LAYOUTS.fullmatch(path)


def list_repo(settings: HubSettings, repo: str, revision: str = "main") -> Listing:
    """Ask the Hub what a repository holds; blocks.

    Raises:
        HubError: It can't be reached, has no such repository, or wants to know who asks.
    """

    def ask(api: HfApi) -> Any:
        return api.model_info(
            repo, revision=revision, files_metadata=True, timeout=settings.patience.stall_s
        )

    info = call_hub(settings, repo, ask)
    files = tuple(_file(sibling) for sibling in info.siblings or ())
    return Listing(repo, revision, str(info.sha), files)


def call_hub(settings: HubSettings, repo: str, ask: Callable[[HfApi], T]) -> T:
    """Ask the Hub's interface, with its errors in our words; blocks.

    Raises:
        HubError: It can't be reached, has no such repository, or wants to know who asks.
    """
    settings.require_online()
    import httpx2
    from huggingface_hub import HfApi, errors

    api = HfApi(endpoint=settings.endpoint, token=settings.token or False)
    try:
        return ask(api)
    except errors.GatedRepoError as error:
        raise access_error(settings, repo) from error
    except errors.RevisionNotFoundError as error:
        raise NotFoundError(f"{repo} has no such revision.", "Leave the revision out.") from error
    except errors.RepositoryNotFoundError as error:
        raise no_repository(repo) from error
    except errors.HFValidationError as error:
        raise NotFoundError(f"{repo!r} is no name of a repository.", "Write owner/name.") from error
    except errors.OfflineModeIsEnabled as error:
        raise NetworkError(
            "huggingface_hub is in offline mode.", "Unset HF_HUB_OFFLINE."
        ) from error
    except (errors.HfHubHTTPError, httpx2.HTTPError, OSError) as error:
        raise unreachable(settings, error) from error


def access_error(settings: HubSettings, repo: str) -> AccessError:
    """The Hub wants to know who asks, or its terms accepted."""
    return AccessError(
        f"{repo} is gated: its owner asks who you are.",
        f"Accept its terms at {settings.terms_url(repo)}, then enter a token of your account.",
        url=settings.terms_url(repo),
    )


def no_repository(repo: str) -> NotFoundError:
    """There is nothing of that name, or nothing that this user may see."""
    return NotFoundError(
        f"There is no repository {repo}, or you may not see it.",
        "Check the name; private ones need a token.",
    )


def unreachable(settings: HubSettings, error: Exception) -> HubError:
    """The Hub doesn't answer as it should."""
    return NetworkError(
        f"The Hub at {settings.endpoint} doesn't answer: {type(error).__name__}.",
        "Check the network connection, the proxy and HF_ENDPOINT, or try again later.",
    )


def _file(sibling: Any) -> RemoteFile:
    lfs = sibling.lfs
    blob_id = sibling.blob_id if lfs is None else lfs["sha256"]
    return RemoteFile(
        path=sibling.rfilename,
        size=int(sibling.size or 0),
        blob_id=str(blob_id),
        is_large=lfs is not None,
        git_id=str(sibling.blob_id),
    )
