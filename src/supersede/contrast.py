"""Whether two claims that lie close together say the same thing: the words decide.

An embedding proposes; it cannot decide. It puts "port 5432" next to "port 5433" and "is hybrid"
next to "is not hybrid". So the words are compared, and in doubt two claims are kept apart: a missed
restatement shows a reader something twice, a merged contradiction hides something from them.

Pure: text in, verdict out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

# --- words that stand for classes ---------------------------------------------------------------

# These only hold a claim together: articles, "is" in the present, "and", "now".
_FREE = frozenset(
    "the a an this that these those there here we our ours us it its they their theirs them "
    "is are am be been being become becomes becoming do does doing was were had did became "
    "and plus also both too all each every now currently presently".split()
)
# These hold it together as well, but give it a direction when both claims have them.
_GLUE = frozenset("of with use have".split())
_PAST = frozenset("was were had did became used".split())
_PLAIN = {
    **{"no": "not", "aint": "not", "uses": "use", "using": "use", "used": "use"},
    **{"has": "have", "having": "have", "an": "a", "percent": "%"},
    **{
        word: str(number)
        for number, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve".split()
        )
    },
}
# Each turns the claim round, or can: where one claim has such a word, so must the other.
_POLAR = frozenset(
    # negation and restriction
    "not never none nobody nothing nowhere neither nor without non hardly barely scarcely rarely "
    "seldom except unless only fail lack refuse unable almost nearly or but instead "
    # how much, how many, which
    "some few several many most half twice once thousand million billion dozen more less fewer "
    "least maximum minimum max min first second third last next "
    # when
    "before after until since earlier later former formerly previously ago yet ever always "
    "sometimes hourly daily weekly monthly quarterly yearly annual annually "
    "monday tuesday wednesday thursday friday saturday sunday january february april june july "
    "august september october november december yesterday today tomorrow "
    # may and must
    "must should may might could would will shall optional required mandatory "
    "allow permit forbid forbidden deny ban prohibit "
    # opposites
    "enable disable on off open closed public private internal external active inactive "
    "true false right wrong accept reject approve decline pass grant revoke add remove start stop "
    "begin end increase decrease rise rose fall fell grow grew shrink shrank gain lose lost win won "
    "up down above below over under inside outside left upstream downstream "
    "north south east west import export send receive push pull buy sell".split()
)
_UNITS = {
    alias: aliases.split()[0]
    for aliases in (
        "ns nanosecond nanoseconds|us µs μs microsecond microseconds|ms millisecond milliseconds|"
        "s sec secs second seconds|min mins minute minutes|h hr hrs hour hours|day d days|"
        "week weeks|month months|year years|kb kilobyte kilobytes|mb megabyte megabytes|"
        "gb gigabyte gigabytes|tb terabyte terabytes|mm millimetre millimetres millimeter "
        "millimeters|cm centimetre centimetres centimeter centimeters|m metre metres meter meters|"
        "km kilometre kilometres kilometer kilometers|g gram grams|kg kilogram kilograms|am|pm|%"
    ).split("|")
    for alias in aliases.split()
}
_TURNING = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "de")
_NO_PLURAL = frozenset("news means always perhaps series goods".split())

# --- folding: what nobody would call a difference -----------------------------------------------

_STRAIGHT = str.maketrans({**dict.fromkeys("’‘ʼ＇", "'"), **dict.fromkeys("−‐‑", "-")})
# An apostrophe between two letters belongs to the word: "we're" is not "were".
_QUOTE = re.compile(r"(?<!\w)'|'(?!\w)|[\"`´‚‛“”„‟«»‹›「」『』〝〞〟＂]")


def fold_claim(text: str) -> str:
    """The claim without what nobody would call a difference; equal results mean one claim.

    Folded away are compatibility forms, case, the amount of white space, quotation marks and one
    full stop at the end. Other punctuation stays: C is not C++. Folding twice changes nothing.
    """
    folded = _fold_once(text)
    while folded != (again := _fold_once(folded)):  # removing a mark can join what it held apart
        folded = again
    body = folded.removesuffix(".").rstrip()
    return folded if body.endswith(".") else body  # "wait..." does not end in a full stop


def _fold_once(text: str) -> str:
    return " ".join(_unquoted(text).casefold().split())


def _unquoted(text: str) -> str:
    return unicodedata.normalize("NFKC", _QUOTE.sub("", text.translate(_STRAIGHT)))


# --- the verdict --------------------------------------------------------------------------------


def contrast(a: str, b: str) -> bool:
    """Whether the two claims state different things in their words.

    They do if their hard tokens differ or come in another order (numbers, dates, identifiers,
    names, symbols, negations and other polar words), or if what then still differs is one thing in
    place of another. They do not if one merely says it in other words, or says more.

    The order of the two does not matter. Meant for claims that an embedding already found close:
    two claims about unrelated things need not contrast.
    """
    one, other = _read(a), _read(b)
    if one.folded == other.folded:
        return False
    names = one.names | other.names
    if one.hard(names) != other.hard(names):
        return True
    glue = one.glue & other.glue
    # What is spoken of, the first word, may be a name whose capital says nothing: not "Roberts".
    whole = names | {claim.tokens[0].word for claim in (one, other) if claim.tokens}
    left, right = _without_common_ends(one.words(whole, glue), other.words(whole, glue))
    if not left or not right:
        return one.past != other.past  # nothing but an addition; yet what was is not what is
    if sorted(left) == sorted(right):
        # "Hybrid retrieval" may follow "retrieval is hybrid". But an exchange around something
        # that stays in place turns the claim round: "client calls server", "server calls client".
        return not any(left[i:] + left[:i] == right for i in range(len(left)))
    return not set(left) & set(right) or _turned(left, right) or _turned(right, left)


def _without_common_ends(left: list[str], right: list[str]) -> tuple[list[str], list[str]]:
    shortest = min(len(left), len(right))
    start = end = 0
    while start < shortest and left[start] == right[start]:
        start += 1
    while end < shortest - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return left[start : len(left) - end], right[start : len(right) - end]


def _turned(left: list[str], right: list[str]) -> bool:
    """Whether one side has a word of the other under a prefix that turns it round."""
    return any(prefix + word in right for word in left if len(word) > 3 for prefix in _TURNING)


# --- reading a claim ----------------------------------------------------------------------------


class _Token(NamedTuple):
    word: str
    stem: str
    hard: str  # what the other claim must have in this place; empty for ordinary words


class _Claim(NamedTuple):
    folded: str
    tokens: tuple[_Token, ...]
    names: frozenset[str]  # words seen with a capital where none was due
    glue: frozenset[str]
    past: bool

    def hard(self, names: frozenset[str]) -> list[str]:
        """The hard tokens in order. A word that is a name in one claim is one in the other."""
        return [hard or word for word, _, hard in self.tokens if hard or word in names]

    def words(self, whole: frozenset[str], glue: frozenset[str]) -> list[str]:
        """All that carries meaning, in order; the words in `whole` are left as they are."""
        return [
            word if word in whole else stem
            for word, stem, _ in self.tokens
            if word not in _GLUE or word in glue
        ]


@lru_cache(maxsize=4096)
def _read(text: str) -> _Claim:
    tokens: list[_Token] = []
    names: set[str] = set()
    past = after_number = False
    for raw, capital in _raw_words(text):
        for word in _spelt_plainly(raw, after_number=after_number):
            past |= word in _PAST
            word = _PLAIN.get(word, word)
            hard = _hardness(word, raw, capital=capital, after_number=after_number)
            after_number = word[-1].isdigit()
            if hard or word not in _FREE:
                tokens.append(_Token(word, word if hard == word else _stem(word), hard))
                if capital and raw[0].isupper() and not hard and word not in _GLUE:
                    names.add(word)
    glue = frozenset(token.word for token in tokens if token.word in _GLUE)
    return _Claim(fold_claim(text), tuple(tokens), frozenset(names), glue, past)


_LABEL = re.compile(
    r"\s*(?:[#>*•–—-]+\s+)*(?:(?:decision|decided|note|fyi|update|fact)\s*[:–—-]\s+)?", re.I
)
_PER_CENT = re.compile(r"\bper cent\b", re.I)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MONTHS = "january february march april may june july august september october november december"
_MONTH = rf"\b({'|'.join(m if len(m) < 4 else f'{m[:3]}(?:{m[3:]})?' for m in _MONTHS.split())})\b"
_DAY = r"\b(\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR = r"(?:,? (\d{4})\b)?(?!\.?\d)"
_DAY_MONTH = re.compile(rf"{_DAY}(?: of)? {_MONTH}\.?{_YEAR}", re.I)
_MONTH_DAY = re.compile(rf"{_MONTH}\.? {_DAY}{_YEAR}", re.I)
_TOKEN = re.compile(
    r"""(?P<arithmetic> (?<=\d)\s[-+*/](?=\s\d) )
    | (?P<word> (?:(?<![^\s(\[=<>~$€£¥])(?:-(?=\.?\d)|\.{0,2}/|~/|\.))?  # -5, /etc, .NET
        \w+ (?:(?:[-./:@\\&']|://|::|--)\w+)* )
    | (?P<symbol> <=|>=|!=|<->|<-|->|=> | (?<!\S)-(?=[$€£¥]) | (?<=\w)\+(?!\w)
        | [^-\w\s.,;:!()\[\]{}/\\|–—…•·*]+ )
    | (?P<stop> (?<!\b\w)[.:;!](?=\s) | \s[-–—]+\s )  # H. P. Lovecraft is no three sentences
    """,
    re.VERBOSE,
)


def _raw_words(text: str) -> Iterator[tuple[str, bool]]:
    """Words and symbols as written, and whether a capital means something in this place."""
    text = _PER_CENT.sub("percent", _unquoted(text))
    text = text[_LABEL.match(text).end() :]  # type: ignore[union-attr]  # it matches the empty text
    if any(map(str.isdigit, text)):
        text = _THOUSANDS.sub("", text)
        text = _DAY_MONTH.sub(lambda m: _iso_date(m[3], m[2], m[1]), text)
        text = _MONTH_DAY.sub(lambda m: _iso_date(m[3], m[1], m[2]), text)
    shouting = text[1:] == text[1:].upper()
    inside = False
    for match in _TOKEN.finditer(text):
        token = match[0].strip()
        if match.lastgroup == "word":
            for piece in _pieces(token):
                yield (piece.casefold() if shouting else piece), inside
                inside = True
        elif match.lastgroup == "stop":
            inside = False
        elif token not in ("+", "&") or match.lastgroup == "arithmetic" or text[match.end() - 2] != " ":
            yield token, inside
            inside = inside and "?" not in token


def _iso_date(year: str | None, month: str, day: str) -> str:
    number = 1 + [name[:3] for name in _MONTHS.split()].index(month[:3].lower())
    return f"{year or '0000'}-{number:02}-{int(day):02}"


def _pieces(run: str) -> list[str]:
    """The parts of what is written without a space: full-text is two words, a path is one."""
    if run.startswith(("/", "~/", "./", "../")) or run.count("/") > 1:
        return [run]
    separators = r"[-/]" if any(map(str.isdigit, run)) else r"[-/:]"
    sign = "-" if run.startswith("-") else ""
    first, *rest = (part for part in re.split(separators, run) if part)
    return [sign + first, *rest]


def _spelt_plainly(raw: str, *, after_number: bool) -> list[str]:
    word = raw.casefold()
    if "'" in word:
        if word.endswith("n't"):
            base = {"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3])
            return [base, "not"]
        base, _, ending = word.rpartition("'")
        if ending in ("s", "re", "ve", "m", "d"):
            return [base]
        return [base, "will"] if ending == "ll" else [word]
    if word == "cannot":
        return ["can", "not"]
    if after_number and word in _UNITS:
        return [_UNITS[word]]
    if word[0].isdigit() and (match := re.fullmatch(r"(\d+(?:\.\d+)?)([a-zµμ]+)", word)):
        return [match[1], _UNITS[match[2]]] if match[2] in _UNITS else [word]
    if "." in word and all(len(part) == 1 for part in word.split(".")):
        return [word.replace(".", "")]
    return [word[1:] if re.match(r"v\d", word) else word]


def _hardness(word: str, raw: str, *, capital: bool, after_number: bool) -> str:
    """What makes the word one that the other claim must repeat; empty if nothing does."""
    if not word.isalpha() or (after_number and word in _UNITS):
        return word
    if raw[1:] != raw[1:].lower() or (capital and len(raw) == 1 and raw.isupper() and word != "a"):
        return word  # an acronym, a name in camel case
    if word in _POLAR:
        return word
    stem = _stem(word[:-1] if word.endswith("ed") else word)
    return stem if stem in _POLAR_STEMS else ""


def _stem(word: str) -> str:
    """The word without what number, the third person and -ing add. The past stays the past."""
    if len(word) < 4 or word in _NO_PLURAL:
        return word
    if word.endswith("ing") and len(word) > 6:
        word = word[:-3]
    elif word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    word = word.removesuffix("ship").removesuffix("e")
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_POLAR_STEMS = {_stem(word): word for word in _POLAR if len(word) > 3}
