"""Imitates a mirror of Pythons on loopback: `mirror.py FILE SYSTEM` prints its address and serves.

It has one archive. Under `/mirror` it answers every name with it, in the layout that uv's own list
has; uv then compares the bytes with those it knows. `/list.json` is a list of its own, with the
bytes of that archive.

Source: uv's documentation of `--mirror` and of `UV_PYTHON_DOWNLOADS_JSON_URL`.
"""

import hashlib
import http.server
import json
import sys
from pathlib import Path

NAME = "cpython-3.13.2"


def listing(archive: bytes, address: str, system: str) -> bytes:
    """A list of downloads as uv reads it, with one Python."""
    entry = {
        "name": "cpython",
        "arch": {"family": "x86_64", "variant": None},
        "os": system,
        "libc": "none",
        "major": 3,
        "minor": 13,
        "patch": 2,
        "prerelease": "",
        "url": f"{address}/own/python.tar.gz",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "variant": None,
        "build": "20250302",
    }
    return json.dumps({f"{NAME}-{system}-x86_64-none": entry}).encode()


def main() -> None:
    """Serve until this process is ended."""
    archive, system = Path(sys.argv[1]).read_bytes(), sys.argv[2]

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = listing(archive, address, system) if "list.json" in self.path else archive
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
