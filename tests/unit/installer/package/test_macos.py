"""The application for macOS: what its files promise; its scripts, with a Mac's tools imitated."""

import os
import plistlib
import re
import shutil
import stat
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

import medusa_core
from installer.layout import this_repository
from installer.package import macos
from installer.package.icons import ICNS_TYPES, icns_file
from installer.package.windows import PYTHON

LAYOUT = this_repository()
SOURCES = LAYOUT.root / macos.SOURCES
POSIX = pytest.mark.skipif(os.name == "nt", reason="its scripts are for sh")
# A Python that says how it was called.
SAYS_ITS_ARGUMENTS = '#!/bin/sh\nprintf "%s\\n" "$@" > "$SAID"\nexit "${STATUS:-0}"\n'
# uv that brings such a Python, if the mirror is right.
UV = f"""#!/bin/sh
printf '%s\\n' "$*" "mirror=${{UV_PYTHON_INSTALL_MIRROR:-}}" >> "$UV_SAID"
case ${{UV_PYTHON_INSTALL_MIRROR:-}} in *bad*) echo "error: no such mirror"; exit 2;; esac
bin="$UV_PYTHON_INSTALL_DIR/cpython-{PYTHON}.7-macos-aarch64-none/bin"
mkdir -p "$bin" && cp "$PYTHON_COPY" "$bin/python{PYTHON}"
"""
# Writes down what it asks; answers as the test says, else as somebody who clicks Cancel.
OSASCRIPT = """#!/bin/sh
cat > /dev/null
printf '%s\\n' "$2" >> "$ASKED"
[ -s "$ANSWERS" ] || exit 1
head -n 1 "$ANSWERS"
sed -i 1d "$ANSWERS"
"""


class Mac:
    """A folder that looks to the scripts like a Mac with the application on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "Home of Zoë"
        self.data = self.home / "Library" / "Application Support" / "medusa-chat-program"
        self.contents = root / "archive" / macos.BUNDLE / "Contents"
        self.home.mkdir()
        macos.write_bundle(SOURCES, self.contents, "1.2.3")
        self.tool("sysctl", "#!/bin/sh\necho 1\n")
        self.tool("osascript", OSASCRIPT)
        for name in ("open", "xattr"):
            self.tool(name, f'#!/bin/sh\necho "{name} $*" >> "$ASKED"\n')
        self.program(self.contents / "Resources" / "uv", UV)
        self.program(root / "python-copy", SAYS_ITS_ARGUMENTS)
        self.answers = root / "answers"

    def program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def tool(self, name: str, text: str) -> None:
        self.program(self.root / "bin" / name, text)

    def python(self, version: str) -> None:
        name = f"cpython-{version}-macos-aarch64-none"
        self.program(self.data / "python" / name / "bin" / f"python{PYTHON}", SAYS_ITS_ARGUMENTS)

    def said(self, name: str = "said") -> list[str]:
        path = self.root / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def run(
        self, program: Path | str, *words: str, stdin: str = "", **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        env = {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.home),
            "SAID": str(self.root / "said"),
            "UV_SAID": str(self.root / "uv-said"),
            "ASKED": str(self.root / "asked"),
            "ANSWERS": str(self.answers),
            "PYTHON_COPY": str(self.root / "python-copy"),
            **variables,
        }
        path = self.contents / "MacOS" / program if isinstance(program, str) else program
        return subprocess.run(
            [path, *words], env=env, input=stdin, capture_output=True, text=True, check=False
        )


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


def test_the_application_opens_gguf_files_and_takes_them_from_nobody(tmp_path: Path) -> None:
    macos.write_bundle(SOURCES, tmp_path / "Contents", medusa_core.__version__)
    told = plistlib.loads((tmp_path / "Contents" / "Info.plist").read_bytes())
    (files,) = told["CFBundleDocumentTypes"]
    (kind,) = told["UTImportedTypeDeclarations"]
    assert files["LSItemContentTypes"] == [kind["UTTypeIdentifier"]]
    assert kind["UTTypeTagSpecification"] == {"public.filename-extension": ["gguf"]}
    assert files["LSHandlerRank"] == "Alternate"
    assert told["CFBundleShortVersionString"] == medusa_core.__version__
    program = tmp_path / "Contents" / "MacOS" / told["CFBundleExecutable"]
    assert program.stat().st_mode & stat.S_IXUSR


def test_the_python_that_is_fetched_is_one_that_the_program_runs_with() -> None:
    project = tomllib.loads(LAYOUT.pyproject.read_text(encoding="utf-8"))["project"]
    oldest, below = re.findall(r"3\.(\d+)", project["requires-python"])
    assert int(oldest) <= int(PYTHON.removeprefix("3.")) < int(below)


def test_an_icon_holds_a_picture_for_each_type() -> None:
    pictures = {size: bytes([size % 251]) * size for size in ICNS_TYPES.values()}
    data, place, found = icns_file(pictures), 8, {}
    assert data[:4] == b"icns"
    assert int.from_bytes(data[4:8], "big") == len(data)
    while place < len(data):
        size = int.from_bytes(data[place + 4 : place + 8], "big")
        found[data[place : place + 4].decode()] = data[place + 8 : place + size]
        place += size
    assert found == {name: pictures[size] for name, size in ICNS_TYPES.items()}


@POSIX
def test_an_archive_keeps_programs_programs_and_has_the_same_bytes_again(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    for name, mode in (("below/program", 0o700), ("text", 0o600)):
        (folder / name).write_text(name, encoding="utf-8")
        (folder / name).chmod(mode)
    macos.pack(folder, tmp_path / "one.zip")
    os.utime(folder / "text", (1e9, 1e9))
    macos.pack(folder, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as packed:
        modes = {one.filename: one.external_attr >> 16 & 0o777 for one in packed.infolist()}
    assert modes == {"below/program": 0o755, "text": 0o644}


@POSIX
def test_scripts_pass_shellcheck_where_it_is_installed() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck isn't installed")
    scripts = [SOURCES / name for name in ("launcher.sh", macos.FOLDERS, *macos.COMMANDS)]
    done = subprocess.run(
        ["shellcheck", "-x", *scripts], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@POSIX
def test_the_newest_python_runs_the_bootstrap_with_what_was_typed(mac: Mac) -> None:
    for patch in ("9", "10", "x"):
        mac.python(f"{PYTHON}.{patch}")
    (mac.data / "python" / f"cpython-{PYTHON}.99-macos-aarch64-none").mkdir()  # half removed
    mac.python("3.12.30")
    done = mac.run("medusa", "chat", "a b", "*", 'ä"', STATUS="7")
    assert done.returncode == 7
    launch = str(mac.contents / "Resources" / "launch.py")
    assert mac.said() == ["-E", "-s", "-X", "utf8", launch, "medusa", "chat", "a b", "*", 'ä"']
    assert not mac.said("uv-said")


@POSIX
def test_a_terminal_is_asked_before_python_is_fetched(mac: Mac) -> None:
    declined = mac.run("medusa", "chat", stdin="n\n")
    assert declined.returncode == 2
    assert f"{mac.data}/python" in declined.stderr
    unanswered = mac.run("medusa", "chat")
    assert unanswered.returncode == 2
    assert "--yes" in unanswered.stderr
    assert not mac.said("uv-said")
    assert mac.run("medusa", "chat", stdin="y\n").returncode == 0
    assert mac.said()[-2:] == ["medusa", "chat"]
    words = f"python install --no-bin --no-progress cpython-{PYTHON}-macos-aarch64-none"
    assert mac.said("uv-said") == [words, "mirror="]


@POSIX
def test_a_mirror_of_the_environment_is_used_and_remembered(mac: Mac) -> None:
    failed = mac.run("medusa", "--yes", UV_PYTHON_INSTALL_MIRROR="file:///bad")
    assert failed.returncode == 2
    assert "error: no such mirror" in failed.stderr
    assert "UV_PYTHON_INSTALL_MIRROR" in failed.stderr
    folder = mac.root / "100% of #1"
    (folder / "python").mkdir(parents=True)
    assert mac.run("medusa", "--yes", UV_PYTHON_INSTALL_MIRROR=str(folder)).returncode == 0
    address = f"file://{mac.root}/100%25%20of%20%231/python"
    assert mac.said("uv-said")[-1] == f"mirror={address}"
    shutil.rmtree(mac.data / "python")
    assert mac.run("medusa", "--yes").returncode == 0
    assert mac.said("uv-said")[-1] == f"mirror={address}"


@POSIX
def test_the_window_asks_again_after_a_failure_and_says_what_went_wrong(mac: Mac) -> None:
    mac.answers.write_text("bad mirror\nfile:///good\n", encoding="utf-8")
    assert mac.run("medusa-chat", "model.gguf").returncode == 0
    assert mac.said("uv-said")[1::2] == ["mirror=file://bad%20mirror", "mirror=file:///good"]
    assert "error: no such mirror" in mac.said("asked")
    assert mac.said()[-2:] == ["medusa-chat", "model.gguf"]


@POSIX
def test_a_window_that_is_closed_fetches_nothing(mac: Mac) -> None:
    assert mac.run("medusa-chat").returncode == 2
    assert not mac.said("uv-said")


@POSIX
@pytest.mark.parametrize(("status", "is_told"), [("0", False), ("2", False), ("1", True)])
def test_the_window_tells_a_failed_start_with_its_reason(
    mac: Mac, status: str, is_told: bool
) -> None:
    mac.python(f"{PYTHON}.1")
    (mac.data / "log").mkdir()
    (mac.data / "log" / "start.log").write_text("ImportError: no Qt\n", encoding="utf-8")
    assert mac.run("medusa-chat", STATUS=status).returncode == int(status)
    assert ("ImportError: no Qt" in mac.said("asked")) == is_told


@POSIX
def test_an_intel_mac_is_told_that_it_is_not_served(mac: Mac) -> None:
    mac.tool("sysctl", "#!/bin/sh\nexit 1\n")
    done = mac.run("medusa", "--yes")
    assert done.returncode == 1
    assert "Apple silicon" in done.stderr


@POSIX
@pytest.mark.parametrize(
    ("named", "folder"),
    [("~/x", "{home}/x/program"), ("/{root}/y/", "/{root}/y/program"), ("  ", "{data}")],
)
def test_a_portable_folder_holds_python(mac: Mac, named: str, folder: str) -> None:
    known = {"home": mac.home, "root": mac.root, "data": mac.data}
    mac.run("medusa", MEDUSA_HOME=named.format(**known))
    assert Path(folder.format(**known), "log").is_dir()


@POSIX
def test_installing_and_removing_leaves_nothing(mac: Mac) -> None:
    archive = mac.contents.parent.parent
    for name in macos.COMMANDS:
        shutil.copy(SOURCES / name, archive / name)
    before = sorted(mac.home.rglob("*"))
    assert mac.run(archive / "install.command").returncode == 0
    installed = mac.home / "Applications" / macos.BUNDLE
    asked = mac.said("asked")
    assert asked[0].startswith("xattr -dr com.apple.quarantine")
    assert asked[-1] == f"open {installed}"
    again = mac.run(archive / "install.command")  # over itself, as an update does
    assert again.returncode == 0, again.stderr
    mac.python(f"{PYTHON}.1")
    command = mac.home / ".local" / "bin" / "medusa"
    assert mac.run(command, "a b").returncode == 0
    assert mac.said()[-2:] == ["medusa", "a b"]
    (mac.data / "versions").mkdir()
    for home in ("", " "):  # a blank one is none
        assert mac.run(archive / "uninstall.command", MEDUSA_HOME=home).returncode == 0
        assert installed.exists()  # the user answered no to everything
    for name in ("versions", "python"):  # as `medusa uninstall` does
        shutil.rmtree(mac.data / name)
    mac.program(mac.root / "python-copy", '#!/bin/sh\nrm -r "$UV_PYTHON_INSTALL_DIR"\n')
    removed = mac.run(archive / "uninstall.command", "--yes")
    assert removed.returncode == 0, removed.stderr
    left = [path for path in sorted(mac.home.rglob("*")) if not path.is_dir()]
    assert left == [path for path in before if not path.is_dir()]
    assert not installed.exists()
    assert not mac.data.exists()
