"""Limits of what is read from the Hub, which may answer anything."""

from __future__ import annotations

MAX_JSON_BYTES = 64 << 20  # decompressed; the longest listings of models have a few megabytes
MAX_JSON_S = 120.0  # from request to last byte
MAX_LISTED_FILES = 100_000
MAX_FILE_BYTES = 1 << 50

MAX_NAME_BYTES = 255  # a component of a path in common file systems
MAX_PATH_BYTES = 1024
MAX_REPO_CHARS = 96

MIN_BYTES_PER_S = 2048.0  # a server that sends less over a minute counts as silent
MIN_RATE_WINDOW_S = 60.0
WORTHWHILE_BYTES = 1 << 20  # an attempt that brought as much doesn't count as failed
MAX_RESTARTS = 3  # of a file from its first byte, if the server can't resume it
MAX_RETRY_AFTER_S = 300.0

SMALL_BYTES = 1 << 20  # a file whose request takes longer than its transfer
SMALL_PER_CONNECTION = 8  # small files at a time in place of a large one

SHOWN_CHARS = 120  # of an untrusted name in a message
