"""Tasks for tools: the rate of right calls, and their speed with and without drafts.

`python -m tests.benchmarks.tool_tasks MODEL [--heads DIR] [--drafter NAME] [--json FILE]`

Every task offers the same eight tools; of the first twenty, three need none and two need two calls
in sequence. Ten others are held out: changes of prompts, grammars and rounds aren't chosen by them.
A task is right if exactly the expected calls are made, in order, each with right arguments. Calls
run at once, with fixed results. An answer that is JSON is a wrong call of a tool that nobody
offered.
Answers are greedy, so those with drafts must equal those without.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from medusa_core.chats.conversation import new_id
from medusa_core.chats.rounds import CallState, Round, RoundCall, ToolResult, is_same_call
from medusa_core.client import Client
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Role,
    StepDone,
    as_content,
)
from medusa_core.models.text.answer_form import ChatForm, chat_form
from medusa_core.tools import call_loop
from medusa_core.tools.builtin.calculator import evaluate
from medusa_core.tools.builtin_tool import builtin_tools, run_builtin
from medusa_core.tools.results import repeated_result
from medusa_core.tools.tool import Tool

MOST_ROUNDS = 6
MOST_TOKENS = 256
CONTEXT = 4096
PLAIN = "none"
NOW = datetime(2026, 11, 29, 8, 30, tzinfo=UTC)
FILES = {
    "numbers.txt": "128\n257\n391\n",
    "report.md": "# Report\n\nThe budget for 2026 is 48,500 francs, shared by 4 teams.\n",
    "config/app.json": '{"port": 8123, "theme": "dark"}\n',
    "notes/shopping.txt": "milk\nbread\napples\n",
    "notes/travel.txt": "Train to Bern at 09:32 from platform 7.\n",
    "src/main.py": "print('hello')\n",
    "src/tools.py": "LIMIT = 12\n",
    "src/readme.txt": "Sources of the program.\n",
}

Arguments = Mapping[str, Any]
Check = Callable[[Arguments], bool]


def _tool(name: str, description: str, **properties: str) -> Tool:
    """A tool whose arguments are required texts with these descriptions."""
    schema = {
        "type": "object",
        "properties": {
            key: {"type": "string", "description": text} for key, text in properties.items()
        },
        "required": list(properties),
        "additionalProperties": False,
    }
    return Tool(name, description, json.dumps(schema))


ZONE = "IANA time zone, such as Europe/Zurich."
TOOLS = (
    builtin_tools().get("calculate").tool,
    builtin_tools().get("web_search").tool,
    _tool("get_current_time", "Tells the present time in a time zone.", timezone=ZONE),
    _tool(
        "convert_time",
        "Converts a time of today from one time zone to another.",
        source_timezone=ZONE,
        time="Time in the source time zone, as HH:MM of 24 hours.",
        target_timezone=ZONE,
    ),
    _tool("list_directory", "Lists the files and folders in a folder.", path="Path of the folder."),
    _tool("read_text_file", "Returns the text of a file.", path="Path of the file."),
    _tool(
        "search_files",
        "Finds files in a folder and its subfolders by a pattern of their names.",
        path="Path of the folder; . for all.",
        pattern="Pattern, such as *.txt.",
    ),
    _tool("get_file_info", "Returns the size of a file in bytes.", path="Path of the file."),
)


@dataclass(frozen=True, slots=True)
class Expected:
    """A call that a task needs.

    Attributes:
        tool: Name of the tool.
        check: Whether arguments are right.
    """

    tool: str
    check: Check


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt with the calls that it needs."""

    name: str
    prompt: str
    calls: tuple[Expected, ...] = ()


def _value(value: float) -> Expected:
    """A calculation with this value."""

    def check(arguments: Arguments) -> bool:
        try:
            return abs(evaluate(str(arguments.get("expression"))) - value) < 1e-6 * abs(value)
        except ValueError:
            return False

    return Expected("calculate", check)


def _path(tool: str, path: str, **others: Sequence[str]) -> Expected:
    """A call with a path, and other arguments that each match a pattern."""

    def check(arguments: Arguments) -> bool:
        return _normal(arguments.get("path")) == path and all(
            any(fnmatch(str(arguments.get(key)), pattern) for pattern in patterns)
            for key, patterns in others.items()
        )

    return Expected(tool, check)


def _zone(*zones: str) -> Expected:
    """A question for the present time in one of these time zones."""
    return Expected("get_current_time", lambda arguments: arguments.get("timezone") in zones)


def _conversion(source: str, time_of_day: str, target: str) -> Expected:
    """A conversion of a time."""
    values = {"source_timezone": source, "time": time_of_day, "target_timezone": target}
    return Expected("convert_time", lambda arguments: arguments == values)


def _query(*words: str) -> Expected:
    """A search for these words."""

    def check(arguments: Arguments) -> bool:
        query = str(arguments.get("query")).casefold()
        return all(word in query for word in words)

    return Expected("web_search", check)


TASKS = (
    Task("product", "What is 1847 * 392?", (_value(1847 * 392),)),
    Task(
        "discount",
        "A jacket costs 148.90 francs and is reduced by 15 %. Calculate what it costs now.",
        (_value(148.90 * 0.85),),
    ),
    Task("root", "What is the square root of 7225?", (_value(85),)),
    Task("seconds", "How many seconds are there in 365 days?", (_value(31_536_000),)),
    Task("tokyo", "What time is it in Tokyo right now?", (_zone("Asia/Tokyo"),)),
    Task("new york", "Tell me the current time in New York.", (_zone("America/New_York"),)),
    Task(
        "los angeles",
        "It is 14:30 in Zurich. What time is that in Los Angeles?",
        (_conversion("Europe/Zurich", "14:30", "America/Los_Angeles"),),
    ),
    Task(
        "sydney",
        "A call starts at 9 in the morning, London time. When is that in Sydney?",
        (_conversion("Europe/London", "09:00", "Australia/Sydney"),),
    ),
    Task("notes", "Which files are in the folder notes?", (_path("list_directory", "notes"),)),
    Task("folder", "List what is in the folder src.", (_path("list_directory", "src"),)),
    Task(
        "shopping",
        "Read the file notes/shopping.txt and tell me what I have to buy.",
        (_path("read_text_file", "notes/shopping.txt"),),
    ),
    Task(
        "port",
        "Which port is set in config/app.json?",
        (_path("read_text_file", "config/app.json"),),
    ),
    Task("size", "How large is the file report.md?", (_path("get_file_info", "report.md"),)),
    Task(
        "python files",
        "Find all Python files in the folder src.",
        (_path("search_files", "src", pattern=("[*].py", "[*][*]/[*].py")),),
    ),
    Task("opening hours", "Search the web for the opening hours of Zurich zoo.", (_query("zoo"),)),
    Task(
        "sum",
        "Read the file numbers.txt, then calculate the sum of the numbers in it.",
        (_path("read_text_file", "numbers.txt"), _value(128 + 257 + 391)),
    ),
    Task(
        "share",
        "Read the budget in report.md and calculate what each team gets.",
        (_path("read_text_file", "report.md"), _value(48_500 / 4)),
    ),
    Task("sea", "Write one sentence about the sea."),
    Task("translation", "Translate 'good morning' into French."),
    Task("greeting", "Say hello to my friend Anna in one short sentence."),
)
HELD_OUT = (
    Task("power", "How much is 2 to the power of 20?", (_value(2**20),)),
    Task(
        "bill",
        "Five friends share a bill of 187.50 francs equally. Calculate what each of them pays.",
        (_value(37.5),),
    ),
    Task(
        "sao paulo", "What is the time in Sao Paulo at the moment?", (_zone("America/Sao_Paulo"),)
    ),
    Task(
        "train",
        "My call begins at 18:45 in Berlin. What time is that in Tokyo?",
        (_conversion("Europe/Berlin", "18:45", "Asia/Tokyo"),),
    ),
    Task(
        "platform",
        "Open notes/travel.txt and tell me which platform my train leaves from.",
        (_path("read_text_file", "notes/travel.txt"),),
    ),
    Task(
        "limit",
        "Which value does LIMIT have in src/tools.py?",
        (_path("read_text_file", "src/tools.py"),),
    ),
    Task(
        "text files",
        "Search the folder notes for files whose names end with .txt.",
        (_path("search_files", "notes", pattern=("[*].txt", "[*][*]/[*].txt")),),
    ),
    Task(
        "multiple",
        "Read src/tools.py, then calculate 375 times the LIMIT that is set there.",
        (_path("read_text_file", "src/tools.py"), _value(375 * 12)),
    ),
    Task("poem", "Write two lines about a cat."),
    Task("capital", "What is the capital of France?"),
)


def _normal(path: object) -> str:
    """A path as `FILES` has it, however it is written."""
    return str(path).removeprefix("./").strip("/")


def run_tool(name: str, arguments: str) -> ToolResult:
    """Run a tool on the fixed files and the fixed time."""
    try:
        values = json.loads(arguments or "{}")
        text = _result(name, values) if isinstance(values, dict) else None
    except ValueError as error:
        return ToolResult(as_content(f"The call failed: {error}"), is_error=True)
    if text is None:
        return ToolResult(as_content("The call failed: there is no such file."), is_error=True)
    return ToolResult(as_content(text))


def _result(name: str, values: Arguments) -> str | None:
    """Return a result; None if there is no such file.

    Raises:
        ValueError: The arguments are wrong.
    """
    path = _normal(values.get("path"))
    folder = "" if path in (".", "") else f"{path}/"
    below = [file for file in FILES if file.startswith(folder)]
    match name:
        case "calculate":
            return run_builtin(name, json.dumps(values)).text
        case "web_search":
            return "1. Visit\nhttps://zoo.example/visit\nOpen daily from 9 to 18, in winter to 17."
        case "get_current_time" | "convert_time":
            zones = [str(zone) for key, zone in values.items() if key.endswith("timezone")]
            return _time(zones, str(values.get("time", "")))
        case "list_directory":
            names = dict.fromkeys(file.removeprefix(folder).split("/")[0] for file in below)
            return "\n".join(names) if below else None
        case "search_files":
            pattern = str(values.get("pattern")).rpartition("/")[2]
            found = [file for file in below if fnmatch(file.rpartition("/")[2], pattern)]
            return "\n".join(found) or "No matches."
        case "read_text_file":
            return FILES.get(path)
        case "get_file_info":
            return f"size: {len(FILES[path])} bytes" if path in FILES else None
    raise ValueError(f"there is no tool {name}")


def _time(zones: Sequence[str], clock: str) -> str:
    """Return the fixed time, or another one of that day, in the last of one or two time zones."""
    from zoneinfo import ZoneInfo

    try:
        places = [ZoneInfo(zone) for zone in zones]
        moment = NOW.astimezone(places[0])
        if clock:
            hour, minute = map(int, clock.split(":"))
            moment = moment.replace(hour=hour, minute=minute)
        return moment.astimezone(places[-1]).isoformat(timespec="minutes")
    except (OSError, LookupError, ValueError) as error:
        raise ValueError("there is no such time zone or time") from error


@dataclass(slots=True)
class Run:
    """What a model did with a task.

    Attributes:
        task: Name of the task.
        calls: Names and arguments of its calls that ran, in order.
        num_repeats: Calls that only repeated one of the round before, which don't run.
        is_right: Whether these are the expected ones.
        num_right: Expected calls that were made, in order.
        answer: Text of the last round.
        texts: Texts of all rounds.
        num_tokens: Tokens of decoding steps.
        num_steps: Decoding steps.
        decode_s: Seconds of all decoding steps.
        total_s: Seconds of the task, prefill included.
        call_tokens: Tokens of decoding steps in rounds that end with calls.
        call_steps: Steps of these rounds.
    """

    task: str
    calls: list[tuple[str, str]]
    num_repeats: int = 0
    is_right: bool = False
    num_right: int = 0
    answer: str = ""
    texts: list[str] | None = None
    num_tokens: int = 0
    num_steps: int = 0
    decode_s: float = 0.0
    total_s: float = 0.0
    call_tokens: int = 0
    call_steps: int = 0


async def run_task(client: Client, facts: ModelLoaded, task: Task, drafter: str) -> Run:
    """Run a task until the model answers without a call."""
    tools = tuple(tool.as_text for tool in TOOLS)
    settings = GenerateSettings(drafter, "greedy", 0.0, max_new_tokens=MOST_TOKENS)
    session = new_id()
    messages: tuple[ChatMessage, ...] = (ChatMessage(Role.USER, task.prompt),)
    run = Run(task.name, [], texts=[])
    before: tuple[RoundCall, ...] = ()
    quotes_results = False
    start_s = time.monotonic()
    for number in range(1, MOST_ROUNDS + 1):
        round_ = Round(new_id())
        num_rounds = number if number < MOST_ROUNDS else call_loop.MOST_ROUNDS + 1
        form = chat_form(
            *(facts, settings, messages, tools, num_rounds), quotes_results=quotes_results
        )
        done = await _generate(client, facts, round_, form, session, settings)
        quotes_results |= round_.content.has_unmarked_calls
        tokens, steps = sum(done.accept_lengths), done.num_steps
        run.num_tokens += tokens
        run.num_steps += steps
        run.decode_s += done.decode_s
        run.texts.append(done.text)  # type: ignore[union-attr]
        calls = round_.content.calls
        if not calls:
            run.answer = round_.content.answer
            break
        run.call_tokens += tokens
        run.call_steps += steps
        round_.calls = ()
        for call in calls:
            same = [o for o in (*before, *round_.calls) if is_same_call(call, o.call)]
            if same and same[0].result is not None:
                run.num_repeats += 1
                result = repeated_result(same[0].result)
            else:
                run.calls.append((call.name, call.arguments))
                result = run_tool(call.name, call.arguments)
            state = CallState.FAILED if result.is_error else CallState.DONE
            round_.calls += (RoundCall(call, state, result=result),)
        before = round_.calls
        messages += round_.messages(keeps_reasoning=True)
    run.total_s = time.monotonic() - start_s
    await client.close_session(session)
    _judge(run, task)
    return run


async def _generate(
    client: Client,
    facts: ModelLoaded,
    round_: Round,
    form: ChatForm,
    session: str,
    settings: GenerateSettings,
) -> GenerationDone:
    """Generate a round as the chat does, with the grammar of calls."""
    round_.content.expect(facts.reasoning, facts.thinking.opens(settings.thinks))
    round_.content.expect_calls(form.calls)
    request = Generate(
        session, round_.id, form.messages, settings, tools=form.tools, grammar=form.grammar
    )
    done = None
    async with aclosing(client.generate(request)) as events:
        async for event in events:
            if isinstance(event, StepDone):
                round_.content.append(event)
            elif isinstance(event, GenerationDone):
                done = event
    assert done is not None  # the last event of an answer
    round_.end(done)
    return done


def _judge(run: Run, task: Task) -> None:
    """Compare the calls with the expected ones."""
    for expected, (name, arguments) in zip(task.calls, run.calls, strict=False):
        try:
            values = json.loads(arguments or "{}")
        except ValueError:
            break
        if name != expected.tool or not isinstance(values, dict) or not expected.check(values):
            break
        run.num_right += 1
    is_json = run.answer.lstrip().startswith(("{", "```json"))
    run.is_right = run.num_right == len(task.calls) == len(run.calls) and not is_json


def figures(runs: Sequence[Run]) -> dict[str, float]:
    """Return rates and speeds of all tasks."""
    num_tokens = sum(run.num_tokens for run in runs)
    call_steps = sum(run.call_steps for run in runs)
    decode_s = sum(run.decode_s for run in runs)
    return {
        "tasks": len(runs),
        "answers": sum(bool(run.answer.strip()) for run in runs),
        "right_tasks": sum(run.is_right for run in runs),
        "right_calls": sum(run.num_right for run in runs),
        "repeated_calls": sum(run.num_repeats for run in runs),
        "calls": sum(len(run.calls) for run in runs),
        "tokens": num_tokens,
        "tokens_per_s": num_tokens / max(decode_s, 1e-9),
        "tokens_per_step": num_tokens / max(1, sum(run.num_steps for run in runs)),
        "tokens_per_step_of_calls": sum(run.call_tokens for run in runs) / max(1, call_steps),
        "total_s": sum(run.total_s for run in runs),
    }


async def measure(
    load: LoadModel, drafter: str, names: Sequence[str], *, has_plain: bool
) -> dict[str, Any]:
    """Run tasks with and without drafts; the two take turns, so that both see the same load."""
    tasks = [task for task in (*TASKS, *HELD_OUT) if not names or task.name in names]
    async with Client() as client:
        facts = await client.load(load)
        await client.calibrate()
        drafter = drafter or next(d.name for d in facts.drafters if d.name != PLAIN)
        # A conversation that stays open, from whose cache all tasks take the rows of the tools.
        greeting = (ChatMessage(Role.USER, "Hello"),)
        settings = GenerateSettings(PLAIN, "greedy", 0.0, max_new_tokens=1)
        form = chat_form(facts, settings, greeting, tuple(tool.as_text for tool in TOOLS))
        await _generate(client, facts, Round(new_id()), form, "tools", settings)
        runs: dict[str, list[Run]] = {drafter: [], PLAIN: []}
        for number, task in enumerate(tasks):
            both = (drafter, PLAIN) if number % 2 else (PLAIN, drafter)
            for name in both if has_plain else (drafter,):
                runs[name].append(await run_task(client, facts, task, name))
            _show(runs[drafter][-1], runs[PLAIN][-1] if has_plain else None)
    groups = {"tasks": TASKS, "held_out": HELD_OUT}
    return {
        "model": facts.name,
        "drafter": drafter,
        **{name: _group([t for t in group if t in tasks], runs) for name, group in groups.items()},
        "runs": {name: [asdict(run) for run in done] for name, done in runs.items()},
    }


def _group(tasks: Sequence[Task], runs: Mapping[str, Sequence[Run]]) -> dict[str, Any]:
    """Return the figures of some tasks for each drafter that ran."""
    names = {task.name for task in tasks}
    of_tasks = {
        drafter: [run for run in done if run.task in names]
        for drafter, done in runs.items()
        if done
    }
    texts = [[run.texts for run in done] for done in of_tasks.values()]
    return {
        "needed_calls": sum(len(task.calls) for task in tasks),
        "equal_texts": sum(one == other for one, other in zip(texts[0], texts[-1], strict=True)),
        **{drafter: figures(done) for drafter, done in of_tasks.items()},
    }


def _show(run: Run, plain: Run | None) -> None:
    """Print a task's result."""
    mark = "right" if run.is_right else "wrong"
    equal = "" if plain is None or run.texts == plain.texts else "   TEXTS DIFFER"
    calls = "; ".join(f"{name} {arguments}" for name, arguments in run.calls) or "no call"
    answer = " ".join(run.answer.split())[:120]
    print(f"{run.task:14}{mark:7}{calls}{equal} → {answer or '(none)'}", flush=True)


def _print_group(name: str, group: Mapping[str, Any]) -> None:
    """Print the figures of a group of tasks."""
    print(f"{name.replace('_', ' ')}: equal texts {group['equal_texts']}")
    for drafter, values in group.items():
        if not isinstance(values, dict):
            continue
        print(
            f"{drafter:12} right tasks {values['right_tasks']} of {values['tasks']}, right calls "
            f"{values['right_calls']} of {group['needed_calls']}, repeated calls "
            f"{values['repeated_calls']}, answers {values['answers']}, "
            f"{values['tokens_per_s']:.1f} tokens/s, {values['tokens_per_step']:.2f} tokens per "
            f"step, {values['tokens_per_step_of_calls']:.2f} in rounds with calls"
        )


def main() -> int:
    """Run all tasks on a model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="folder of a model, or a GGUF file")
    parser.add_argument("--heads", type=Path, help="folder of its heads")
    parser.add_argument("--drafter", default="", help="default: the model's")
    parser.add_argument("--tasks", nargs="*", default=(), metavar="NAME", help="default: all")
    parser.add_argument("--threads", type=int, default=0, help="default: the fastest number")
    parser.add_argument("--drafts-only", action="store_true", help="don't compare with plain")
    parser.add_argument("--json", type=Path, help="file for all figures and calls")
    given = parser.parse_args()
    options = LoadOptions(context_tokens=CONTEXT, sessions=2)
    load = LoadModel(
        "bench", new_id(), given.model, given.heads, options, num_threads=given.threads
    )
    has_plain = not given.drafts_only
    found = asyncio.run(measure(load, given.drafter, given.tasks, has_plain=has_plain))
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{found['model']}, {found['drafter']}")
    for group in ("tasks", "held_out"):
        _print_group(group, found[group])
    return 0


if __name__ == "__main__":
    sys.exit(main())
