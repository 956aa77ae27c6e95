"""Conversations that share a prefix cache, answered in the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from medusa_core.engine.generation import Generation
from medusa_core.engine.prefix_cache import PrefixCache
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.sessions import Sessions
from medusa_core.engine.start import start_generation
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Generate, GenerateSettings, GenerationDone, Role
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.laws import Run, decode

SYSTEM = (
    "You are a clerk in a small library. Answer in one sentence. The library opens at nine and "
    "closes at five. Books are lent for three weeks. Nobody may eat in the reading room."
)


GREEDY = GenerateSettings(drafter="suffix", rule="greedy", max_new_tokens=12, banned=(1,))
SAMPLED = replace(GREEDY, rule="sample", temperature=1.1, seed=4)
FIRST, OTHER = "When does it open?", "May I bring a sandwich?"


def asks(*texts: str, system: str = SYSTEM) -> tuple[ChatMessage, ...]:
    """Return a conversation of questions and answers after a system prompt."""
    roles = (Role.USER, Role.ASSISTANT)
    turns = (ChatMessage(roles[place % 2], text) for place, text in enumerate(texts))
    return (ChatMessage(Role.SYSTEM, system), *turns)


class Conversations:
    """The engine's session handling without its thread.

    Attributes:
        sessions: The sessions.
        running: Answers under way.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.running: list[Generation] = []
        self.sessions = Sessions(lambda: {one.request.session_id for one in self.running})
        self.prefixes = PrefixCache(self.sessions)
        self._scheduler = Scheduler()
        self._evicting = target.caches.evict
        target.caches.evict = self.sessions.evict

    def close(self) -> None:
        """Free all caches."""
        for generation in self.running:
            generation.cancel()
        self.running.clear()
        for session_id in tuple(self.sessions):
            self.sessions.close(session_id)
        self.target.caches.evict = self._evicting

    def begin(
        self,
        name: str,
        messages: Sequence[ChatMessage],
        settings: GenerateSettings,
        salt: str = "",
    ) -> Generation:
        """Begin an answer in a session."""
        session = self.sessions.pop(name, None) or Session(self.target, cache_salt=salt)
        settings = replace(settings, tree_rows=settings.tree_rows or 12)
        request = Generate(name, name, tuple(messages), settings, cache_salt=salt)
        try:
            generation = start_generation(
                request, self.target, session, RowPolicy(self.target), prefixes=self.prefixes
            )
            self.running.append(generation)
        finally:
            self.sessions[name] = session
        return generation

    def step(self) -> list[GenerationDone]:
        """Run a step of the answers under way; returns those that ended."""
        ends: list[GenerationDone] = []
        for result in self._scheduler.step(self.running):
            if result.error is not None:
                raise result.error
            ends += [event for event in result.events if isinstance(event, GenerationDone)]
        return ends

    def cancel(self, name: str) -> None:
        """Stop an answer."""
        for generation in [one for one in self.running if one.request.session_id == name]:
            self.running.remove(generation)
            generation.cancel()

    def answer(
        self,
        name: str,
        messages: Sequence[ChatMessage],
        settings: GenerateSettings,
        salt: str = "",
    ) -> GenerationDone:
        """Answer in a session while others run."""
        self.begin(name, messages, settings, salt)
        while True:
            for done in self.step():
                if done.session_id == name:
                    return done

    def of(self, name: str) -> Session:
        """A session."""
        return self.sessions[name]


Open = Callable[[Target], Conversations]


def alone(target: Target, *texts: str, settings: GenerateSettings = GREEDY) -> Run:
    """The answer of a conversation that shares nothing."""
    session = Session(target)
    run = decode(target, settings, asks(*texts), session=session)
    session.close()
    return run


def committed(target: Target, token_ids: list[int]) -> torch.Tensor:
    """Return the contents of a fresh cache of some tokens."""
    with torch.inference_mode():
        kv = target.allocate_cache(len(token_ids) + 1)
        target.runner.extend(token_ids, kv)
        found = kv.committed()
    target.caches.release(kv)
    return found


def answers_equal(chats: Conversations) -> bool:
    chats.answer("a", asks(FIRST), GREEDY)
    done = chats.answer("b", asks(FIRST, "At nine.", OTHER), GREEDY)
    target = chats.target
    rows, expected = chats.of("b").kv.committed(), committed(target, chats.of("b").token_ids[:-1])
    same = rows.equal(expected)
    return same and done.token_ids == alone(target, FIRST, "At nine.", OTHER).token_ids
