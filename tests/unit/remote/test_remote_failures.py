"""Servers that fail, lie, hang or lead elsewhere: a clear error, within bounds."""

import json
import logging

import pytest

from medusa_core.errors import (
    EndpointAnswerError,
    EndpointBusyError,
    EndpointError,
    EndpointFailedError,
    EndpointKeyError,
    EndpointModelError,
    EndpointUnreachableError,
    MedusaError,
    OfflineError,
)
from medusa_core.messages import EndpointModel, Event, Failed, LoadRemote, StepDone, shown_text
from tests.support.remote.fake_endpoint import ANSWER, FakeEndpoint, Reply, as_reply, delta, event
from tests.support.remote.fixtures import SHORT, asks, done_of, load_of, remote_client, run

KEY = "sk-secret-of-the-test-0123456789"
PACKED = {"content-type": "text/event-stream", "content-encoding": "br"}
HTML = Reply((b"<html><body>Welcome</body></html>",), headers={"content-type": "text/html"})


def load_fails(endpoint: FakeEndpoint, kind: type[MedusaError], **more: object) -> MedusaError:
    """The error that loading ends with."""
    caught: list[MedusaError] = []

    async def work() -> None:
        async with remote_client(patience=SHORT) as client:
            with pytest.raises(kind) as failed:
                await client.load(load_of(endpoint, **more))
            caught.append(failed.value)

    run(work())
    return caught[0]


def answer_fails(
    endpoint: FakeEndpoint, reply: Reply, kind: type[MedusaError], key: str = ""
) -> tuple[MedusaError, str]:
    """The error that an answer ends with, and the text that had come."""
    caught: list[MedusaError] = []
    steps: list[StepDone] = []

    def listen(came: Event) -> None:
        if isinstance(came, StepDone):
            steps.append(came)

    async def work() -> None:
        async with remote_client(patience=SHORT) as client:
            client.listen(listen)
            await client.load(load_of(endpoint, key=key))
            endpoint.answer = reply
            with pytest.raises(kind) as failed:
                await done_of(client, asks())
            caught.append(failed.value)
            endpoint.answer = Reply(ANSWER)
            assert (await done_of(client, asks())).text == "One two three.", "the engine goes on"

    run(work())
    return caught[0], shown_text(steps[:-3] if len(steps) >= 3 else steps)


def test_an_unreachable_server_is_reported() -> None:
    with FakeEndpoint() as gone:
        pass
    error = load_fails(gone, EndpointUnreachableError)
    assert "the lab can't be reached: nothing answers there" in error.message


def test_an_unknown_host_name_is_reported() -> None:
    async def work() -> None:
        async with remote_client() as client:
            model = EndpointModel("http://nowhere.invalid/v1", "small", "the lab")
            with pytest.raises(EndpointUnreachableError):
                await client.load(LoadRemote("", "load", model))

    run(work())


def test_offline_mode_sends_nothing(endpoint: FakeEndpoint) -> None:
    error = load_fails(endpoint, OfflineError, is_offline=True)
    assert "nothing is sent to other machines" in error.message
    assert endpoint.asked == []


def test_a_missing_or_wrong_key_is_reported_without_being_shown(
    endpoint: FakeEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    endpoint.key = "another one"
    assert load_fails(endpoint, EndpointKeyError).message == "the lab wants a key."
    error = load_fails(endpoint, EndpointKeyError, key=KEY)
    assert error.message == "the lab refuses the key."
    assert "MEDUSA_ENDPOINT_KEY" in error.hint
    assert endpoint.asked[-1].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in caplog.text
    assert KEY not in repr(load_of(endpoint, key=KEY))


def test_a_key_repeated_by_a_server_is_redacted(
    endpoint: FakeEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reply = as_reply({"error": {"message": f"bad {KEY} here"}}, 400)
    error, _ = answer_fails(endpoint, reply, EndpointFailedError, KEY)
    assert "bad *** here" in error.message
    reply = Reply((delta(content="One"), event({"error": {"message": f"{KEY} ran out"}})))
    error, text = answer_fails(endpoint, reply, EndpointFailedError, KEY)
    assert error.message == "the lab failed while it answered: *** ran out."
    assert text == "One"
    assert KEY not in caplog.text


def test_a_missing_model_is_named_with_the_available_ones(endpoint: FakeEndpoint) -> None:
    error = load_fails(endpoint, EndpointModelError, model_id="large")
    assert (error.message, error.hint) == (
        "the lab has no model large.",
        "It offers: small, other.",
    )


def test_a_model_is_found_without_its_tag_and_the_first_one_without_a_name(
    endpoint: FakeEndpoint,
) -> None:
    endpoint.models = as_reply({"data": [{"id": "llama:latest"}, {"no": "id"}, {"id": 3}]})

    async def work() -> None:
        async with remote_client() as client:
            for wanted in ("llama", ""):
                assert (await client.load(load_of(endpoint, wanted))).name == "llama:latest"

    run(work())


@pytest.mark.parametrize(
    ("wait", "hint"),
    [("7", "Try again in 7 s."), ("", "Try again later."), ("soon", "Try again later.")],
)
def test_a_429_says_how_long_to_wait(endpoint: FakeEndpoint, wait: str, hint: str) -> None:
    reply = as_reply({"error": {"message": "slow down"}}, 429, retry_after=wait)
    error, _ = answer_fails(endpoint, reply, EndpointBusyError)
    assert (error.message, error.hint) == ("the lab has too much to do.", hint)


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (as_reply({"error": {"message": "boom"}}, 500), EndpointFailedError, "failed (500): boom"),
        (as_reply({"error": "no room"}, 503), EndpointFailedError, "failed (503): no room"),
        (as_reply({"detail": "bad top_k"}, 422), EndpointFailedError, "refuses the request (422)"),
        (as_reply({"error": {"message": "model gone"}}, 404), EndpointModelError, "model gone"),
        (Reply((b"x" * (1 << 20),), 502), EndpointFailedError, "failed (502): it says no more"),
        (HTML, EndpointAnswerError, "it is text/html"),
        (Reply((b"data: {nonsense\n\n",)), EndpointAnswerError, "it is no JSON"),
        (Reply((b"data: [1, 2]\n\n",)), EndpointAnswerError, "it is no object"),
        (Reply((b'data: {"a": 1}\n\n',)), EndpointAnswerError, "it holds no choices"),
        (Reply((b"data: " + b"[" * 100_000 + b"\n\n",)), EndpointAnswerError, "it is no JSON"),
        (Reply((b"\x00\xff" * 1000,)), EndpointAnswerError, "broke off"),
        (Reply((b"data: " + b"x" * (3 << 20),)), EndpointAnswerError, "a line has no end"),
        (Reply(ANSWER, headers=PACKED), EndpointAnswerError, "it is compressed"),
        (Reply((b"\x16\x03\x01 hello\r\n\r\n",), is_raw=True), EndpointAnswerError, "isn't HTTP"),
    ],
)  # fmt: skip
def test_an_unreadable_response_is_reported(
    endpoint: FakeEndpoint, reply: Reply, kind: type[EndpointError], words: str
) -> None:
    error, text = answer_fails(endpoint, reply, kind)
    assert words in error.message
    assert text == ""


@pytest.mark.parametrize(
    ("is_cut", "pieces", "words"),
    [
        (True, (), "the connection was cut"),
        (False, (), "it ended without saying why"),
        (False, (3.0,), "it is silent"),
    ],
)
def test_an_interrupted_stream_keeps_the_text_so_far(
    endpoint: FakeEndpoint, is_cut: bool, pieces: tuple[float, ...], words: str
) -> None:
    reply = Reply((delta(content="One"), delta(content=" two"), *pieces), is_cut=is_cut)
    error, text = answer_fails(endpoint, reply, EndpointAnswerError)
    assert f"The answer of the lab broke off: {words}" in error.message
    assert text == "One two"


def test_an_endless_answer_is_ended(
    endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.remote.answer_stream.MOST_ANSWER_BYTES", 100_000)
    reply = Reply((delta(content="x" * 1000),) * 200)
    error, text = answer_fails(endpoint, reply, EndpointAnswerError)
    assert "it has no end" in error.message
    assert 90_000 < len(text) <= 100_000


def test_redirects_to_another_host_arent_followed(endpoint: FakeEndpoint) -> None:
    with FakeEndpoint() as other:
        endpoint.models = Reply((), 307, {"location": f"{other.url}/models"})
        error = load_fails(endpoint, EndpointUnreachableError, key=KEY)
        assert other.url.split("/")[2] in error.message
        assert other.asked == []


@pytest.mark.parametrize("location", ["http://[::1/", "//[", "http://[v1.x]:y/", "", "\t"])
def test_an_invalid_redirect_is_reported(location: str, endpoint: FakeEndpoint) -> None:
    endpoint.models = Reply((), 301, {"location": location})
    error = load_fails(endpoint, EndpointUnreachableError, key=KEY)
    assert "sends requests on to" in error.message


def test_a_slow_list_of_models_is_given_up(endpoint: FakeEndpoint) -> None:
    # Five minutes of blanks, which are longer than this test may take.
    endpoint.models = Reply((*(b" ", 0.1) * 3000,), headers={"content-type": "application/json"})
    error = load_fails(endpoint, EndpointUnreachableError)
    assert "it takes too long" in error.message


@pytest.mark.parametrize(
    ("models", "words"),
    [
        (HTML, "it is a page"),
        (as_reply({"data": "none"}), "it holds no list of models"),
        (as_reply([]), "it holds no list of models"),
        (Reply((json.dumps({"data": []}).encode()[:5],)), "it is no JSON"),
        (Reply((b"[" + b" " * (5 << 20) + b"]",)), "it is no JSON"),
    ],
)
def test_an_invalid_list_of_models_is_reported(
    endpoint: FakeEndpoint, models: Reply, words: str
) -> None:
    endpoint.models = models
    assert words in load_fails(endpoint, EndpointAnswerError).message


def test_an_untrusted_certificate_is_refused(
    self_signed: FakeEndpoint,
) -> None:
    error = load_fails(self_signed, EndpointUnreachableError, key=KEY)
    assert "the lab can't prove who it is" in error.message
    assert self_signed.asked == []


def test_failures_are_events_with_their_kind(endpoint: FakeEndpoint) -> None:
    found: list[Failed] = []

    async def work() -> None:
        async with remote_client() as client:
            client.listen(lambda e: found.append(e) if isinstance(e, Failed) else None)
            with pytest.raises(EndpointModelError):
                await client.load(load_of(endpoint, "large"))

    run(work())
    assert [one.kind for one in found] == ["EndpointModelError"]
