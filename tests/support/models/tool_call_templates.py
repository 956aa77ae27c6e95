"""Small chat templates of our own, one for each way of writing tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from medusa_core.messages import ChatMessage, Role, ToolCall, ToolCallFormat
from medusa_core.models.text.rendering import Rendering
from medusa_core.models.text.template_messages import message_as_json, strip_token_ids, tool_as_json
from medusa_core.models.text.tool_calls.learn import learn_tool_call_format

HEADER = "<|a|>\n"
END = "<|end|>\n"
_FRAME = """{%% for t in tools or [] %%}<|tool|>{{ t | tojson }}\n{%% endfor %%}
{%%- for m in messages %%}
{%%- if m.role == 'assistant' %%}
{{- '<|a|>\n' + m.content }}
{%%- if m.tool_calls %%}%s{%% endif %%}
{{- '<|end|>\n' }}
{%%- else %%}
{{- '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}
{%%- endif %%}
{%%- endfor %%}
{%%- if add_generation_prompt %%}{{ '<|a|>\n' }}{%% endif %%}"""
_EACH = "{%% for c in m.tool_calls %%}{%% set f = c.function %%}%s{%% endfor %%}"
_PAIRS = "{%% for k, v in f.arguments.items() %%}%s{%% endfor %%}"
_VALUE = "{{- v if v is string else v | tojson }}"
_LAST = "{% if not loop.last %}, {% endif %}"
_ONE = "{{- raise_exception('one call') if m.tool_calls | length > 1 }}"
_TYPE = "{{- 'true' if v is string else 'false' }}"
_MISTRAL = """{{- '[TOOL_CALLS]' + f.name }}"""
_NESTED = """
{%- macro tree(v) -%}
{%- if v is mapping %}{% for k, x in v.items() %}{{ '<:' + k + '>' + tree(x) + '</:' + k + '>' }}
{%- endfor %}
{%- elif v is iterable and v is not string %}{% for x in v %}{{ '<:item>' + tree(x) + '</:item>' }}
{%- endfor %}
{%- else %}{{ v if v is string else v | tojson }}{% endif %}
{%- endmacro -%}
"""
_QUOTED = """
{%- macro dump(v) -%}
{%- if v is mapping %}{{- '{' }}{% for k, x in v | dictsort %}
{{- k + ':' + dump(x) }}{% if not loop.last %},{% endif %}{% endfor %}{{- '}' }}
{%- elif v is string %}{{- '<|q|>' + v + '<|q|>' }}
{%- elif v is iterable %}{{- '[' }}{% for x in v %}{{- dump(x) }}{% if not loop.last %},{% endif %}
{%- endfor %}{{- ']' }}
{%- else %}{{- v | tojson }}{% endif %}
{%- endmacro -%}
"""


def _object(name: str = "name", arguments: str = "arguments", more: str = "") -> str:
    head = f"""{{{{- '{{"{name}": "' + f.name + '", "{arguments}": ' }}}}"""
    return head + "{{- f.arguments | tojson }}" + more + "{{- '}' }}"


def _text(written: str) -> str:
    return "{{- '" + written.replace("\n", "\\n") + "' }}"


_ID = """{{- ', "id": "' + c.id + '"' }}"""
CALLS = {
    "hermes": _EACH % (_text("\n<tool_call>\n") + _object() + _text("\n</tool_call>")),
    "llama_3": "{# <|python_tag|> #}" + _ONE + _EACH % _object(arguments="parameters"),
    "mistral_list": _text("[TOOL_CALLS][") + _EACH % (_object(more=_ID) + _LAST) + _text("]"),
    "mistral_args": _EACH % (_MISTRAL + "{{- '[ARGS]' }}{{ f.arguments | tojson }}"),
    "mistral_ids": _EACH
    % (_MISTRAL + "{{- '[CALL_ID]' + c.id + '[ARGS]' }}{{ f.arguments | tojson }}"),
    "lines": _text("\n<calls>\n") + _EACH % (_object() + _text("\n")) + _text("</calls>"),
    "numbered": _text("<|ACT|>[\n")
    + _EACH
    % (
        """{{- '{"id": "' ~ loop.index0 ~ '", "tool_name": "' + f.name + '", "parameters": ' }}"""
        "{{- f.arguments | tojson }}{{- '}' }}{% if not loop.last %},\n{% endif %}"
    )
    + _text("\n]<|/ACT|>"),
    "key": _text("<|t|>[")
    + _EACH % ("""{{- '{"' + f.name + '": ' }}{{ f.arguments | tojson }}{{ '}' }}""" + _LAST)
    + _text("]<|/t|>"),
    "kimi": _text("<|calls|>")
    + _EACH
    % (
        "{{- '<|call|>functions.' + f.name + ':' ~ loop.index0 ~ '<|args|>' }}"
        "{{- f.arguments | tojson }}{{- '<|/call|>' }}"
    )
    + _text("<|/calls|>"),
    "ids": _text("<|calls|>")
    + _EACH
    % (
        "{{- '<|begin|>' + c.id + '<|name|>' + f.name + '<|args|>' }}"
        "{{- f.arguments | tojson }}{{- '<|/call|>' }}"
    ),
    "function_tag": _EACH
    % ("{{- '<function=' + f.name + '>' }}{{ f.arguments | tojson }}{{ '</function>' }}"),
    "fenced": _text("<|calls|>")
    + _EACH
    % (
        "{{- '<|call|>function<|sep|>' + f.name + '\n```json\n' }}{{ f.arguments | tojson }}"
        "{{- '\n```<|/call|>' }}{% if not loop.last %}{{ '\n' }}{% endif %}"
    )
    + _text("<|/calls|>"),
    "xml": _EACH
    % (
        "{{- '\n\n<tool_call>\n<function=' + f.name + '>\n' }}"
        + _PAIRS % ("{{- '<parameter=' + k + '>\n' }}" + _VALUE + _text("\n</parameter>\n"))
        + _text("</function>\n</tool_call>")
    ),
    "glm": _EACH
    % (
        "{{- '\n<tool_call>' + f.name }}"
        + _PAIRS
        % ("{{- '\n<arg_key>' + k + '</arg_key>\n<arg_value>' }}" + _VALUE + _text("</arg_value>"))
        + _text("\n</tool_call>")
    ),
    "invoke": _text("\n<m:calls>\n")
    + _EACH
    % (
        """{{- '<invoke name="' + f.name + '">\n' }}"""
        + _PAIRS % ("""{{- '<p name="' + k + '">' }}""" + _VALUE + _text("</p>\n"))
        + _text("</invoke>\n")
    )
    + _text("</m:calls>"),
    "typed": _text("\n\n<｜D｜calls>\n")
    + _EACH
    % (
        """{{- '<｜D｜invoke name="' + f.name + '">\n' }}"""
        + _PAIRS
        % (
            """{{- '<｜D｜p name="' + k + '" string="' }}"""
            + _TYPE
            + """{{- '">' }}"""
            + _VALUE
            + _text("</｜D｜p>\n")
        )
        + _text("</｜D｜invoke>\n")
    )
    + _text("</｜D｜calls>"),
    "nested": _NESTED
    + _text("<:calls>\n")
    + _EACH % ("""{{- '<:invoke name="' + f.name + '">' + tree(f.arguments) + '</:invoke>\n' }}""")
    + _text("</:calls>"),
    "recipient": _EACH
    % (
        """{{- ' to=' + f.name + '<|m|><invoke name="' + f.name + '">\n' }}"""
        + _PAIRS % ("""{{- '<p name="' + k + '">' }}""" + _VALUE + _text("</p>\n"))
        + _text("</invoke>")
        + "{% if not loop.last %}{{ '<|eom|>' }}{% endif %}"
    ),
    "python": _text("<|call|>[")
    + _EACH
    % (
        "{{- f.name + '(' }}"
        + _PAIRS % ("{{- k + '=' }}{{- \"'\" + v + \"'\" if v is string else v | tojson }}" + _LAST)
        + _text(")")
        + _LAST
    )
    + _text("]<|/call|>"),
    "python_alone": _text("[")
    + _EACH
    % (
        "{{- f.name + '(' }}"
        + _PAIRS % ("{{- k + '=' }}{{- \"'\" + v + \"'\" if v is string else v | tojson }}" + _LAST)
        + _text(")")
        + _LAST
    )
    + _text("]"),
    "openai": _text("<|calls|>") + "{{- m.tool_calls | tojson }}" + _text("<|/calls|>"),
    "function_object": _EACH
    % (
        """{{- '<call>{"type": "function", "function": {"name": "' + f.name }}"""
        """{{- '", "parameters": ' }}{{ f.arguments | tojson }}{{ '}}</call>' }}"""
    ),
    "bare_keys": _QUOTED
    + _EACH % ("{{- '<|call>call:' + f.name + dump(f.arguments) + '<call|>' }}"),
}
TEMPLATES = {name: _FRAME % calls for name, calls in CALLS.items()}
TEMPLATES |= {
    "json": _FRAME.replace("{%% for t in tools or [] %%}", "{%% for t in [] %%}") % "",
    "gemma": _FRAME.replace("{%% for t in tools or [] %%}", "<start_of_turn>{%% for t in [] %%}")
    % "",
    "harmony": _FRAME % "{{ '<|channel|>commentary' }}",
    "functionary": _FRAME % "{{ '>>>${recipient}' }}",
    "granite_3": _FRAME % "" + "{# <|tool_call|> #}",
}


def rendering(name: str) -> Rendering:
    """A template, ready to render."""
    return _rendering(TEMPLATES[name])


@cache
def _rendering(source: str) -> Rendering:
    return Rendering(source, {})


def rendered(source: str, turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
    """A prompt."""
    messages = list(map(message_as_json, strip_token_ids(turns)))
    return _rendering(source).render(messages, opens, None, list(map(tool_as_json, tools)))


def learned(source: str) -> ToolCallFormat:
    """Return the format that is learned from a template."""

    def render(turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
        return rendered(source, turns, opens, tools)

    return learn_tool_call_format(render, source)


@cache
def format_of(name: str) -> ToolCallFormat:
    """The format of one of the templates."""
    return learned(TEMPLATES[name])


def written(name: str, content: str, calls: Sequence[tuple[str, str]], tools: Sequence[str]) -> str:
    """An answer with calls as a template writes it."""
    made = tuple(ToolCall(f"Id{place}345678"[:9], *call) for place, call in enumerate(calls))
    turns = (
        ChatMessage(Role.USER, "?"),
        ChatMessage(Role.ASSISTANT, content, tool_calls=made),
    )
    text = rendered(TEMPLATES[name], turns, False, tuple(tools))
    return text.rpartition(HEADER)[2].removesuffix(END)
