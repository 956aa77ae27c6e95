"""Puts the chosen build of torch into the environment, before anything that depends on it."""

import re
import sys
from collections.abc import Mapping

from installer.console import say
from installer.layout import Layout
from installer.process import Runner
from installer.torch_choice import TorchBuild, TorchChoice

PROBE_TIMEOUT_S = 12.0
NOT_COMPILED = "--no-compile"  # all modules are compiled at the end, on all cores
PROBE_ENV: Mapping[str, str] = {"UV_HTTP_TIMEOUT": "8", "UV_HTTP_RETRIES": "0"}


def pinned(layout: Layout, name: str) -> str:
    """The requirement `name==version` as constraints.txt has it.

    Raises:
        LookupError: it is not pinned.
    """
    pattern = re.compile(rf"^{re.escape(name)}==\S+", re.MULTILINE)
    found = pattern.search(layout.constraints.read_text(encoding="utf-8"))
    if not found:
        raise LookupError(f"{name} is not pinned in {layout.constraints.name}")
    return found[0]


def installed_torch(layout: Layout) -> str | None:
    """Version of torch in the environment with its build (`2.13.0+cu126`), from its metadata."""
    for record in layout.site_packages.glob("torch-*.dist-info/RECORD"):
        return record.parent.name.removeprefix("torch-").removesuffix(".dist-info")
    return None


def is_satisfied(layout: Layout, build: TorchBuild) -> bool:
    """Whether the pinned torch is there already, in this build."""
    version = installed_torch(layout)
    if version is None:
        return False
    number, _, tag = version.partition("+")
    if number != pinned(layout, "torch").partition("==")[2]:
        return False
    # PyPI's wheels carry no tag; a tag that contradicts the build means another build.
    return build is TorchBuild.PIP or tag == build.value


def install_torch(layout: Layout, runner: Runner, choice: TorchChoice) -> TorchBuild:
    """Install the pinned torch in the chosen build, or through pip where that cannot be reached.

    Args:
        layout: paths of the checkout; its environment exists.
        runner: runs pip and uv.
        choice: the build wanted.

    Returns:
        The build that was installed: the one wanted or PIP.
    """
    say(f"torch: {choice.build.value} build. Reason: {choice.reason}.")
    if is_satisfied(layout, choice.build):
        say("It is installed already.")
        return choice.build
    if choice.build is TorchBuild.PIP:
        _install_through_pip(layout, runner)
        return TorchBuild.PIP
    runner.stream([*_pip(layout), "install", pinned(layout, "uv")])
    command = [str(layout.program("uv")), "pip", "install", "--python", str(layout.python)]
    command += [f"--torch-backend={choice.build.value}", "--constraint", str(layout.constraints)]
    # Without this uv keeps a torch of the right number in the wrong build.
    command += ["--reinstall-package", "torch", pinned(layout, "torch")]
    probe = runner.capture([*command, "--no-deps", "--dry-run"], PROBE_TIMEOUT_S, PROBE_ENV)
    if probe.status == 0:
        say("Installing torch; a CUDA build takes some minutes.")
        runner.stream(command)
        return choice.build
    say(f"The index of that build cannot be reached ({_reason(probe.text)}).")
    say("torch comes through pip's own configuration instead. " + _warning(choice.build))
    _install_through_pip(layout, runner)
    return TorchBuild.PIP


def _install_through_pip(layout: Layout, runner: Runner) -> None:
    """Let pip find the pinned torch as it is configured; a torch in another build is replaced."""
    say("Installing torch.")
    reinstall = ["--force-reinstall", "--no-deps"] if installed_torch(layout) else []
    constraint = ["--constraint", str(layout.constraints)]
    runner.stream(
        [*_pip(layout), "install", NOT_COMPILED, *reinstall, *constraint, pinned(layout, "torch")]
    )
    say(f"pip gave torch {installed_torch(layout)}.")


def _pip(layout: Layout) -> list[str]:
    return [str(layout.python), "-m", "pip", "--disable-pip-version-check"]


def _reason(output: str) -> str:
    """The innermost cause in uv's output, or that it took too long."""
    causes = re.findall(r"(?:cause|Caused by): (.+)", output)
    if causes:
        return str(causes[-1]).strip()
    return "timed out" if "timed out" in output else "no answer"


def _warning(wanted: TorchBuild) -> str:
    """What pip's torch may be, where it differs from what was wanted."""
    if wanted is TorchBuild.CU126:
        return "An ordinary PyPI build does not run on this GPU: the processor will do the work."
    if sys.platform == "win32":
        return "An ordinary PyPI build is for the processor only." if wanted.is_cuda else ""
    if wanted is TorchBuild.CPU and sys.platform == "linux":
        return "From an ordinary PyPI this is the CUDA build: it runs too, but takes 5 GB more."
    return ""
