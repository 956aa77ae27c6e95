"""200 texts that tokenizers stumble over, the same in every run.

None is decomposed: Qwen's tokenizer composes letters and accents, which llama.cpp leaves alone.
"""

import random

_PIECES = (
    *(
        "Hello",
        " world",
        "  two spaces",
        "\n",
        "\n\n\n",
        "\t",
        "\r\n",
        " ",
        "     ",
        ".",
        "...",
        "?!",
    ),
    *("don't", "I'LL", "we've", "x's", "3.14", "1,000,000", "007", "12345678901", "0x1F", "½", "²"),
    *("über", "naïve", "Straße", "İstanbul", "Ångström", "\u00e9", "ﬁ", "ǆ", "ß"),
    *(
        "漢字",
        "ひらがな",
        "カタカナ",
        "한국어",
        "ไทย",
        "العربية",
        "עברית",
        "हिन्दी",
        "বাংলা",
        "Ελληνικά",
    ),
    *(
        "😀",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "❤️",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u00a0",
        "\u3000",
        "\u2028",
        "\u202e",
    ),
    *(
        "<|im_start|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<s>",
        "<bos>",
        "<end_of_turn>",
        "[INST]",
    ),
    *(
        "def f(x):\n    return x**2",
        '{"a": [1, 2]}',
        "<p class='x'>",
        "C:\\dir\\n",
        "a_b__c",
        "#!/bin",
    ),
    *("https://example.org/?q=1&r=%20", "me@x.y", "$5", "€", "∑∫√", "→", "—", "“q”", "‘s’", "«»"),
    *("\x00", "\x07", "\x7f", "\u0378", "\U0010ffff", "𝔘𝔫𝔦", "𠀀", "▁", "Ġ", "Ċ", "ĠĠ", "<0x0A>"),
    *("AAAAAAAAAAAAAAAA", "aAbBcC", "ALLCAPS", "camelCase", "snake_case", "-----", "=====", "____"),
)


def _texts() -> tuple[str, ...]:
    numbers = random.Random(37)
    mixed = ["".join(numbers.choices(_PIECES, k=numbers.randint(2, 9))) for _ in range(200)]
    texts = [*_PIECES, *mixed]
    return tuple(dict.fromkeys(texts))[:200]


ODD_TEXTS = _texts()
