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
from medusa_core.i18n import tr


def access_error(settings: HubSettings, repo: str) -> AccessError:
    """Make the error for a gated repository: a token is needed, or terms are to be accepted."""
    return AccessError(
        tr("{0} is gated: its owner asks who you are.", repo),
        tr(
            "Accept its terms at {0}, then enter a token of your account.", settings.terms_url(repo)
        ),
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
        tr("There is no repository {0}, or you may not see it.", repo),
        "Check the name; private ones need a token.",
    )


def unreachable(settings: HubSettings, reason: str) -> NetworkError:
    """Make the error for a Hub that can't be reached."""
    name = "Hugging Face" if settings.endpoint == HUB_ENDPOINT else printable(settings.endpoint)
    return NetworkError(
        tr("Can't reach {0}. Are you online?", name),
        tr("It may also be the proxy or HF_ENDPOINT: {0}.", printable(reason)),
    )


def unreadable(source: str, reason: str) -> AnswerError:
    """Make the error for a malformed response of the Hub.

    Args:
        source: Subject of the request, such as a repository.
        reason: Defect of the response, as a clause.
    """
    return AnswerError(
        tr("The Hub's answer about {0} can't be read: {1}.", printable(source), printable(reason)),
        "Nothing was changed. Check HF_ENDPOINT and the proxy, or try again later.",
    )


def disk_full(folder: Path, missing: int) -> DiskFullError:
    """Make the error for a disk with too little room."""
    return DiskFullError(
        tr(
            "Needs {0:.1f} GB more on the disk with {1} (2 GB is kept free).",
            missing / 1e9,
            printable(str(folder)),
        ),
        "Make room, or choose another folder; then resume: nothing is lost.",
        missing_bytes=missing,
    )


def unwritable(folder: Path, error: OSError) -> DiskFullError:
    """Make the error for a disk that is full or can't be written."""
    return DiskFullError(
        tr("{0} can't be written: {1}.", printable(str(folder)), error.strerror or error),
        "Make room on the disk, or choose another folder; then resume.",
    )


def as_hub_error(settings: HubSettings, error: Exception) -> HubError:
    """Convert any failure to a `HubError`."""
    return error if isinstance(error, HubError) else unreachable(settings, type(error).__name__)
