"""Completions, models, tokens, templates, health and metrics."""

from __future__ import annotations

import json
import re

from tests.support.server.served import Served, events_of

MODEL = "llama-pebble"
PROMPT = "Once upon a time"


def test_a_prompt_of_tokens_equals_its_text(served: Served) -> None:
    token_ids = served.post("/tokenize", {"content": PROMPT, "add_special": True}).json()["tokens"]
    options = {"temperature": 0, "max_tokens": 8}
    by_text = served.post("/v1/completions", {"prompt": PROMPT, **options}).json()
    by_tokens = served.post("/v1/completions", {"prompt": token_ids, **options}).json()
    assert by_text["choices"] == by_tokens["choices"]
    assert by_text["usage"]["prompt_tokens"] == len(token_ids)


def test_several_prompts_are_answered_in_order(served: Served) -> None:
    options = {"temperature": 0, "max_tokens": 6}
    prompts = [PROMPT, "The king and the"]
    together = served.post("/v1/completions", {"prompt": prompts, **options}).json()
    alone = [
        served.post("/v1/completions", {"prompt": one, **options}).json()["choices"][0]["text"]
        for one in prompts
    ]
    assert [choice["text"] for choice in together["choices"]] == alone


def test_log_probabilities_of_a_completion_have_offsets(served: Served) -> None:
    body = {"prompt": PROMPT, "temperature": 0, "max_tokens": 10, "logprobs": 2}
    whole = served.post("/v1/completions", body).json()["choices"][0]
    found = whole["logprobs"]
    assert "".join(found["tokens"]) == whole["text"]
    for token, offset in zip(found["tokens"], found["text_offset"], strict=True):
        assert whole["text"].startswith(token, offset)
    assert all(len(best) == 2 for best in found["top_logprobs"])
    offsets: list[int] = []
    reply = served.post("/v1/completions", {**body, "stream": True})
    for event in events_of(reply.text.splitlines()):
        offsets += (event["choices"][0]["logprobs"] or {"text_offset": []})["text_offset"]
    assert offsets == found["text_offset"]


def test_a_gap_is_refused_by_its_field_if_a_model_has_no_fim_tokens(served: Served) -> None:
    body = {"prompt": PROMPT, "max_tokens": 1, "suffix": "the end"}
    assert served.error("/v1/completions", body, 400)["param"] == "suffix"
    body = {"input_prefix": "def f(", "input_suffix": "return x", "n_predict": 1}
    assert served.error("/infill", body, 400)["param"] == "input_suffix"
    assert (
        served.error("/v1/completions", {"prompt": "", "max_tokens": 1}, 400)["param"] == "prompt"
    )


def test_an_invalid_token_id_is_refused(served: Served) -> None:
    for token in (10**6, -5):
        error = served.error("/v1/completions", {"prompt": [token], "max_tokens": 1}, 400)
        assert str(token) in error["message"]
        served.error("/detokenize", {"tokens": [token]}, 400)


def test_the_loaded_model_answers_for_an_unknown_name(served: Served) -> None:
    body = {
        "model": "gpt-99",
        "max_tokens": "4",  # as some clients write numbers
        "messages": [{"role": "user", "content": "Hello"}],
    }
    reply = served.post("/chat/completions", body)
    assert (reply.status_code, reply.json()["model"]) == (200, MODEL)
    assert reply.json()["usage"]["completion_tokens"] <= 4
    assert reply.json()["system_fingerprint"].startswith("fp_")
    assert reply.headers["x-request-id"] == reply.headers["request-id"] != ""
    assert served.get("/v1/models/gpt-99").status_code == 404
    assert served.get("/models").json() == served.get("/v1/models").json()


def test_a_strict_server_lists_the_installed_models(guarded: Served) -> None:
    body = {"model": "gpt-99", "messages": [{"role": "user", "content": "Hello"}]}
    error = guarded.error("/v1/chat/completions", body, 404)
    assert error["code"] == "model_not_found"
    assert MODEL in error["message"]
    long = {**body, "model": "x" * 100_000}
    assert len(guarded.error("/chat/completions", long, 404)["message"]) < 300


def test_a_conversation_far_too_long_blocks_nobody(served: Served) -> None:
    body = {"messages": [{"role": "user", "content": "a b " * 140_000}], "max_tokens": 1}
    for path in ("/v1/chat/completions", "/apply-template", "/v1/messages/count_tokens"):
        reply = served.post(path, body)
        assert (path, reply.status_code, "characters" in reply.text) == (path, 400, True)


def test_embeddings_are_refused_with_a_message(served: Served) -> None:
    error = served.error("/v1/embeddings", {"input": "Hello"}, 501)
    assert "embedding" in error["message"]


def test_detokenize_restores_the_text(served: Served) -> None:
    for text in ("Hello there, cat!", "naïve ☃ 🙂", ""):
        tokens = served.post("/tokenize", {"content": text}).json()["tokens"]
        assert served.post("/detokenize", {"tokens": tokens}).json()["content"] == text


def test_pieces_of_tokenize_are_text_or_bytes(served: Served) -> None:
    reply = served.post("/tokenize", {"content": "cat 🙂", "with_pieces": True}).json()
    written = b"".join(
        one["piece"].encode() if isinstance(one["piece"], str) else bytes(one["piece"])
        for one in reply["tokens"]
    )
    assert written.decode() == "cat 🙂"


def test_apply_template_returns_the_prompt(served: Served) -> None:
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hello"}]
    prompt = served.post("/apply-template", {"messages": messages}).json()["prompt"]
    assert "Hello" in prompt
    assert "Be short." in prompt
    token_ids = served.post("/tokenize", {"content": prompt}).json()["tokens"]
    answer = served.post("/v1/chat/completions", {"messages": messages, "max_tokens": 1}).json()
    assert abs(answer["usage"]["prompt_tokens"] - len(token_ids)) <= 1  # the first token


def test_system_and_developer_messages_in_the_middle_keep_their_place(
    served: Served,
) -> None:
    texts = [("system", "Rule one"), ("developer", "Rule two"), ("user", "Question one")]
    texts += [("assistant", "Answer"), ("developer", "Rule three"), ("user", "Question two")]
    texts += [("assistant", "Well"), ("system", "Rule four")]
    for last in range(1, len(texts) + 1):
        messages = [{"role": role, "content": content} for role, content in texts[:last]]
        asked = {"messages": messages, "max_tokens": 1}
        assert served.post("/v1/chat/completions", asked).status_code == 200
        answered = served.post("/v1/responses", {"input": messages, "max_output_tokens": 1})
        assert answered.status_code == 200
        if messages[-1]["role"] == "assistant":
            messages = messages[:-1]  # it is gone on with
        prompt = served.post("/apply-template", {"messages": messages}).json()["prompt"]
        places = [prompt.index(message["content"]) for message in messages]
        assert places == sorted(places)


def test_health_and_metrics_are_served(served: Served) -> None:
    assert served.get("/health").json() == {"status": "ok"}
    served.chat("Hello there", max_tokens=5)
    text = served.get("/metrics").text
    names = re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.MULTILINE)
    values = re.findall(r"^(\w+)(?:\{[^}]*\})? \S+$", text, re.MULTILINE)
    assert set(values) == set(names)
    assert served.metric("answer_tokens_total") >= 5
    assert served.metric("tau") >= 1
    assert 'path="/v1/chat/completions",status="200"' in text


def test_an_unknown_route_is_an_error_in_openais_format(served: Served) -> None:
    served.error("/v1/nothing", {}, 404)
    reply = served.get("/v1/chat/completions")
    assert reply.status_code == 405
    assert reply.json()["error"]["message"]


NO_OBJECTS = (
    *(b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe"),
    b'{"messages": NaN}',
    b'{"temperature": 1e999}',
    b'{"seed": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 300 + b"1" + b"}" * 300,
    json.dumps({"messages": [{"role": "user", "content": "\ud800"}]}).encode(),
)


def test_a_body_that_is_no_json_object_is_refused(served: Served) -> None:
    for path in ("/v1/chat/completions", "/v1/completions", "/tokenize", "/apply-template"):
        for body in NO_OBJECTS:
            assert served.error(path, body, 400)["type"] == "invalid_request_error", body[:30]


def test_a_completion_in_llama_servers_form_gives_the_same_text(served: Served) -> None:
    expected = served.post(
        "/v1/completions", {"prompt": PROMPT, "temperature": 0, "max_tokens": 12}
    ).json()
    body = {"prompt": PROMPT, "temperature": 0, "n_predict": 12}
    whole = served.post("/completion", body).json()
    assert whole["content"] == expected["choices"][0]["text"]
    assert (whole["stop"], whole["stop_type"], whole["tokens_predicted"]) == (True, "limit", 12)
    assert whole["tokens_evaluated"] == expected["usage"]["prompt_tokens"]
    assert whole["timings"]["predicted_n"] == 12
    lines = served.post("/completion", {**body, "stream": True}).text.splitlines()
    *deltas, last = (json.loads(line.removeprefix("data: ")) for line in lines if line)
    assert "".join(delta["content"] for delta in deltas) == whole["content"]
    assert last["stop"]
    assert not any(delta["stop"] for delta in deltas)


def test_llama_servers_route_accepts_several_prompts_and_grammars(served: Served) -> None:
    body = {"prompt": [PROMPT, "The king"], "n_predict": 4, "grammar": 'root ::= "yes"'}
    assert [one["content"] for one in served.post("/completion", body).json()] == ["yes", "yes"]
    wanted = {"prompt": PROMPT, "max_tokens": 8, "grammar": 'root ::= "no"'}
    assert served.post("/v1/completions", wanted).json()["choices"][0]["text"] == "no"
    assert served.error("/completion", {"n_predict": 4}, 400)["param"] == "prompt"


def test_props_describes_the_model_as_llama_server_does(served: Served) -> None:
    found = served.get("/props").json()
    listed = served.get("/v1/models").json()["data"][0]
    assert found["model_alias"] == listed["id"] == MODEL
    assert found["default_generation_settings"]["n_ctx"] == listed["context_length"]
    assert "messages" in found["chat_template"]
    assert "/" not in found["model_path"]
