"""What isn't installed unless somebody asks for it, and what is said where it is missing."""

import sys
import tomllib
from pathlib import Path

import pytest

from medusa_core import __version__
from medusa_core.__main__ import main
from medusa_core.errors import MissingExtraError
from medusa_core.runtime.cluster.ray_setup import TOKEN_VARIABLE, load_ray
from medusa_core.system import extras, installation
from medusa_core.system.extras import SERVER_EXTRA, Extra
from tests.benchmarks.plots import new_picture

ROOT = Path(__file__).resolve().parents[3]
ALL = [one for one in vars(extras).values() if isinstance(one, Extra)]


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make modules look uninstalled."""
    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize("extra", ALL, ids=lambda extra: extra.modules[0])
def test_each_extra_is_declared_by_the_package(extra: Extra) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = " ".join(project["optional-dependencies"][extra.name])
    assert all(name.replace("_", "-") in lines.replace("_", "-") for name in extra.modules)


def test_serve_says_which_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "starlette", "uvicorn")
    assert main(["serve", "--port", "0"]) == 1
    said = capsys.readouterr().err
    assert "starlette, uvicorn" in said
    assert "[server]" in said


def test_plots_and_clusters_say_which_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "matplotlib", "ray")
    with pytest.raises(MissingExtraError, match=r"\[plots\]"):
        new_picture(1)
    monkeypatch.setenv(TOKEN_VARIABLE, "0" * 64)
    with pytest.raises(MissingExtraError, match=r"\[cluster\]"):
        load_ray("127.0.0.1")


def test_the_install_command_depends_on_how_the_program_was_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "starlette")

    def hint() -> str:
        with pytest.raises(MissingExtraError) as caught:
            SERVER_EXTRA.need()
        return caught.value.hint

    assert 'pip install -e ".[server]"' in hint()
    monkeypatch.setattr(installation, "is_checkout", lambda: False)
    assert 'pip install "medusa-chat[server]"' in hint()
    assert f"--force-reinstall medusa_chat-{__version__}-py3" in installation.repair_command()
    monkeypatch.setenv(installation.BOOTSTRAP_VARIABLE, str(tmp_path / "launch.py"))
    assert f"{tmp_path / 'uv'} pip install --python" in hint()
    assert installation.repair_command() == "medusa repair"


def test_the_install_command_works_in_each_windows_shell(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """cmd.exe knows double quotes only; PowerShell doesn't run what a line's first quotes name."""
    monkeypatch.setattr(sys, "executable", r"C:\Users\Zoë Übel\python.exe")
    monkeypatch.setattr(installation, "is_checkout", lambda: False)
    assert installation.command_for_extra("server") == 'pip install "medusa-chat[server]"'
    launcher = tmp_path / "Medusa Chat" / "launch.py"
    monkeypatch.setenv(installation.BOOTSTRAP_VARIABLE, str(launcher))
    line = installation.command_for_extra("server", "win32")
    assert "'" not in line
    first, *quoted = line.split('"')[:-1]
    assert first == "cmd /c call "  # with a quote behind /c it would drop the first and the last
    assert quoted[::2] == [
        str(launcher.with_name("uv.exe")),
        r"C:\Users\Zoë Übel\python.exe",
        "medusa-chat[server]",
    ]
