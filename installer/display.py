"""Can a window open here?"""

from collections.abc import Mapping, Sequence

from installer.errors import SetupError

NO_DISPLAY_STATUS = 2


def chosen_platform(environ: Mapping[str, str], app_args: Sequence[str]) -> str:
    """The Qt platform that was asked for by argument or variable, in lower case; else empty."""
    for place, argument in enumerate(app_args):
        name, _, value = argument.partition("=")
        if name in ("-platform", "--platform"):
            following = app_args[place + 1 : place + 2]
            return (value or "".join(following)).partition(":")[0].lower()
    return environ.get("QT_QPA_PLATFORM", "").partition(":")[0].partition(";")[0].lower()


def expected_platform(
    system: str, environ: Mapping[str, str], app_args: Sequence[str]
) -> str | None:
    """The Qt platform that the window will use.

    Args:
        system: `sys.platform`.
        environ: environment variables.
        app_args: arguments of the application.

    Returns:
        Its name; "" for the system's own; None if there is no display.
    """
    chosen = chosen_platform(environ, app_args)
    if chosen or not system.startswith(("linux", "freebsd")):
        return chosen
    if environ.get("DISPLAY"):
        return "xcb"
    if environ.get("WAYLAND_DISPLAY"):
        return "wayland"
    return None


def no_display(medusa: str) -> SetupError:
    """The answer to `run` on a machine without a display.

    Args:
        medusa: the command line's program, as typed.
    """
    return SetupError(
        "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the window "
        "cannot open. The command line works without one.",
        f"{medusa} run\nOr, over ssh, connect with ssh -X and run again.",
        exit_status=NO_DISPLAY_STATUS,
    )
