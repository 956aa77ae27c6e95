"""Imitates a mirror of Pythons on loopback: `mirror.py FILE SYSTEM` prints its address and serves.

Under `/mirror` it answers every name, in the layout that uv's own list has, with an archive of
nothing; uv compares its bytes with those it knows. `/list.json` is a list of its own, which has the
file that was given.

Source: uv's documentation of `--mirror` and of `UV_PYTHON_DOWNLOADS_JSON_URL`.
"""

import hashlib
import http.server
import io
import json
import sys
import tarfile
from pathlib import Path

NAME = "cpython-3.13.2"
PLACE = "/own/python.tar.gz"


def listing(archive: bytes, address: str, system: str) -> bytes:
    """Return a list of downloads as uv reads it, with one Python."""
    entry = {
        "name": "cpython",
        "arch": {"family": "x86_64", "variant": None},
        "os": system,
        "libc": "none",
        "major": 3,
        "minor": 13,
        "patch": 2,
        "prerelease": "",
        "url": address + PLACE,
        "sha256": hashlib.sha256(archive).hexdigest(),
        "variant": None,
        "build": "20250302",
    }
    return json.dumps({f"{NAME}-{system}-x86_64-none": entry}).encode()


def empty_archive() -> bytes:
    """Return a packed empty folder `python`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        folder = tarfile.TarInfo("python")
        folder.type = tarfile.DIRTYPE
        folder.mode = 0o755
        archive.addfile(folder)
    return packed.getvalue()


def main() -> None:
    """Serve until this process is ended."""
    archive, system, nothing = Path(sys.argv[1]).read_bytes(), sys.argv[2], empty_archive()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {PLACE: archive, "/list.json": listing(archive, address, system)}
            body = known.get(self.path, nothing)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    address = "http:" + f"//127.0.0.1:{server.server_address[1]}"
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
