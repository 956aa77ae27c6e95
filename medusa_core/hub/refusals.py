"""Errors of requests to the Hub, for people."""

from __future__ import annotations

from pathlib import Path

from medusa_core.errors import (
    AccessError,
    AnswerError,
    DiskFullError,
    HubError,
    NetworkError,
    NotFoundError,
)
from medusa_core.hub.boundary import printable
from medusa_core.hub.settings import HUB_ENDPOINT, HubSettings


def access_error(settings: HubSettings, repo: str) -> AccessError:
    """Make the error for a gated repository: a token is needed, or terms are to be accepted."""
    return AccessError(
        f"{repo} is gated: its owner asks who you are.",
        f"Accept its terms at {settings.terms_url(repo)}, then enter a token of your account.",
        url=settings.terms_url(repo),
    )


def unknown_token() -> AccessError:
    """Make the error for a token that the Hub rejects."""
    return AccessError(
        "Hugging Face doesn't know your token.",
        "Save another one in Settings, Models; get it from huggingface.co/settings/tokens.",
    )


def no_repository(repo: str) -> NotFoundError:
    """Make the error for a repository that doesn't exist or is private."""
    return NotFoundError(
        f"There is no repository {repo}, or you may not see it.",
        "Check the name; private ones need a token.",
    )


def unreachable(settings: HubSettings, reason: str) -> NetworkError:
    """Make the error for a Hub that can't be reached."""
    name = "Hugging Face" if settings.endpoint == HUB_ENDPOINT else printable(settings.endpoint)
    return NetworkError(
        f"Can't reach {name}. Are you online?",
        f"It may also be the proxy or HF_ENDPOINT: {printable(reason)}.",
    )


def unreadable(source: str, reason: str) -> AnswerError:
    """Make the error for a malformed response of the Hub.

    Args:
        source: Subject of the request, such as a repository.
        reason: Defect of the response, as a clause.
    """
    return AnswerError(
        f"The Hub's answer about {printable(source)} can't be read: {printable(reason)}.",
        "Nothing was changed. Check HF_ENDPOINT and the proxy, or try again later.",
    )


def disk_full(folder: Path, missing: int) -> DiskFullError:
    """Make the error for a disk with too little room."""
    return DiskFullError(
        f"Needs {missing / 1e9:.1f} GB more on the disk with {printable(str(folder))} "
        "(2 GB is kept free).",
        "Make room, or choose another folder; then resume: nothing is lost.",
        missing_bytes=missing,
    )


def unwritable(folder: Path, error: OSError) -> DiskFullError:
    """Make the error for a disk that is full or can't be written."""
    return DiskFullError(
        f"{printable(str(folder))} can't be written: {error.strerror or error}.",
        "Make room on the disk, or choose another folder; then resume.",
    )


def as_hub_error(settings: HubSettings, error: Exception) -> HubError:
    """Convert any failure to a `HubError`."""
    return error if isinstance(error, HubError) else unreachable(settings, type(error).__name__)
