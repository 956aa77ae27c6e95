"""A Hub on loopback: good enough for huggingface_hub itself, and it fails when it is told to.

    python -m tests.support.hub.server

Prints its port. `POST /__begin` with {"root": folder, "bytes_per_s": n} makes a new Hub of it,
whose repositories are the folders root/org/name. `POST /__faults` takes a JSON object
{file name: {"kind": ..., "times": n, ...}}; `GET /__log` gives the requests so far.
"""

import hashlib
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

CHUNK = 1 << 18
LARGE = (".safetensors", ".bin", ".pt", ".gguf")
STATUS_FAULTS = {
    "gated": (403, "GatedRepo"),
    "unauthorized": (401, "GatedRepo"),
    "missing": (404, "EntryNotFound"),
    "no_repo": (404, "RepoNotFound"),
    "bad_range": (416, ""),
    "busy": (429, ""),
    "broken": (503, ""),
}


class Hub:
    """State of the test Hub: repositories, faults and the requests so far."""

    def __init__(self, root: Path, bytes_per_s: int) -> None:
        self.root = root
        self.bytes_per_s = bytes_per_s
        self.faults: dict[str, dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._hashes: dict[tuple[Path, int, int], str] = {}
        self._budget_s = time.monotonic()

    def fault(self, name: str) -> dict[str, Any]:
        """The fault that is due for a file, used up by one."""
        with self._lock:
            fault = self.faults.get(name)
            if fault is None or fault.get("times", 1) <= 0:
                return {}
            fault["times"] = fault.get("times", 1) - 1
            return fault

    def note(self, **entry: Any) -> dict[str, Any]:
        with self._lock:
            self.log.append(entry)
        return entry

    def rate(self, nbytes: int) -> None:
        """Wait until the given number of bytes may be sent."""
        if not self.bytes_per_s:
            return
        with self._lock:
            now = time.monotonic()
            self._budget_s = max(self._budget_s, now - 0.05) + nbytes / self.bytes_per_s
            wait = self._budget_s - now
        if wait > 0:
            time.sleep(wait)

    def repos(self) -> Iterator[str]:
        for folder in sorted(self.root.glob("*/*")):
            if folder.is_dir():
                yield f"{folder.parent.name}/{folder.name}"

    def files(self, repo: str) -> list[dict[str, Any]]:
        """Return every file of a repository as the tree endpoint lists it."""
        folder = self.root / repo
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return [self.file(path, path.relative_to(folder).as_posix()) for path in paths]

    def file(self, path: Path, name: str) -> dict[str, Any]:
        size = path.stat().st_size
        entry: dict[str, Any] = {
            "type": "file",
            "path": name,
            "size": size,
            "oid": self.hash(path, "sha1"),
        }
        if path.suffix in LARGE:
            sha256 = self.hash(path, "sha256")
            entry["lfs"] = {"oid": sha256, "size": size, "pointerSize": 134}
        return entry

    def sha(self, repo: str) -> str:
        """The one commit that a repository has."""
        text = json.dumps([[f["path"], f["oid"]] for f in self.files(repo)])
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def hash(self, path: Path, kind: str) -> str:
        status = path.stat()
        key = (path / kind, status.st_size, status.st_mtime_ns)
        if key not in self._hashes:
            # A large file's git hash names its pointer; any stable text will do for that.
            if kind == "sha1" and path.suffix in LARGE:
                text = f"pointer {path} {status.st_mtime_ns}".encode()
                self._hashes[key] = hashlib.sha1(text, usedforsecurity=False).hexdigest()
            else:
                self._hashes[key] = _file_hash(path, kind)
        return self._hashes[key]


def _file_hash(path: Path, kind: str) -> str:
    digest = hashlib.new(kind, usedforsecurity=False)
    if kind == "sha1":
        digest.update(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    return digest.hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Handler of one connection."""

    protocol_version = "HTTP/1.1"
    newest: Hub
    hub: Hub

    def setup(self) -> None:
        """Keep the Hub of the connection's test even if another one starts."""
        super().setup()
        self.hub = getattr(type(self), "newest", Hub(Path(), 0))

    def do_GET(self) -> None:
        self._route("GET")

    def do_HEAD(self) -> None:
        self._route("HEAD")

    def do_POST(self) -> None:
        self._route("POST")

    def log_message(self, *args: Any) -> None:
        """Print nothing; the requests are recorded instead."""

    def _route(self, method: str) -> None:
        parts = urlsplit(self.path)
        path, query = unquote(parts.path), parse_qs(parts.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/__begin":
            begin = json.loads(body)
            type(self).newest = Hub(Path(begin["root"]), begin["bytes_per_s"])
            self._json({})
            return
        if path == "/__faults":
            self.hub.faults = json.loads(body)
            self._json({})
            return
        if path == "/__log":
            self._json(list(self.hub.log))
            return
        entry = self.hub.note(
            method=method,
            path=path,
            range=self.headers.get("Range"),
            auth=bool(self.headers.get("Authorization")),
            sent=0,
        )
        if path.startswith("/api/models"):
            self._api(path.removeprefix("/api/models").strip("/"), query, body)
            return
        if "/resolve/" in path:
            self._resolve(path.strip("/"), method, entry)
            return
        self._fail(404, "RepoNotFound")
        return

    def _api(self, rest: str, query: dict[str, list[str]], body: bytes) -> None:
        if not rest:
            self._search(query)
            return
        repo, _, action = self._split(rest)
        fault = self.hub.fault(f"api:{repo}")
        if fault:
            self._fault_status(fault)
            return
        if repo not in self.hub.repos():
            self._fail(404, "RepoNotFound")
            return
        kind, _, revision = action.partition("/")
        sha = self.hub.sha(repo)
        if revision and revision.split("/")[0] not in ("main", sha):
            self._fail(404, "RevisionNotFound")
            return
        files = self.hub.files(repo)
        if kind == "tree":
            self._json(files)
            return
        if kind == "paths-info":
            wanted = set(_paths(body))
            self._json([file for file in files if file["path"] in wanted])
            return
        self._json(self._info(repo, sha, files))
        return

    def _info(self, repo: str, sha: str, files: list[dict[str, Any]]) -> dict[str, Any]:
        siblings = [
            {
                "rfilename": file["path"],
                "size": file["size"],
                "blobId": file["oid"],
                **({"lfs": _lfs(file["lfs"])} if "lfs" in file else {}),
            }
            for file in files
        ]
        return {
            "id": repo,
            "modelId": repo,
            "sha": sha,
            "private": False,
            "gated": False,
            "downloads": 1000,
            "likes": 10,
            "tags": ["llama", *self._tags(repo)],
            "lastModified": "2026-01-02T03:04:05.000Z",
            "siblings": siblings,
        }

    def _tags(self, repo: str) -> list[str]:
        """Return the `tag: …` and `base_model: …` lines of a repository's card."""
        card = self.hub.root / repo / "README.md"
        lines = card.read_text(encoding="utf-8").splitlines() if card.exists() else []
        bases = [line.replace(": ", ":") for line in lines if line.startswith("base_model: ")]
        return [*bases, *(line.removeprefix("tag: ") for line in lines if line.startswith("tag: "))]

    def _search(self, query: dict[str, list[str]]) -> None:
        words = query.get("search", [""])[0].lower().split()
        wanted = set(query.get("filter", []))
        found = [
            repo
            for repo in self.hub.repos()
            if all(word in repo.lower() for word in words) and wanted <= set(self._tags(repo))
        ]
        limit = int(query.get("limit", ["20"])[0])
        self._json([self._info(repo, self.hub.sha(repo), []) for repo in found[:limit]])

    def _resolve(self, path: str, method: str, entry: dict[str, Any]) -> None:
        repo, _, rest = path.partition("/resolve/")
        _, _, name = rest.partition("/")
        file = self.hub.root / repo / name
        if repo not in self.hub.repos() or ".." in name:
            self._fail(404, "RepoNotFound")
            return
        if not file.is_file():
            self._fail(404, "EntryNotFound")
            return
        fault = self.hub.fault(name) if method == "GET" else {}
        if fault.get("kind") == "silent":
            time.sleep(fault.get("seconds", 3600))
            return
        if fault.get("kind") in STATUS_FAULTS:
            self._fault_status(fault)
            return
        self._send_file(repo, file, name, method, entry, fault)
        return

    def _send_file(
        self, repo: str, file: Path, name: str, method: str, entry: dict[str, Any], fault: Any
    ) -> None:
        reported = self.hub.file(file, name)
        etag = reported["lfs"]["oid"] if "lfs" in reported else reported["oid"]
        kind = fault.get("kind", "")
        size = reported["size"]
        start, end = _range(self.headers.get("Range"), size)
        if start >= size > 0:
            self._fail(416, "")
            return
        if kind == "whole_for_range":
            start, end = 0, size
        partial = self.headers.get("Range") and kind != "whole_for_range"
        self.send_response(206 if partial else 200)
        self.send_header("X-Repo-Commit", self.hub.sha(repo))
        self.send_header("ETag", f'"{"changed" if kind == "changed_etag" else etag}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(end - start))
        if partial:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        if method == "GET":
            self._send_bytes(file, start, end, entry, fault)

    def _send_bytes(
        self, file: Path, start: int, end: int, entry: dict[str, Any], fault: Any
    ) -> None:
        kind, after = fault.get("kind", ""), fault.get("after", 0)
        with file.open("rb") as source:
            source.seek(start)
            at = start
            while at < end:
                chunk = source.read(min(CHUNK, end - at))
                if kind in ("truncated", "stall") and at - start + len(chunk) > after:
                    self.wfile.write(chunk[: max(0, after - (at - start))])
                    self.wfile.flush()
                    if kind == "stall":
                        time.sleep(fault.get("seconds", 3600))
                    self.close_connection = True
                    return
                if kind == "flipped" and at == start:
                    chunk = bytes([chunk[0] ^ 1]) + chunk[1:]
                self.hub.rate(len(chunk))
                self.wfile.write(chunk)
                at += len(chunk)
                entry["sent"] += len(chunk)

    def _fault_status(self, fault: dict[str, Any]) -> None:
        status, code = STATUS_FAULTS[fault["kind"]]
        headers = {"Retry-After": str(fault["retry_after"])} if "retry_after" in fault else {}
        self._fail(status, code, headers)

    def _fail(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
            self.send_header("X-Error-Message", code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, value: object) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def _split(self, rest: str) -> tuple[str, str, str]:
        parts = rest.split("/")
        return "/".join(parts[:2]), "/", "/".join(parts[2:])


def _lfs(lfs: dict[str, Any]) -> dict[str, Any]:
    return {"sha256": lfs["oid"], "size": lfs["size"], "pointerSize": lfs["pointerSize"]}


def _range(header: str | None, size: int) -> tuple[int, int]:
    if not header:
        return 0, size
    first, _, last = header.removeprefix("bytes=").partition("-")
    return int(first), min(size, int(last) + 1) if last else size


def _paths(body: bytes) -> list[str]:
    try:
        paths = json.loads(body)["paths"]
    except ValueError:
        paths = parse_qs(body.decode())["paths"]
    return paths if isinstance(paths, list) else [paths]


class Server(ThreadingHTTPServer):
    """Quiet about clients that went away: they were killed on purpose."""

    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        """A connection whose send buffer stays small: what waits in it counts as sent."""
        connection, address = super().get_request()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main() -> int:
    """Serve until killed."""
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
