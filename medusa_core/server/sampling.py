"""Sampling settings of a request: the fields that all APIs share."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, StringConstraints

from medusa_core.messages import Advice, GenerateSettings
from medusa_core.server.records import Flag, Number, Record, Whole, listed, without_nulls

_MOST_SEED = (1 << 63) - 1
_LEAST_TOP_P = 1e-6  # 0 means the best token alone
_MOST_TOKEN_ID = 10**9
_MOST_BIASES = 1024
_MOST_STOPS = 16
_STOP_CHARS = 1000
_PLAIN = "none"  # the drafter without drafts

StopStrings = Annotated[
    tuple[Annotated[str, StringConstraints(max_length=_STOP_CHARS)], ...],
    BeforeValidator(listed),
    Field(max_length=_MOST_STOPS),
]


class RequestedSettings(NamedTuple):
    """Generation settings of a request.

    Attributes:
        settings: Generation settings.
        open_settings: Names of settings that the request leaves to the model's `Advice`.
    """

    settings: GenerateSettings
    open_settings: frozenset[str]


class TemplateOptions(Record):
    """vLLM's `chat_template_kwargs`."""

    enable_thinking: Flag | None = None


class MedusaOptions(Record):
    """This program's own field `medusa`.

    Attributes:
        drafter: Name of a drafter; empty for the model's default.
        rule: Name of an acceptance rule; empty for the one that the temperature implies.
        rows: Most rows of a tree of drafts; 0 lets the engine choose.
        growth: Shape of the drafts.
        drafts: Whether to use drafts at all.
    """

    drafter: str = ""
    rule: str = ""
    rows: Whole = Field(default=0, ge=1, le=1 << 16)
    growth: Literal["auto", "chain", "tree"] = "auto"
    drafts: Flag = True


class SamplingRecord(Record):
    """Fields that all APIs share.

    Source: OpenAI's API; `min_p`, `repetition_penalty` and `chat_template_kwargs` as in vLLM,
    `repeat_penalty` and a negative `seed` for a random one as in llama-server.
    """

    model: str = ""
    stream: Flag = False
    temperature: Number | None = Field(default=None, ge=0, le=2)
    top_k: Whole | None = Field(default=None, ge=-1, le=1 << 31)
    top_p: Number | None = Field(default=None, ge=0, le=1)
    min_p: Number | None = Field(default=None, ge=0, le=1)
    repetition_penalty: Number | None = Field(default=None, ge=0.01, le=10)
    repeat_penalty: Number | None = Field(default=None, ge=0.01, le=10)
    presence_penalty: Number = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: Number = Field(default=0.0, ge=-2, le=2)
    logit_bias: Annotated[
        dict[
            Annotated[int, Field(ge=0, lt=_MOST_TOKEN_ID)],
            Annotated[Number, Field(ge=-100, le=100)],
        ],
        BeforeValidator(without_nulls),
        Field(max_length=_MOST_BIASES),
    ] = Field(default={})
    seed: Whole = Field(default=-1, ge=-_MOST_SEED, le=_MOST_SEED)
    enable_thinking: Flag | None = None
    chat_template_kwargs: TemplateOptions = TemplateOptions()
    medusa: MedusaOptions = MedusaOptions()

    def settings(self, max_tokens: int = 0, stop: tuple[str, ...] = ()) -> RequestedSettings:
        """Return the generation settings of the request.

        Args:
            max_tokens: Longest answer; 0 for the rest of the context.
            stop: Stop strings; empty ones are dropped.
        """
        medusa, thinks = self.medusa, self.enable_thinking
        given: dict[str, Any] = {
            "temperature": self.temperature,
            "top_k": None if self.top_k is None else max(0, self.top_k),
            "top_p": None if self.top_p is None else max(_LEAST_TOP_P, self.top_p),
            "min_p": self.min_p,
            "repetition_penalty": self.repeat_penalty or self.repetition_penalty,
        }
        given = without_nulls(given)
        settings = GenerateSettings(
            **given,
            rule=medusa.rule or "sample",
            drafter=medusa.drafter if medusa.drafts else _PLAIN,
            tree_rows=medusa.rows,
            growth=medusa.growth,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            logit_bias=tuple(self.logit_bias.items()),
            seed=secrets.randbits(62) if self.seed < 0 else self.seed,
            max_new_tokens=max_tokens,
            stop=tuple(filter(None, stop)),
            thinks=self.chat_template_kwargs.enable_thinking if thinks is None else thinks,
        )
        open_settings = set(Advice._fields) - set(given) | (set() if medusa.rule else {"rule"})
        return RequestedSettings(settings, frozenset(open_settings))
