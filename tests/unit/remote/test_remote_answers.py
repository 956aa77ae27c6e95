"""Answers of other machines' models, through a server of real HTTP."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace

import pytest

from medusa_core.chats.answer_text import AnswerText, find_spans, text_spans
from medusa_core.chats.history.packing import (
    done_as_json,
    done_from_json,
    pack_steps,
    unpack_steps,
)
from medusa_core.chats.reasoning import answer_text, reasoning_text
from medusa_core.errors import MedusaError, RequestError
from medusa_core.messages import (
    TARGET,
    AnswerStarted,
    ChatMessage,
    Count,
    Generate,
    GenerationDone,
    Role,
    StepDone,
    StopReason,
    ToolCall,
    Verify,
    shown_text,
)
from tests.support.remote.fake_endpoint import (
    ANSWER,
    DONE,
    FakeEndpoint,
    Reply,
    as_reply,
    delta,
    finish,
)
from tests.support.remote.fixtures import (
    SETTINGS,
    asks,
    done_of,
    events_of,
    load_of,
    remote_client,
    run,
)


def test_a_remote_model_answers_in_steps_with_the_servers_figures(endpoint: FakeEndpoint) -> None:
    async def work() -> None:
        async with remote_client() as client:
            loaded = await client.load(load_of(endpoint))
            assert (loaded.name, loaded.place, loaded.context_tokens) == ("small", "the lab", 4096)
            started, *steps, done = await events_of(client, asks())
        assert started == AnswerStarted("chat", "ask", "load")
        assert [step.pieces for step in steps] == [(b"One",), (b" two",), (b" three.",)]
        assert all(step.sources == (TARGET,) for step in steps)
        assert shown_text(steps) == done.text == "One two three."
        content = AnswerText()
        content.append(*steps)
        assert (content.visible_tokens, done.token_ids) == ((), ())
        assert done.stop_reason is StopReason.EOS
        assert (done.num_prompt_tokens, done.num_cached_tokens) == (20, 8)
        assert (done.num_remote_tokens, done.num_new_tokens) == (50, 50)
        assert (done.num_drafted, done.num_draft_accepted) == (60, 40)
        assert done.decode_tokens_per_s == pytest.approx(100)
        assert done.mean_acceptance_length == 0

    run(work())


def test_only_settings_of_the_api_are_sent(endpoint: FakeEndpoint) -> None:
    plain, drawn = (
        SETTINGS,
        replace(
            SETTINGS, rule="sample", temperature=0.5, top_p=0.9, top_k=40, min_p=0.05, seed=7,
            presence_penalty=0.1, frequency_penalty=0.2, repetition_penalty=1.1, stop=("END",),
            max_new_tokens=9, thinks=False, drafter="medusa", tree_rows=5, banned=(3,),
            logit_bias=((1, 2.0),), json_schema='{"type": "object"}',
        ),
    )  # fmt: skip

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            for settings in (plain, drawn):
                await done_of(client, replace(asks("Hi"), settings=settings))

    run(work())
    always = {
        "model": "small",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert endpoint.bodies[0] == always | {"temperature": 0}
    assert endpoint.bodies[1] == always | {
        "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 7,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "repeat_penalty": 1.1,
        "repetition_penalty": 1.1, "stop": ["END"], "max_tokens": 9,
        "chat_template_kwargs": {"enable_thinking": False},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}},
        },
    }  # fmt: skip


def test_tools_and_their_results_are_sent_in_the_apis_format(endpoint: FakeEndpoint) -> None:
    messages = (
        ChatMessage(Role.USER, "Weather?"),
        ChatMessage(Role.ASSISTANT, "", tool_calls=(ToolCall("c1", "look", '{"at": "Bonn"}'),)),
        ChatMessage(Role.TOOL, "rain", tool_name="look", call_id="c1"),
    )

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            tools = ('{"name": "look", "parameters": {}}',)
            await done_of(client, Generate("chat", "ask", messages, SETTINGS, tools=tools))

    run(work())
    _, call, result = endpoint.bodies[0]["messages"]
    assert call["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "Bonn"}'}
    assert result == {"role": "tool", "content": "rain", "tool_call_id": "c1"}
    function = {"name": "look", "parameters": {}}
    assert endpoint.bodies[0]["tools"] == [{"type": "function", "function": function}]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_separate_reasoning_becomes_reasoning_of_the_text(
    endpoint: FakeEndpoint, name: str
) -> None:
    thoughts = (delta(**{name: "Let me"}), delta(**{name: " see."}))
    endpoint.answer = Reply((*thoughts, delta(content="Four"), delta(content="."), finish(), DONE))

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            done = await done_of(client, asks())
        spans = text_spans(done.text)
        assert reasoning_text(done.text, spans).strip() == "Let me see."
        assert answer_text(done.text, spans) == "Four."

    run(work())


def test_tags_within_separate_reasoning_are_text(endpoint: FakeEndpoint) -> None:
    said = delta(content="<think> opens.")
    thought = delta(reasoning_content="The tag\n</think>\ncloses.")
    endpoint.answer = Reply((thought, said, finish(), DONE))

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            events = [event async for event in client.generate(asks())]
        steps = [event for event in events if isinstance(event, StepDone)]
        text = shown_text(steps)
        spans = find_spans(steps, text)
        assert reasoning_text(text, spans).strip() == "The tag\n</think>\ncloses."
        assert answer_text(text, spans) == "<think> opens."

    run(work())


def test_reasoning_within_the_text_is_unchanged(endpoint: FakeEndpoint) -> None:
    endpoint.answer = Reply((delta(content="<think>Hm</think>"), delta(content="Four"), finish()))

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            assert (await done_of(client, asks())).text == "<think>Hm</think>Four"

    run(work())


def test_an_answer_of_reasoning_alone_closes_it(endpoint: FakeEndpoint) -> None:
    endpoint.answer = Reply((delta(reasoning="Hm"), finish("length"), DONE))

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            done = await done_of(client, asks())
        assert done.text == "<think>\nHm\n</think>\n\n"
        assert done.stop_reason is StopReason.CONTEXT

    run(work())


def test_a_character_split_between_chunks_arrives_whole(endpoint: FakeEndpoint) -> None:
    halves = (delta(content="a\ud83d"), delta(content="\ude00b"), delta(content="\ud83d"), finish())
    endpoint.answer = Reply(halves)

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            _, *steps, done = await events_of(client, asks())
        assert done.text == "a😀b\ufffd"
        assert shown_text(steps) == done.text

    run(work())


def test_stopping_keeps_the_text_so_far_and_disconnects(endpoint: FakeEndpoint) -> None:
    endpoint.answer = Reply((delta(content="One"), *(0.05, delta(content=" more")) * 100))

    async def work() -> None:
        ended: list[GenerationDone] = []
        async with remote_client() as client:
            client.listen(lambda e: ended.append(e) if isinstance(e, GenerationDone) else None)
            await client.load(load_of(endpoint))
            async with aclosing(client.generate(asks())) as events:
                async for event in events:
                    if isinstance(event, StepDone) and event.step == 2:
                        break
            while not (ended and endpoint.num_left):
                await asyncio.sleep(0.01)
        assert ended[0].stop_reason is StopReason.CANCELLED
        assert ended[0].text.startswith("One more")

    run(work())


def test_a_remote_answer_can_be_continued(endpoint: FakeEndpoint) -> None:
    given = ChatMessage(Role.ASSISTANT, "Zero,")
    request = replace(asks(), messages=(*asks().messages, given))

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            _, *steps, done = await events_of(client, request)
        assert done.text == shown_text(steps) == "Zero,One two three."
        assert endpoint.bodies[0]["messages"][-1] == {"role": "assistant", "content": "Zero,"}

    run(work())


def test_a_response_without_streaming_is_read_completely(endpoint: FakeEndpoint) -> None:
    message = {"message": {"role": "assistant", "content": "All at once."}, "finish_reason": "stop"}
    endpoint.answer = as_reply({"choices": [message], "usage": {"completion_tokens": 3}})

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            done = await done_of(client, asks())
        assert (done.text, done.num_remote_tokens) == ("All at once.", 3)

    run(work())


def test_conversations_run_concurrently_and_one_of_them_only_once(
    endpoint: FakeEndpoint,
) -> None:
    endpoint.answer = Reply((0.2, *ANSWER))

    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            requests = [replace(asks(), session_id=f"chat {n}") for n in range(8)]
            texts = {d.text for d in await asyncio.gather(*(done_of(client, r) for r in requests))}
            assert texts == {"One two three."}
            assert loop.time() - began_s < 8 * 0.2

    run(work())


def test_local_features_are_refused_before_anything_is_sent(
    endpoint: FakeEndpoint,
) -> None:
    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            for fields in (
                {"prompt_ids": (1, 2)},
                {"grammar": "start: /a/"},
                {"num_logprobs": 0},
                {"keep_tokens": 3},
            ):
                with pytest.raises(RequestError, match="another machine can't"):
                    await done_of(client, asks(**fields))
            for work in (client.calibrate(), client.verify(Verify("", "v", text="a"))):
                with pytest.raises(RequestError, match="another machine"):
                    await work
            counted = await client.count(Count("", "c", asks().messages))
            assert (counted.num_tokens, counted.lack) == (0, "")

    run(work())
    assert not endpoint.bodies


def test_without_a_model_requests_fail() -> None:
    async def work() -> None:
        async with remote_client() as client:
            with pytest.raises(MedusaError, match="No model is loaded"):
                await done_of(client, asks())

    run(work())


def test_remote_answers_are_saved_and_exported_like_others(endpoint: FakeEndpoint) -> None:
    async def work() -> None:
        async with remote_client() as client:
            await client.load(load_of(endpoint))
            _, *steps, done = await events_of(client, asks())
        assert unpack_steps([pack_steps(steps)]) == tuple(steps)
        kept = replace(done, session_id="", request_id="")
        raw = json.loads(json.dumps(done_as_json(kept)))
        assert done_from_json(raw, done.text) == kept

    run(work())
