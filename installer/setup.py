"""The set-up: leaves an environment with everything in it, or says what stands in the way."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from installer.console import say
from installer.environment import missing_packages, prepare_environment
from installer.errors import CommandError, SetupError
from installer.gpu import detect_gpus
from installer.layout import Layout
from installer.lock import installation_lock
from installer.process import Runner
from installer.requirements import name_of, read_requirements
from installer.space import check_space
from installer.stamp import Stamp, fingerprint, read_stamp, write_stamp
from installer.torch_choice import TorchBuild, TorchChoice, choose_torch
from installer.torch_install import NOT_COMPILED, install_torch, is_satisfied

AUTO = "auto"
CHECK_TIMEOUT_S = 180.0
COMPILE_TIMEOUT_S = 900.0
NEVER_IMPORTED = r"[\\/]tests?[\\/]"  # tests that packages bring
NO_NETWORK = (
    "name resolution",
    "Name or service not known",
    "NewConnectionError",
    "ConnectTimeout",
    "Connection refused",
    "Network is unreachable",
    "getaddrinfo failed",
    "nodename nor servname",
    "ProxyError",
    "dns error",
)


@dataclass(frozen=True, slots=True)
class Request:
    """What the environment must offer.

    Attributes:
        with_tests: the tools of `installer test` too.
        torch: value of `--torch`: a build, "auto" to look at the GPUs again, or None to keep what
            was chosen last.
        with_model: the model of the first start too.
    """

    with_tests: bool = False
    torch: str | None = None
    with_model: bool = True


def ensure_ready(layout: Layout, runner: Runner, request: Request) -> None:
    """Install what is missing; does nothing, in milliseconds, where nothing is.

    Raises:
        SetupError: something on this machine stands in the way.
    """
    if is_ready(layout, request):
        return
    with installation_lock(layout.lock):
        # Another process may have installed it while this one waited.
        if not is_ready(layout, request):
            _install(layout, runner, request)


def is_ready(layout: Layout, request: Request) -> bool:
    """Whether a complete installation of the present requirements fulfils the request."""
    stamp = read_stamp(layout)
    if stamp is None or stamp.fingerprint != fingerprint(layout):
        return False
    if request.with_tests and not stamp.with_tests:
        return False
    if request.torch == AUTO:
        return False
    if request.torch and not is_satisfied(layout, TorchBuild(request.torch)):
        return False
    names = [name_of(line) for line in read_requirements(layout, with_tests=stamp.with_tests)]
    return not missing_packages(layout, names)


def _install(layout: Layout, runner: Runner, request: Request) -> None:
    earlier = read_stamp(layout)
    requested = request.torch or (earlier.torch_requested if earlier else AUTO)
    with_tests = request.with_tests or (earlier is not None and earlier.with_tests)
    choice = _choose(runner, requested)
    if layout.unfinished.exists() or not is_satisfied(layout, choice.build):
        check_space(layout.root, choice.build)
    prepare_environment(layout, runner)
    with _marked_unfinished(layout):
        installed = install_torch(layout, runner, choice)
        _install_requirements(layout, runner, with_tests=with_tests)
        _compile(layout, runner)
        _check(layout, runner)
    write_stamp(layout, Stamp(fingerprint(layout), with_tests, requested, installed.value))
    say("The installation is complete.")


def _choose(runner: Runner, requested: str) -> TorchChoice:
    if requested == AUTO:
        return choose_torch(sys.platform, detect_gpus(runner))
    build = TorchBuild(requested)
    if sys.platform == "darwin" and build.is_cuda:
        raise SetupError("There is no CUDA on macOS.", "python3 installer run --torch auto")
    return TorchChoice(build, "asked for by --torch")


def _install_requirements(layout: Layout, runner: Runner, *, with_tests: bool) -> None:
    """Everything but torch, which is there already and stays: its version is the pinned one."""
    requirements = read_requirements(layout, with_tests=with_tests)
    say(
        f"Installing {len(requirements)} packages and what they need; a few minutes the first time."
    )
    command = [str(layout.python), "-m", "pip", "--disable-pip-version-check", "install"]
    runner.stream([*command, NOT_COMPILED, "--constraint", str(layout.constraints), *requirements])


def _compile(layout: Layout, runner: Runner) -> None:
    """Compile all modules on all cores; pip does it on one, and uv not at all.

    A package may hold files that are none of this Python; they matter as little as to pip.
    """
    command = [str(layout.python), "-m", "compileall", "-q", "-j", "0", "-x", NEVER_IMPORTED]
    runner.capture([*command, str(layout.site_packages)], COMPILE_TIMEOUT_S)


def _check(layout: Layout, runner: Runner) -> None:
    """Let pip look for contradictions, and load the part that fails most often.

    Raises:
        SetupError: packages contradict each other or torch does not load.
    """
    python = str(layout.python)
    consistent = runner.capture([python, "-m", "pip", "check"], CHECK_TIMEOUT_S)
    if consistent.status != 0:
        raise SetupError(
            f"The installed packages contradict each other:\n{consistent.text.strip()}",
            "Delete .venv, then run again.",
        )
    loaded = runner.capture([python, "-c", "import torch"], CHECK_TIMEOUT_S)
    if loaded.status != 0:
        raise SetupError(
            f"torch is installed but does not load:\n{loaded.text.strip()[-600:]}",
            "python3 installer run --torch cpu",
        )


@contextmanager
def _marked_unfinished(layout: Layout) -> Iterator[None]:
    """Mark the environment while packages are written, so that a cut-off start is noticed.

    A failure to reach the network leaves what is there intact, and then the mark goes too.
    """
    layout.unfinished.touch()
    try:
        yield
    except CommandError as error:
        trouble = explain(error)
        if trouble.intact:
            layout.unfinished.unlink()
        raise SetupError(trouble.message, trouble.mend) from error
    layout.unfinished.unlink()


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failed pip or uv in words.

    Attributes:
        message: what went wrong.
        mend: what to do.
        intact: whether the environment is as it was before.
    """

    message: str
    mend: str
    intact: bool


def explain(error: CommandError) -> Trouble:
    """Turn the end of pip's or uv's output into a sentence and a remedy."""
    text = "\n".join(error.output)
    if "No space left on device" in text or "not enough space" in text:
        return Trouble(
            "The disk became full during the installation.",
            "Free some space (python3 -m pip cache purge), then run again.",
            intact=False,
        )
    if any(words in text for words in NO_NETWORK):
        return Trouble(
            "The package index could not be reached.",
            "Check the connection and the proxy (python3 -m pip config list), then run again.",
            intact=True,
        )
    end = "\n".join(error.output[-12:])
    if "No matching distribution" in text or "ResolutionImpossible" in text:
        return Trouble(
            f"A pinned package does not exist for this system or Python:\n{end}",
            "They exist for Linux with glibc 2.34, 64-bit Windows, macOS 14 on Apple silicon.",
            intact=True,
        )
    return Trouble(f"{error.message}\n{end}", "Run the same command again.", intact=False)
