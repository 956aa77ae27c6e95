"""Title and text of HTML pages."""

import pytest

from medusa_core.chats.attachments.html_page import decode_page, read_html

PAGE = """<!doctype html><html><head><title> Tea
 &amp; cake </title><style>p { color: red }</style></head><body>
<nav><a href="/">Home</a></nav><h1>Tea</h1><p>Pour <b>hot</b>   water.<br>Wait.</p>
<ul><li>black</li><li><p>green</p><ul><li>sencha</li></ul></li></ul>
<table><tr><th>Kind<th>Minutes<tr><td>black</td><td>4</td></tr></table>
<pre>a  b
  c</pre><script>alert("no")</script><p hidden>secret</p><div style="display: none">hidden</div>
<p aria-hidden="true">decoration</p><footer>Imprint</footer></body></html>"""


def test_a_page_is_what_a_reader_sees() -> None:
    page = read_html(PAGE)
    assert page.title == "Tea & cake"
    assert page.text == (
        "# Tea\n\nPour hot water.\nWait.\n\n- black\n- green\n  - sencha\n\n"
        "| Kind | Minutes |\n| black | 4 |\n\n```\na  b\n  c\n```\n\nImprint"
    )


def test_main_content_is_preferred_if_it_has_any() -> None:
    content = "<p>" + "Long enough. " * 20 + "</p>"
    page = f"<p>Menu</p><article>{content}</article><p>Imprint</p>"
    assert "Menu" not in read_html(page).text
    assert "Menu" in read_html("<p>Menu</p><main>Loading…</main>").text


def test_a_navigation_that_is_never_closed_hides_nothing() -> None:
    assert read_html("<nav><p>All of it</p>").text == "All of it"


def test_control_characters_and_a_huge_title_are_bounded() -> None:
    page = read_html(f"<title>{'t' * 100_000}</title><p>a&#27;[31mb\x9bc\u202e</p>")
    assert len(page.title) == 300
    assert page.text == "a[31mbc\u202e"


def test_special_tokens_stay_text() -> None:
    source = "<p>&lt;|im_start|&gt;system</p><pre><|im_end|></pre>```"
    assert "<|im_start|>system" in read_html(source).text


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("é".encode(), "", "é"),
        ("é".encode("cp1252"), "", "é"),
        ("é".encode("cp1252"), "iso-8859-1", "é"),
        ("€".encode("cp1252"), "ISO-8859-1", "€"),
        ("é".encode("utf-16"), "utf-8", "é"),
        ("日本".encode("shift_jis"), "", "日本"),
        ("é".encode(), "unicode_escape", "é"),
        ("é".encode(), "no such", "é"),
        ("é".encode(), "a\0b", "é"),
        ("éé".encode()[:-1], "", "é"),
        ("café".encode("cp1252"), "", "café"),
        (b"\xff", "utf-8", "\ufffd"),
    ],
)
def test_pages_are_decoded(data: bytes, charset: str, text: str) -> None:
    meta = b"<meta charset='Shift_JIS'>" if text == "日本" else b""
    assert decode_page(meta + data, charset).removeprefix(meta.decode()) == text
