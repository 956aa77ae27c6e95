"""Entry point of `python resources/models/llama-pebble/recipe`."""

import sys
from pathlib import Path


def main() -> int:
    """Run one command; returns the exit status."""
    here = Path(__file__).resolve().parent
    # Running a directory puts it first on the path, where our modules would hide those of others.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    sys.path[:0] = [str(here.parent), str(here.parents[3])]  # of `recipe`, of `medusa_core`
    from recipe import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
