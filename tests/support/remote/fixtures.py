"""Servers that answer as a test wants, and clients that ask them."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from medusa_core.client import Client
from medusa_core.messages import (
    ChatMessage,
    EndpointModel,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadRemote,
    Role,
)
from medusa_core.remote.connection import EndpointTimeouts
from medusa_core.remote.remote_engine import RemoteEngine
from tests.support.remote.fake_endpoint import FakeEndpoint

SETTINGS = GenerateSettings(rule="greedy", max_new_tokens=0)
# A test that waits for silence waits for this.
SHORT = EndpointTimeouts(connect_s=2.0, read_s=1.0, list_s=1.5)
USUAL = EndpointTimeouts()


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    """Fake endpoint that answers normally until told otherwise."""
    with FakeEndpoint() as running:
        yield running


@pytest.fixture
def self_signed(tmp_path: Path) -> Iterator[FakeEndpoint]:
    """Return a server with a self-signed certificate."""
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    make_certificate(certificate, key)
    encryption = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encryption.load_cert_chain(certificate, key)
    with FakeEndpoint(encryption) as running:
        yield running


def make_certificate(certificate: Path, key: Path) -> None:
    """Make a self-signed certificate for 127.0.0.1."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, private.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def run(work: Coroutine[Any, Any, None]) -> None:
    """Carry out a coroutine, for a bounded time."""
    asyncio.run(asyncio.wait_for(work, 240))


def load_of(endpoint: FakeEndpoint, model_id: str = "small", **more: Any) -> LoadRemote:
    """The command that loads a model of a server."""
    return LoadRemote("", "load", EndpointModel(endpoint.url, model_id, "the lab"), **more)


def no_key(*_: object) -> str:
    """Return no key for any address."""
    return ""


@asynccontextmanager
async def remote_client(
    find_key: Callable[..., str] = no_key, patience: EndpointTimeouts = USUAL
) -> AsyncIterator[Client]:
    """Client of an engine for remote models only."""
    async with Client(lambda on_event: RemoteEngine(on_event, find_key, patience)) as client:
        yield client


def asks(words: str = "Count.", **more: Any) -> Generate:
    """A command to answer."""
    return Generate("chat", "ask", (ChatMessage(Role.USER, words),), SETTINGS, **more)


async def events_of(client: Client, request: Generate) -> list[Event]:
    """Return all events of an answer."""
    async with aclosing(client.generate(request)) as events:
        return [event async for event in events]


async def done_of(client: Client, request: Generate) -> GenerationDone:
    """The last of them."""
    last = (await events_of(client, request))[-1]
    assert isinstance(last, GenerationDone)
    return last
