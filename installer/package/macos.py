"""The application bundle for macOS on Apple silicon, in an archive with what installs it."""

import plistlib
import shutil
import stat
import zipfile
from pathlib import Path

from installer.console import say
from installer.layout import program_version
from installer.package.format import Format, Job
from installer.package.icons import ICNS_TYPES, draw_pictures, icns_file
from installer.package.wheel import fill_program
from installer.package.windows import PYTHON

SOURCES = Path("installer") / "macos"
SYSTEM = "macos-aarch64"  # PyTorch isn't made for Intel Macs any more
BUNDLE = "Medusa Chat.app"
APP_ID = "org.medusachat.MedusaChat"
GGUF_TYPE = f"{APP_ID}.gguf"
OLDEST_SYSTEM = "14.0"  # of PyTorch's packages
PROGRAMS = ("medusa-chat", "medusa")
COMMANDS = ("install.command", "uninstall.command")
ICON = "medusa-chat.icns"
EXECUTABLE, PLAIN = 0o755, 0o644
# The first day that ZIP knows: nobody asks how old these files are.
TIME = (1980, 1, 1, 0, 0, 0)
UNIX = 3


def build_macos(job: Job) -> Path:
    """Build `MedusaChat-VERSION-macos-aarch64.zip`; from the same files the same bytes.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    version, archive = program_version(job.layout), job.work / "archive"
    contents = archive / BUNDLE / "Contents"
    fill_program(job, contents / "Resources", SYSTEM)
    icon = icns_file(draw_pictures(job, tuple(ICNS_TYPES.values())))
    (contents / "Resources" / ICON).write_bytes(icon)
    write_bundle(job.layout.root / SOURCES, contents, version)
    write_commands(job.layout.root / SOURCES, archive)
    built = job.out / f"MedusaChat-{version}-{SYSTEM}.zip"
    pack(archive, built)
    say(f"{built} ({built.stat().st_size / 1e6:.1f} MB)")
    return built


def write_bundle(sources: Path, contents: Path, version: str) -> None:
    """Write the files that make a folder an application: its programs and Info.plist."""
    programs = contents / "MacOS"
    programs.mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copyfile(sources / "launcher.sh", programs / name)
        (programs / name).chmod(EXECUTABLE)
    (contents / "Resources").mkdir(exist_ok=True)
    (contents / "Info.plist").write_bytes(plistlib.dumps(information(version)))
    (contents / "PkgInfo").write_text("APPL????", encoding="ascii")


def write_commands(sources: Path, archive: Path) -> None:
    """Write the files beside the application that install and remove it."""
    for name in COMMANDS:
        script = (sources / name).read_text(encoding="utf-8")
        (archive / name).write_text(script.replace("PYTHON_VERSION-", f"{PYTHON}-"), "utf-8")
        (archive / name).chmod(EXECUTABLE)


def information(version: str) -> dict[str, object]:
    """Return Info.plist: the application's name and the files it opens."""
    return {
        "CFBundleDevelopmentRegion": "en",
        "CFBundleDisplayName": "Medusa Chat",
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "GGUF model",
                "CFBundleTypeRole": "Viewer",
                # Offered beside other programs; none is put in another's place.
                "LSHandlerRank": "Alternate",
                "LSItemContentTypes": [GGUF_TYPE],
            }
        ],
        "CFBundleExecutable": PROGRAMS[0],
        "CFBundleIconFile": ICON,
        "CFBundleIdentifier": APP_ID,
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": "Medusa Chat",
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "LSArchitecturePriority": ["arm64"],
        "LSMinimumSystemVersion": OLDEST_SYSTEM,
        "NSHighResolutionCapable": True,
        "UTImportedTypeDeclarations": [
            {
                "UTTypeConformsTo": ["public.data"],
                "UTTypeDescription": "GGUF model",
                "UTTypeIdentifier": GGUF_TYPE,
                "UTTypeTagSpecification": {"public.filename-extension": ["gguf"]},
            }
        ],
    }


def pack(folder: Path, archive: Path) -> None:
    """Pack a folder with its executable bits for macOS."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                may_run = path.stat().st_mode & stat.S_IXUSR
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), TIME)
                entry.create_system = UNIX
                entry.compress_type = zipfile.ZIP_DEFLATED
                mode = stat.S_IFREG | (EXECUTABLE if may_run else PLAIN)
                entry.external_attr = mode << 16
                packed.writestr(entry, path.read_bytes())


SPEC = Format("macos", "an application for macOS on Apple silicon", build_macos)
