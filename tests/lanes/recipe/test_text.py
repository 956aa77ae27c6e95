"""What is trained on: tokens of texts and chats, and which rows are left out."""

from recipe.corpus import Document, Segment, is_acceptable
from recipe.templates import make_documents
from recipe.tokenizer import encode_prompt, train_tokenizer
from tests.lanes.recipe.toy_recipe import TINY


def test_encoding_a_chat_gives_what_the_chat_template_gives() -> None:
    from jinja2 import Environment

    from recipe.tokenizer import CHAT_TEMPLATE

    tokenizer = train_tokenizer([d.text for d in make_documents(4000, 1)], TINY.vocab_size)
    messages = [("user", " Hello!\n"), ("assistant", "Hi."), ("user", "What is 3 + 4?")]
    text = (
        Environment()
        .from_string(CHAT_TEMPLATE)
        .render(
            messages=[{"role": role, "content": content} for role, content in messages],
            add_generation_prompt=True,
        )
    )
    assert tokenizer.encode(text).ids == encode_prompt(tokenizer, messages)


def test_the_tokenizer_gives_back_every_text_byte_for_byte() -> None:
    tokenizer = train_tokenizer(["some words"], 300)
    for text in ("  two  spaces\n\n\ttab 1234 x=5;", "naïve 😀 Ωmega", "a\r\nb"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_digits_are_single_tokens() -> None:
    tokenizer = train_tokenizer(["1234 1234 1234 12 34"] * 50, 300)
    assert len(tokenizer.encode("1234").ids) == 4


def test_a_row_that_repeats_itself_is_omitted() -> None:
    circle = "and then he went to the shop " * 3
    sane = "First he went to the shop. Then she saw the sea, and they all sat down to eat."
    for text, kept in ((circle, False), (sane, True)):
        document = Document("rows", (Segment("user", "Tell me."), Segment("assistant", text)))
        assert is_acceptable(document) is kept
