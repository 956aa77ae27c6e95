"""Tables of LaTeX commands for a character, a name, an accent or a space."""

from __future__ import annotations

from enum import Enum, auto


class Kind(Enum):
    """Role of a part of a formula beside other parts; decides spaces and brackets."""

    SPACE = auto()
    LETTER = auto()
    NUMBER = auto()
    WORDS = auto()
    OPEN = auto()
    CLOSE = auto()
    BAR = auto()
    GROUP = auto()
    CALL = auto()
    FRACTION = auto()
    ROOT = auto()
    FUNCTION = auto()
    PREFIX = auto()
    POSTFIX = auto()
    SUM = auto()
    TIMES = auto()
    OPERATOR = auto()
    RELATION = auto()
    PUNCTUATION = auto()
    COLUMN = auto()
    LINE = auto()
    CASES = auto()
    MATRIX = auto()
    LINES = auto()


_LETTERS = """
alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι
kappa κ varkappa ϰ lambda λ mu μ nu ν xi ξ omicron ο pi π varpi ϖ rho ρ varrho ϱ sigma σ
varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ
Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω digamma ϝ infty ∞ partial ∂ nabla ∇ emptyset ∅
varnothing ∅ hbar ℏ hslash ℏ ell ℓ Re ℜ Im ℑ wp ℘ aleph ℵ beth ℶ gimel ℷ angle ∠ measuredangle ∡
triangle △ square □ Box □ blacksquare ■ lozenge ◊ diamondsuit ♢ heartsuit ♡ clubsuit ♣ spadesuit ♠
checkmark ✓ degree ° imath ı jmath ȷ top ⊤ bot ⊥ prime ′ flat ♭ natural ♮ sharp ♯ complement ∁
eth ð mho ℧ bigstar ★ P ¶ S § pounds £ euro € AA Å aa å o ø O Ø ss ß ae æ oe œ copyright ©
"""
_SUMS = "pm ± mp ∓"
_TIMES = "cdot · times × ast * cdotp ·"
_OPERATORS = """
div ÷ circ ∘ bullet • star ⋆ oplus ⊕ ominus ⊖ otimes ⊗ oslash ⊘ odot ⊙ wedge ∧ land ∧ vee ∨ lor ∨
cap ∩ cup ∪ uplus ⊎ sqcap ⊓ sqcup ⊔ setminus ∖ smallsetminus ∖ wr ≀ amalg ⨿ dagger † ddagger ‡
diamond ⋄ bigtriangleup △ bigtriangledown ▽ triangleleft ◁ triangleright ▷ ltimes ⋉ rtimes ⋊
bowtie ⋈ Join ⋈ veebar ⊻ barwedge ⊼ boxplus ⊞ boxminus ⊟ boxtimes ⊠ boxdot ⊡ intercal ⊺
dotplus ∔ curlyvee ⋎ curlywedge ⋏ Cap ⋒ Cup ⋓ divideontimes ⋇
"""
_RELATIONS = """
le ≤ leq ≤ leqslant ⩽ ge ≥ geq ≥ geqslant ⩾ ne ≠ neq ≠ lt < gt > ll ≪ gg ≫ lll ⋘ ggg ⋙ approx ≈
approxeq ≊ equiv ≡ cong ≅ sim ∼ simeq ≃ propto ∝ varpropto ∝ asymp ≍ doteq ≐ triangleq ≜ prec ≺
succ ≻ preceq ⪯ succeq ⪰ in ∈ notin ∉ ni ∋ owns ∋ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇
subsetneq ⊊ supsetneq ⊋ nsubseteq ⊈ nsupseteq ⊉ sqsubset ⊏ sqsupset ⊐ sqsubseteq ⊑ sqsupseteq ⊒
mid | nmid ∤ parallel ∥ nparallel ∦ perp ⊥ models ⊨ vDash ⊨ vdash ⊢ dashv ⊣ nvdash ⊬ nvDash ⊭
to → rightarrow → gets ← leftarrow ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔
longrightarrow ⟶ longleftarrow ⟵ longleftrightarrow ⟷ Longrightarrow ⟹ Longleftarrow ⟸
Longleftrightarrow ⟺ implies ⟹ impliedby ⟸ iff ⟺ mapsto ↦ longmapsto ⟼ hookrightarrow ↪
hookleftarrow ↩ uparrow ↑ downarrow ↓ updownarrow ↕ Uparrow ⇑ Downarrow ⇓ nearrow ↗ searrow ↘
swarrow ↙ nwarrow ↖ rightharpoonup ⇀ rightharpoondown ⇁ leftharpoonup ↼ leftharpoondown ↽
rightleftharpoons ⇌ leftrightharpoons ⇋ rightleftarrows ⇄ rightrightarrows ⇉ leadsto ⇝
rightsquigarrow ⇝ twoheadrightarrow ↠ rightarrowtail ↣ nrightarrow ↛ nleftarrow ↚ nRightarrow ⇏
coloneqq ≔ coloneq ≔ eqqcolon ≕ lesssim ≲ gtrsim ≳ lessgtr ≶ gtrless ≷ nless ≮ ngtr ≯ nleq ≰
ngeq ≱ trianglelefteq ⊴ trianglerighteq ⊵ vartriangleleft ⊲ vartriangleright ⊳ backsim ∽ bumpeq ≏
therefore ∴ because ∵ between ≬ pitchfork ⋔ smile ⌣ frown ⌢ ncong ≇ nsim ≁ curvearrowright ↷
circlearrowright ↻ circlearrowleft ↺ restriction ↾ upharpoonright ↾ Vdash ⊩ thicksim ∼ thickapprox ≈
"""
_PREFIXES = """
sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ iiiint ⨌ oint ∮ oiint ∯ bigcup ⋃ bigcap ⋂ bigvee ⋁
bigwedge ⋀ bigoplus ⨁ bigotimes ⨂ bigodot ⨀ biguplus ⨄ bigsqcup ⨆ neg ¬ lnot ¬ forall ∀ exists ∃
nexists ∄ intop ∫ smallint ∫
"""
_PUNCTUATION = """
ldots … dots … cdots ⋯ vdots ⋮ ddots ⋱ dotsc … dotsb ⋯ dotsm ⋯ dotsi ⋯ dotso … hdots …
iddots ⋰ colon : # # & & $ $ semicolon ; period . comma ,
"""
_POSTFIXES = "% %"
_OPEN = "lbrace { { { langle ⟨ lfloor ⌊ lceil ⌈ lbrack [ lparen ( ulcorner ⌜ lgroup ("
_CLOSE = "rbrace } } } rangle ⟩ rfloor ⌋ rceil ⌉ rbrack ] rparen ) urcorner ⌝ rgroup )"
_BARS = "vert | lvert | rvert | | ‖ Vert ‖ lVert ‖ rVert ‖"

_TABLES = {
    Kind.LETTER: _LETTERS,
    Kind.SUM: _SUMS,
    Kind.TIMES: _TIMES,
    Kind.OPERATOR: _OPERATORS,
    Kind.RELATION: _RELATIONS,
    Kind.PREFIX: _PREFIXES,
    Kind.PUNCTUATION: _PUNCTUATION,
    Kind.POSTFIX: _POSTFIXES,
    Kind.OPEN: _OPEN,
    Kind.CLOSE: _CLOSE,
    Kind.BAR: _BARS,
}
_CHARS = {
    Kind.SUM: "+-−±∓",
    Kind.TIMES: "*·×⋅∗",
    Kind.OPERATOR: "/:÷∘⊕⊗∧∨∩∪∖",
    Kind.RELATION: "=<>≤≥≠≈≡∼∈∉⊂⊆→←↔⇒⇔↦∝",
    Kind.PUNCTUATION: ",;.?…⋯",
    Kind.OPEN: "([⟨⌊⌈",
    Kind.CLOSE: ")]⟩⌋⌉",
    Kind.BAR: "|‖",
    Kind.POSTFIX: "!′°",
    Kind.PREFIX: "∑∏∫¬∀∃",
}


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _pairs(table: str) -> dict[str, str]:
    words = table.split()
    return dict(zip(words[::2], words[1::2], strict=True))


SYMBOLS = {
    name: (kind, char) for kind, table in _TABLES.items() for name, char in _pairs(table).items()
}
KIND_OF_CHAR = {char: kind for kind, chars in _CHARS.items() for char in chars}

FUNCTIONS = _names("""
arccos arcsin arctan arg argmax argmin cos cosh cot coth csc deg det dim exp gcd hom inf ker lcm
lg lim liminf limsup ln log max min mod Pr sec sech sgn sign sin sinh sup tan tanh tr rank  erf
injlim projlim
""")
SPACES = dict.fromkeys(
    [",", ";", ":", ">", " ", "enspace", "thinspace", "medspace", "thickspace", "space", "enskip"],
    " ",
) | {"quad": "\u2003", "qquad": "\u2003\u2003"}
# They change sizes and places, and no meaning.
WITHOUT_TEXT = _names("""
! negthinspace displaystyle textstyle scriptstyle scriptscriptstyle limits nolimits nonumber
notag rm mathstrut strut relax hfill centering allowbreak nobreak / small large normalsize
ensuremath mathop mathrel mathbin mathord mathopen mathclose mathpunct
""")
SIZES = frozenset(
    size + side for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r", "m")
)
ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "bar": "\u0304", "overline": "\u0305",
    "tilde": "\u0303", "widetilde": "\u0303", "vec": "\u20d7", "overrightarrow": "\u20d7",
    "overleftarrow": "\u20d6", "dot": "\u0307", "ddot": "\u0308", "dddot": "\u20db",
    "check": "\u030c", "breve": "\u0306", "acute": "\u0301", "grave": "\u0300",
    "mathring": "\u030a", "underline": "\u0332", "underbar": "\u0332",
}  # fmt: skip
UPRIGHT = _names("mathrm mathit mathnormal textnormal operatorname operatornamewithlimits")
TEXT = _names("text textrm textit textup mbox hbox textmd")

# First capital, first small letter and first digit of Unicode's alphabets; 0 for none.
_ALPHABETS = {
    "mathbf": (0x1D400, 0x1D41A, 0x1D7CE),
    "boldsymbol": (0x1D400, 0x1D41A, 0x1D7CE),
    "bm": (0x1D400, 0x1D41A, 0x1D7CE),
    "textbf": (0x1D400, 0x1D41A, 0x1D7CE),
    "pmb": (0x1D400, 0x1D41A, 0x1D7CE),
    "mathbb": (0x1D538, 0x1D552, 0x1D7D8),
    "Bbb": (0x1D538, 0x1D552, 0x1D7D8),
    "mathcal": (0x1D49C, 0x1D4B6, 0),
    "mathscr": (0x1D49C, 0x1D4B6, 0),
    "mathfrak": (0x1D504, 0x1D51E, 0),
    "mathsf": (0x1D5A0, 0x1D5BA, 0x1D7E2),
    "mathtt": (0x1D670, 0x1D68A, 0x1D7F6),
}
ALPHABETS = frozenset(_ALPHABETS)
# Letters that Unicode had before their alphabets.
_ELSEWHERE = dict(
    zip(
        map(chr, (
            0x1D53A, 0x1D53F, 0x1D545, 0x1D547, 0x1D548, 0x1D549, 0x1D551, 0x1D49D, 0x1D4A0,
            0x1D4A1, 0x1D4A3, 0x1D4A4, 0x1D4A7, 0x1D4A8, 0x1D4AD, 0x1D4BA, 0x1D4BC, 0x1D4C4,
            0x1D506, 0x1D50B, 0x1D50C, 0x1D515, 0x1D51D,
        )),
        "ℂℍℕℙℚℝℤℬℰℱℋℐℒℳℛℯℊℴℭℌℑℜℨ",
        strict=True,
    )
)  # fmt: skip
_BOLD_GREEK = {"A": (0x391, 0x1D6A8), "a": (0x3B1, 0x1D6C2)}


def styled(char: str, alphabet: str) -> str:
    """Return a letter or digit in a mathematical alphabet; empty if Unicode has none."""
    capital, small, digit = _ALPHABETS[alphabet]
    code = ord(char)
    if char.isascii():
        first = (
            (capital, "A") if char.isupper() else (small, "a") if char.islower() else (digit, "0")
        )
        is_known = char.isalnum() and first[0]
        found = chr(first[0] + code - ord(first[1])) if is_known else ""
        return _ELSEWHERE.get(found, found)
    if capital == 0x1D400:
        for start, bold in _BOLD_GREEK.values():
            if start <= code <= start + 24:
                return chr(bold + code - start)
        return {"∇": "𝛁", "∂": "𝛛"}.get(char, "")
    return ""
