"""Upper bounds on what is read from the Hub."""

from __future__ import annotations

MOST_JSON_BYTES = 64 << 20  # unfolded; the longest listings of models have a few megabytes
MOST_JSON_S = 120.0  # from asking to the last byte of it
MOST_LISTED_FILES = 100_000
MOST_FILE_BYTES = 1 << 50

MOST_NAME_BYTES = 255  # one part of a path, as file systems have it
MOST_PATH_BYTES = 1024
MOST_REPO_CHARS = 96

LEAST_BYTES_PER_S = 2048.0  # below this over a minute a server is as good as silent
LEAST_RATE_OVER_S = 60.0
WORTHWHILE_BYTES = 1 << 20  # a try that brought as much doesn't count as failed
MOST_RESTARTS = 3  # times that a file is begun anew, since the server doesn't go on with it
MOST_RETRY_AFTER_S = 300.0

SMALL_BYTES = 1 << 20  # a file that takes less time to arrive than to be asked for
SMALL_PER_CONNECTION = 8  # such files at a time in place of a large one

SHOWN_CHARS = 120  # of a foreign name in a message
