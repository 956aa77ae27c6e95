"""The sdist: what the wheel is built of."""

from pathlib import Path

from installer.package.format import Format, Job
from installer.package.wheel import build_archive


def build_sdist(job: Job) -> Path:
    """Build `medusa_chat-VERSION.tar.gz`.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    return build_archive(job, "sdist")


SPEC = Format("sdist", "what the wheel is built of", build_sdist)
