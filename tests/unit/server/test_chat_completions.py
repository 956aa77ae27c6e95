"""`/v1/chat/completions` of a started server."""

from __future__ import annotations

import math

import httpx2
import pytest

from tests.support.server.served import Served, events_of

MODEL = "llama-pebble"
QUESTION = [{"role": "user", "content": "Write a short story about a cat."}]
HELLO = [{"role": "user", "content": "Hello there"}]


def test_a_stream_ends_with_done(served: Served) -> None:
    body = {"messages": HELLO, "max_tokens": 4, "stream": True}
    reply = served.post("/v1/chat/completions", body)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert events_of(reply.text.splitlines())


def test_a_seed_gives_the_same_text_with_and_without_drafts(served: Served) -> None:
    options = {"temperature": 0.9, "seed": 11, "max_tokens": 40}
    drafted = served.chat("Tell me about the sea.", **options)
    plain = served.chat("Tell me about the sea.", **options, medusa={"drafts": False})
    assert drafted["choices"][0]["message"] == plain["choices"][0]["message"]
    assert plain["medusa"]["drafter"] == "none"
    assert plain["timings"]["draft_n"] == 0
    assert drafted["timings"]["draft_n"] > 0


def test_a_stop_string_ends_the_answer_and_isnt_sent(served: Served) -> None:
    whole = served.chat("Write a short story about a cat.", max_tokens=60)
    text = whole["choices"][0]["message"]["content"]
    stop = text[len(text) // 2 : len(text) // 2 + 9]  # lies across tokens
    cut = served.chat("Write a short story about a cat.", max_tokens=60, stop=[stop, "\u2603"])
    assert cut["choices"][0]["message"]["content"] == text[: text.index(stop)]
    assert cut["choices"][0]["finish_reason"] == "stop"


def test_no_chunk_of_a_stream_shows_a_part_of_a_stop_string(served: Served) -> None:
    question = "Write a short story about a cat."
    text = served.chat(question, max_tokens=60)["choices"][0]["message"]["content"]
    stop = text[len(text) // 2 : len(text) // 2 + 9]
    body = {"messages": QUESTION, "temperature": 0, "max_tokens": 60, "stop": stop, "stream": True}
    reply = served.post("/v1/chat/completions", body)
    shown = ""
    for event in events_of(reply.text.splitlines()):
        shown += event["choices"][0]["delta"].get("content", "")
        assert text[: text.index(stop)].startswith(shown)


def test_max_tokens_ends_an_answer(served: Served) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        answer = served.chat("Write a short story about a cat.", **{name: 7})
        assert answer["usage"]["completion_tokens"] == 7
        assert answer["choices"][0]["finish_reason"] == "length"


def test_a_logit_bias_forbids_a_token(served: Served) -> None:
    first = served.chat("Hello there", max_tokens=1, logprobs=True)
    token = first["choices"][0]["logprobs"]["content"][0]["token"]
    (token_id,) = served.post("/tokenize", {"content": token}).json()["tokens"]
    other = served.chat("Hello there", max_tokens=1, logit_bias={str(token_id): -100})
    assert other["choices"][0]["message"]["content"] != token


def test_log_probabilities_are_those_of_the_text(served: Served) -> None:
    answer = served.chat("Hello there", max_tokens=12, logprobs=True, top_logprobs=3)
    (choice,) = answer["choices"]
    tokens = choice["logprobs"]["content"]
    assert "".join(token["token"] for token in tokens) == choice["message"]["content"]
    for token in tokens:
        assert bytes(token["bytes"]).decode() == token["token"]
        best = token["top_logprobs"]
        assert len(best) == 3
        assert [one["logprob"] for one in best] == sorted(
            (one["logprob"] for one in best), reverse=True
        )
        # greedy: the chosen one is the likeliest
        assert math.isclose(token["logprob"], best[0]["logprob"], abs_tol=1e-6)
        assert token["logprob"] <= 0


def test_streamed_log_probabilities_equal_the_whole_answers(served: Served) -> None:
    options = {"max_tokens": 12, "logprobs": True, "top_logprobs": 2}
    whole = served.chat("Hello there", **options)["choices"][0]["logprobs"]["content"]
    body = {"messages": HELLO, "temperature": 0, "stream": True, **options}
    reply = served.post("/v1/chat/completions", body)
    streamed = []
    for event in events_of(reply.text.splitlines()):
        found = event["choices"][0]["logprobs"]
        streamed += found["content"] if found else []
    assert [one["token"] for one in streamed] == [one["token"] for one in whole]


def test_penalties_change_the_text(served: Served) -> None:
    plain = served.chat("Write a short story about a cat.", max_tokens=60)
    for fields in ({"presence_penalty": 2.0}, {"frequency_penalty": 2.0}, {"repeat_penalty": 5.0}):
        other = served.chat("Write a short story about a cat.", max_tokens=60, **fields)
        assert other["choices"][0]["message"] != plain["choices"][0]["message"]


def test_timings_have_llama_servers_fields(served: Served) -> None:
    answer = served.chat("Write a short story about a cat.", max_tokens=40)
    timings = answer["timings"]
    assert set(timings) == {
        *("cache_n", "draft_n", "draft_n_accepted"),
        *("prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second"),
        *("predicted_n", "predicted_ms", "predicted_per_token_ms", "predicted_per_second"),
    }
    assert timings["predicted_n"] == 40
    assert timings["prompt_n"] + timings["cache_n"] == answer["usage"]["prompt_tokens"]
    assert 0 < timings["draft_n_accepted"] <= timings["draft_n"]
    assert timings["predicted_per_second"] == pytest.approx(
        39_000 / timings["predicted_ms"],
        rel=1e-6,  # the first token is of the prompt's pass
    )
    assert answer["medusa"]["tau"] > 1


def test_the_last_chunk_has_the_timings(served: Served) -> None:
    body = {"messages": HELLO, "stream": True, "max_tokens": 5}
    reply = served.post("/v1/chat/completions", body)
    *others, last = events_of(reply.text.splitlines())
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["timings"]["predicted_n"] == 5
    assert not any("timings" in event for event in others)


def test_a_continued_conversation_isnt_prefilled_again(served: Served) -> None:
    messages = [{"role": "user", "content": "Write a short story about a dog and a bird."}]
    first = served.post(
        "/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 80}
    ).json()
    messages += [first["choices"][0]["message"], {"role": "user", "content": "And then?"}]
    second = served.post(
        "/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 10}
    ).json()
    read_before = first["usage"]["prompt_tokens"] + first["usage"]["completion_tokens"]
    assert second["timings"]["cache_n"] >= read_before - 2
    assert second["timings"]["prompt_n"] < 20


def test_two_alternating_conversations_keep_their_caches(served: Served) -> None:
    histories = [
        [{"role": "user", "content": f"Write a short story about a {animal}."}]
        for animal in ("horse", "mouse")
    ]
    for turn in range(3):
        for messages in histories:
            body = {"messages": messages, "temperature": 0, "max_tokens": 20}
            answer = served.post("/v1/chat/completions", body).json()
            if turn:
                assert answer["timings"]["prompt_n"] < 15
            messages += [
                {"role": "assistant", "content": answer["choices"][0]["message"]["content"]},
                {"role": "user", "content": "Go on."},
            ]


def test_a_cached_prompt_is_shared_only_with_the_same_key(
    served: Served,
) -> None:
    system = {"role": "system", "content": "You know a town. " + "It has a church and a bar. " * 20}

    def cached(question: str, key: str, *before: dict[str, str]) -> float:
        messages = [system, *before, {"role": "user", "content": question}]
        body = {"messages": messages, "temperature": 0, "max_tokens": 4}
        usage = served.post("/v1/chat/completions", body, authorization=f"Bearer {key}").json()[
            "usage"
        ]
        assert usage["prompt_tokens"] > 100
        share: float = usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]
        return share

    assert cached("Where is the bar?", "one") == 0
    assert cached("Who is in the church?", "one") > 0.9
    assert cached("Who is in the church?", "two") == 0
    foreign = {"role": "assistant", "content": "That isn't what the model said."}
    asked = {"role": "user", "content": "Where is the bar?"}
    assert cached("And the church?", "one", asked, foreign) > 0.85


def test_an_assistant_message_at_the_end_is_continued(served: Served) -> None:
    whole = served.chat("Write a short story about a cat.", max_tokens=40)
    text = whole["choices"][0]["message"]["content"]
    begun = text[: text.index(" ", len(text) // 2)]
    body = {
        "messages": [*QUESTION, {"role": "assistant", "content": begun}],
        "temperature": 0,
        "max_tokens": 10,
    }
    reply = served.post("/v1/chat/completions", body).json()
    assert text[len(begun) :].startswith(reply["choices"][0]["message"]["content"][:10])


def test_parts_of_text_are_joined(served: Served) -> None:
    parts = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there"}]
    body = {"messages": [{"role": "user", "content": parts}], "temperature": 0}
    answer = served.post("/v1/chat/completions", body).json()
    assert answer["choices"][0]["message"] == served.chat("Hello there")["choices"][0]["message"]


def test_a_wrong_field_is_named(served: Served) -> None:
    for fields, param in (
        ({"temperature": "hot"}, "temperature"),
        # What only a loaded model tells.
        ({"medusa": {"drafter": "oracle"}}, "medusa.drafter"),
        ({"medusa": {"rule": "dice"}}, "medusa.rule"),
        ({"medusa": {"rows": 0}}, "medusa.rows"),
    ):
        body = {"messages": HELLO, "max_tokens": 1, **fields}
        assert served.error("/v1/chat/completions", body, 400)["param"] == param


def test_an_unknown_drafter_is_refused_with_the_known_ones(served: Served) -> None:
    body = {"messages": HELLO, "medusa": {"drafter": "oracle"}}
    assert "composite" in served.error("/v1/chat/completions", body, 400)["message"]


def test_a_request_may_choose_drafter_rule_rows_and_growth(served: Served) -> None:
    chosen = {"drafter": "suffix", "rule": "greedy", "rows": 4, "growth": "chain"}
    answer = served.chat("Hello there", max_tokens=8, medusa=chosen)
    assert answer["medusa"]["drafter"] == "suffix"


def test_unknown_fields_are_ignored(served: Served) -> None:
    answer = served.chat("Hello there", max_tokens=3, user="me", metadata={"a": 1}, store=True)
    assert answer["choices"]


def test_a_conversation_that_is_too_long_is_a_client_error(served: Served) -> None:
    for streams in (False, True):
        body = {"messages": [{"role": "user", "content": "cat " * 5000}], "stream": streams}
        error = served.error("/v1/chat/completions", body, 400)
        assert "1,024" in error["message"] or "1024" in error["message"]


def test_without_a_temperature_the_recommended_one_is_used(served: Served) -> None:
    body = {"messages": QUESTION, "max_tokens": 25}
    advised = served.post("/v1/chat/completions", body).json()  # Pebble's advise not to draw
    greedy = served.chat("Write a short story about a cat.", max_tokens=25)
    assert advised["choices"][0]["message"] == greedy["choices"][0]["message"]


def test_the_first_chunk_has_the_form_that_all_clients_accept(served: Served) -> None:
    body = {"messages": HELLO, "max_tokens": 3, "stream": True}
    with httpx2.stream("POST", served.url("/v1/chat/completions"), json=body, timeout=240) as reply:
        events = events_of(list(reply.iter_lines()))
    for event in events:
        assert event["object"] == "chat.completion.chunk"
        assert set(event["choices"][0]) == {"index", "delta", "logprobs", "finish_reason"}


def test_custom_tools_are_omitted_and_named(served: Served) -> None:
    custom = {"type": "custom", "custom": {"name": "sh\u00e9ll\n"}}
    body = {"messages": HELLO, "max_tokens": 1, "tools": [custom]}
    for fields in (body, {**body, "stream": True}):
        reply = served.post("/v1/chat/completions", fields)
        assert reply.status_code == 200, reply.text
        assert "custom sh\\xe9ll" in reply.headers["x-medusa-warning"]
    plain = served.post("/v1/chat/completions", {"messages": HELLO, "max_tokens": 1})
    assert "x-medusa-warning" not in plain.headers


def test_earlier_refusals_are_read_and_reasoning_is_not(served: Served) -> None:
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "refusal", "refusal": "I won't."}]
    messages = [*HELLO, {"role": "assistant", "content": parts}, *HELLO]
    prompt = served.post("/apply-template", {"messages": messages}).json()["prompt"]
    assert "I won't." in prompt
    assert "hm" not in prompt


def test_an_answer_may_continue_a_message(served: Served) -> None:
    body: dict[str, object] = {"max_tokens": 1, "continue_final_message": True}
    body["messages"] = [*HELLO, {"role": "assistant", "content": "Once"}]
    reply = served.post("/v1/chat/completions", {**body, "add_generation_prompt": False})
    assert reply.status_code == 200


def test_input_tokens_are_counted_without_answering(served: Served) -> None:
    answer = served.post("/v1/chat/completions", {"messages": HELLO, "max_tokens": 1}).json()
    num_tokens = answer["usage"]["prompt_tokens"]
    expected = {"object": "response.input_tokens", "input_tokens": num_tokens}
    for path, fields in (
        ("/v1/chat/completions/input_tokens", {"messages": HELLO}),
        ("/chat/completions/input_tokens", {"messages": HELLO}),
        ("/v1/responses/input_tokens", {"input": HELLO}),
    ):
        assert served.post(path, fields).json() == expected
