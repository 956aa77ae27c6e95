"""Whether a model thinks before it answers, and that it doesn't read its thoughts again."""

from dataclasses import replace

from medusa_core.chats.conversation import Conversation
from medusa_core.chats.settings import ChatSettings
from medusa_core.engine.overflow import fit
from medusa_core.engine.transcript import transcribe
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Role, ThinkingSwitch
from medusa_core.models.text.template import ChatTemplate

SWITCHED = (
    "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% endif %}{% endif %}"
)
TURNS = (ChatMessage(Role.USER, "a"),)


def test_a_template_gets_the_reasoning_switch() -> None:
    template = ChatTemplate(SWITCHED, {})
    assert template.thinking == ThinkingSwitch(can_switch=True)
    default = template.render(TURNS)
    assert template.render(TURNS, thinks=True) == default
    assert template.render(TURNS, thinks=False) == default + "<think>\n\n</think>\n\n"


def test_a_template_may_open_the_reasoning_itself() -> None:
    opens = SWITCHED.replace("{% endif %}{% endif %}", "{% else %}<think>\n{% endif %}{% endif %}")
    switch = ChatTemplate(opens, {}).thinking
    assert switch == (True, True, True)
    assert [switch.opens(thinks) for thinks in (None, True, False)] == [True, True, False]
    granite = "{% if thinking %}Think.{% endif %}{{ messages[0].content }}"
    reported = ChatTemplate(granite, {})
    assert reported.thinking == (True, False, False)
    assert reported.render(TURNS, thinks=True) == "Think.a"


def test_a_template_without_a_switch_ignores_it() -> None:
    # A variable of its own, or of a message, is none.
    source = "{% set thinking = 1 %}{{ messages[0].content }}{{ messages[0].thinking }}"
    template = ChatTemplate(source, {})
    assert not template.thinking.can_switch
    assert template.render(TURNS, thinks=False) == template.render(TURNS) == "a"


def test_a_prompt_says_whether_the_answer_begins_inside_its_reasoning(tiny: Target) -> None:
    # Some models are told in a message, which no switch knows of.
    source = SWITCHED.replace(
        "{% endif %}{% endif %}",
        "{% elif '/no' in messages[-1].content %}<think></think>"
        "{% else %}<think>\n{% endif %}{% endif %}",
    )
    target = replace(tiny, template=ChatTemplate(source, {}))
    tags = target.template.reasoning
    for content, thinks, opens in (("a", None, True), ("a", False, False), ("a /no", None, False)):
        turns = (ChatMessage(Role.USER, content),)
        transcript = transcribe(turns, None, target, thinks)
        assert transcript.opens_reasoning(tags) is opens


def test_reasoning_is_a_setting_of_the_answer(tiny: Target) -> None:
    target = replace(tiny, template=ChatTemplate(SWITCHED, {}))
    lengths = [
        len(fit(TURNS, None, target, GenerateSettings(thinks=thinks)).transcript.token_ids)
        for thinks in (None, True, False)
    ]
    assert lengths[0] == lengths[1] < lengths[2]
    assert ChatSettings().with_json({"thinks": False}).generate_settings(0).thinks is False
    assert ChatSettings().with_json({"thinks": "yes"}).thinks is None


def test_later_turns_dont_render_earlier_reasoning() -> None:
    talk = Conversation()
    turn = talk.ask("one", GenerateSettings())
    turn.answer.content.finish("<think>hm</think>\n\nfirst")
    assert talk.remembered()[-1] == ChatMessage(Role.ASSISTANT, "first")
    assert talk.whole()[-1].text == turn.answer.text
    stuck = talk.ask("two", GenerateSettings())
    stuck.answer.content.finish("<think>never ends")
    talk.ask("three", GenerateSettings())
    assert talk.messages() == (
        ChatMessage(Role.USER, "one"),
        ChatMessage(Role.ASSISTANT, "first"),
        ChatMessage(Role.USER, "three"),
    )
