"""Starts and joins Ray clusters: with a token, without usage reports, without a dashboard."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType

from medusa_core.errors import ClusterError
from medusa_core.i18n import tr
from medusa_core.runtime.cluster.address import split_address
from medusa_core.system.extras import CLUSTER_EXTRA
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.system.resources import is_checkout, program_root
from medusa_core.system.user_folders import places

NAMESPACE, PREFIX = "medusa-layers", "layers-"
TOKEN_VARIABLE, TOKEN_FILE_VARIABLE = "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
_STORE_BYTES = 200 << 20  # for rows of a pass; Ray's default is a third of the memory
_CONNECT_TIMEOUT_S = 60.0


def token_file() -> Path:
    """Path of this user's token; the environment can set another."""
    return Path(os.environ.get(TOKEN_FILE_VARIABLE) or places().data / "cluster-token")


def make_token() -> Path:
    """Create a random token if there is none yet.

    Returns:
        Path of its file, with mode 0600.
    """
    path = token_file()
    make_own_folder(path.parent)
    if path.exists() and not path.stat().st_size:
        path.unlink()  # left by a program that was killed while writing
    if not path.exists():
        # Written under another name first, so that a file of this name is complete.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            written = Path(folder) / path.name
            opened = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(opened, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):  # another program was faster: its token counts
                os.link(written, path)
    return path


def load_ray(host: str) -> ModuleType:
    """Import Ray, configured for a cluster by environment variables.

    Args:
        host: IP address of the head node.

    Raises:
        ClusterError: There is no token.
        MissingExtraError: Ray isn't installed.
    """
    if TOKEN_VARIABLE not in os.environ:
        if not token_file().is_file():
            raise ClusterError(
                tr("There is no token for the cluster: {0} is missing.", token_file()),
                tr(
                    "Copy that file from the machine where serve-layers was started first, or set "
                    "{0}.",
                    TOKEN_VARIABLE,
                ),
            )
        os.environ[TOKEN_FILE_VARIABLE] = str(token_file())
    os.environ.update(
        RAY_AUTH_MODE="token",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_worker_niceness="0",
        RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S="0",
    )
    if ip_address(host).is_loopback:
        # Ray replaces 127.0.0.1 by a public address unless this is 0.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    elif sys.platform in ("win32", "darwin"):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "1"
    CLUSTER_EXTRA.need()
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)
    module: ModuleType = ray
    return module


class RayNode:
    """This machine's Ray node, and the connection to its cluster.

    Attributes:
        ray: The module, connected to the cluster.
        address: HOST:PORT of the head node.
    """

    def __init__(self, address: str, is_head: bool = False) -> None:
        """Start or join a cluster.

        Args:
            address: HOST:PORT of the head node.
            is_head: Start the head node on this machine.

        Raises:
            ClusterError: It can't be started or reached.
        """
        self.address = address
        host, port = split_address(address)
        self.ray = load_ray(host)
        self._process: subprocess.Popen[bytes] | None = None
        self._ip = host if is_head else _local_address(host, port)
        if is_head:
            self._start("--head", f"--port={port}", "--no-monitor")
        elif self._ip != host:  # else the head node is on this machine
            self._start(f"--address={address}")
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster, and stop the node that this object started."""
        self.ray.shutdown()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def _start(self, *arguments: str) -> None:
        """Start a Ray node as a child process."""
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *arguments]
        command += [
            f"--node-ip-address={self._ip}",
            "--num-cpus=0",
            "--num-gpus=0",
            f"--object-store-memory={_STORE_BYTES}",
        ]
        command += ["--include-log-monitor=false", "--disable-usage-stats", "--block"]
        command += ["--include-dashboard=false"] if "--head" in arguments else []
        # Actors import this program, which is installed unless it runs from a checkout.
        ours = (str(program_root()) if is_checkout() else "", os.environ.get("PYTHONPATH"))
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ours))},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches this program alone, which stops the node
        )

    def _connect(self) -> None:
        """Connect to the cluster, and wait for a node that is starting."""
        started = time.monotonic()
        self.ray.shutdown()  # of an earlier cluster
        while True:
            try:
                self.ray.init(
                    address=self.address,
                    _node_ip_address=self._ip,
                    namespace=NAMESPACE,
                    log_to_driver=False,
                    logging_level="ERROR",
                    configure_logging=False,
                )
                return
            except (OSError, RuntimeError, ValueError, self.ray.exceptions.RayError) as error:
                ended = self._process is not None and self._process.poll() is not None
                is_starting = self._process is not None and not ended
                if is_starting and time.monotonic() - started < _CONNECT_TIMEOUT_S:
                    time.sleep(0.5)
                    continue
                raise ClusterError(
                    tr(
                        "The cluster at {0} can't be reached: {1}.",
                        self.address,
                        type(error).__name__,
                    ),
                    "The port may be taken; choose another with --port."
                    if ended
                    else "Check the address and the token, and that serve-layers runs there.",
                ) from error


def _local_address(host: str, port: int) -> str:
    """Return the local IP address of a route to a host, without sending anything.

    Raises:
        ClusterError: There is no route.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as unsent:
        try:
            unsent.connect((host, port))
        except OSError as error:
            raise ClusterError(
                tr("There is no way to {0} from here.", host), "Check the address and the network."
            ) from error
        return str(unsent.getsockname()[0])
