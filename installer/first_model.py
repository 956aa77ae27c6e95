"""The model of the first start: the program that has just been set up fetches it."""

from installer.console import say
from installer.errors import SetupError
from installer.layout import Layout
from installer.lock import installation_lock
from installer.model_file import NAME, PULL, has_first_model
from installer.process import Runner

INTERRUPTED_STATUS = 130


def provide_first_model(layout: Layout, runner: Runner) -> None:
    """Fetch the model where it isn't; where it can't be had, say so and go on without it.

    Raises:
        KeyboardInterrupt: the user ended it.
    """
    if has_first_model(layout.models):
        return
    status = 1
    try:
        with installation_lock(layout.lock):
            # Another process may have fetched it while this one waited.
            if has_first_model(layout.models):
                return
            say(f"Fetching {NAME} (licence Apache-2.0, 93 MB), the model of the first start.")
            status = runner.attach([str(layout.python), *PULL])  # which says what goes wrong
    except SetupError as error:
        say(error.message)
    if status == INTERRUPTED_STATUS:
        raise KeyboardInterrupt
    if status != 0:
        say(
            "The small demo model Llama-Pebble takes its place; the next start tries again "
            "(--no-model does without)."
        )
