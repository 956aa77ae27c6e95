"""What `medusa` and `medusa-chat` of a system package call: `launch.py NAME ARGUMENTS...`.

Written so that Pythons as old as 3.6 can read it: they get a sentence instead of a SyntaxError.
"""

import sys
from pathlib import Path

OLDEST = (3, 10)


def main():  # type: () -> int
    """Hand over to the bootstrap beside this file; returns the exit status."""
    if sys.version_info < OLDEST:
        sys.stderr.write(
            "Medusa Chat needs Python {}.{} or newer to set itself up; this is {}.{}.\n".format(
                *(OLDEST + tuple(sys.version_info[:2]))
            )
        )
        return 1
    program = Path(__file__).resolve().parent
    sys.path[:1] = [str(program)]
    sys.dont_write_bytecode = True  # the folder belongs to the system
    from installer.bootstrap import cli

    return cli.main(program, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
