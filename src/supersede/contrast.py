"""Whether two claims that lie close together say the same thing: the words decide.

An embedding proposes; it cannot decide. It puts "port 5432" next to "port 5433" and "is hybrid"
next to "is not hybrid". So the words are compared, and in doubt two claims are kept apart: a missed
restatement shows a reader something twice, a merged contradiction hides something from them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _spellings(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


# These only hold a claim together: articles, "is" in the present, "and", "now".
_FREE = _words(
    "the a an this that these those there here we our ours us it its they their theirs them "
    "is are am be been being become becomes becoming do does doing was were had did became "
    "and but with plus also both too all each every now currently presently"
)
# These hold it together as well, but give it a direction when both claims have them.
_GLUE = _words("of use have")
_PAST = _words("was were had did became used")
_PLAIN = _spellings(
    "zero=0 one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 "
    "twelve=12 uses=use using=use used=use has=have having=have no=not percent=%"
)
# Each turns a claim round, or bounds it: where one claim has such a word, so must the other.
_POLAR = _words(  # in the base form; _polar_stem finds the others
    # negation, condition, reserve, and what is not quite the thing itself
    "not never none nobody nothing nowhere neither nor without non hardly barely scarcely rarely "
    "seldom except unless only fail lack refuse omit exclude unable almost nearly partly or if "
    "when maybe perhaps possibly probably likely allegedly plan propose consider expect "
    "deputy vice assistant acting interim honorary provisional ex semi anti pseudo quasi "
    # how many, which, when
    "some few several many most half twice once thousand million billion dozen more less fewer "
    "least maximum minimum max min first second third last next before after until since earlier "
    "later former formerly previously ago yet ever always sometimes hourly daily weekly monthly "
    "quarterly yearly annual annually yesterday today tomorrow "
    "monday tuesday wednesday thursday friday saturday sunday january february april june july "
    "august september october november december "
    # may and must
    "must should may might could would will shall optional required mandatory "
    "allow permit forbid forbidden deny denied ban prohibit "
    # opposites
    "enable disable off open closed public private internal external active inactive true false "
    "right wrong accept reject approve decline pass grant revoke add remove start stop begin end "
    "increase decrease rise rose fall fell grow grew shrink shrank gain lose lost win won up down "
    "above below over under inside outside left upstream downstream north south east west import "
    "export send receive push pull buy sell"
)
# A phrase that begins with one of these may stand before a claim or behind it, and says the same.
_LEADING = _words("on in at during since until before after if when unless without because while")
_TURNING = ("un", "in", "im", "ir", "il", "non", "dis", "mis", "de")
_NO_PLURAL = _words("news means always perhaps series goods")
_UNITS = _spellings(  # as they follow a number
    "ns=ns nanoseconds=ns us=us μs=us microseconds=us ms=ms milliseconds=ms millisecond=ms s=s "
    "sec=s secs=s seconds=s second=s min=min mins=min minutes=min minute=min h=h hr=h hrs=h "
    "hours=h hour=h d=d days=d day=d weeks=w week=w months=mo month=mo years=y year=y kb=kb "
    "kilobytes=kb mb=mb megabytes=mb gb=gb gigabytes=gb tb=tb terabytes=tb mm=mm cm=cm m=m "
    "metres=m km=km kilometres=km g=g grams=g kg=kg kilograms=kg am=am pm=pm %=% percent=%"
)
_STRAIGHT = str.maketrans({**dict.fromkeys("’‘ʼ＇", "'"), **dict.fromkeys("−‐‑", "-")})
# An apostrophe between two letters belongs to the word: "we're" is not "were".
_QUOTE = re.compile(r"(?<!\w)'|'(?!\w)|[\"`´‚‛“”„‟«»‹›「」『』〝〞〟＂]")


def fold_claim(text: str) -> str:
    """The claim without what nobody would call a difference; equal results mean one claim.

    Folded away are compatibility forms, case, the amount of white space, quotation marks and one
    full stop at the end. Other punctuation stays: C is not C++. Folding twice changes nothing.
    """
    before, folded = None, text
    while folded != before:  # removing a mark can join what it held apart
        before, folded = folded, " ".join(_unquoted(folded).casefold().split())
    body = folded.removesuffix(".").rstrip()
    return folded if body.endswith(".") else body  # "wait..." does not end in a full stop


def _unquoted(text: str) -> str:
    return unicodedata.normalize("NFKC", _QUOTE.sub("", text.translate(_STRAIGHT)))


def contrast(a: str, b: str) -> bool:
    """Whether the two claims state different things in their words.

    They do if their hard tokens differ or come in another order (numbers, dates, identifiers,
    names, symbols, negations and other polar words), or if what then still differs puts one thing
    in the place of another. They do not if one merely says it in other words, or says more.

    The order of the two does not matter. Meant for claims that an embedding already found close:
    two claims about unrelated things need not contrast.
    """
    one, other = _read(a), _read(b)
    if one.folded == other.folded:
        return False
    names = one.names | other.names
    # What is spoken of, the first word, may be a name whose capital says nothing: not "Roberts".
    whole = names | {claim.tokens[0].word for claim in (one, other) if claim.tokens}
    glue = one.glue & other.glue
    left, right = one.words(whole, glue), other.words(whole, glue)
    if one.hard(names) != other.hard(names):
        return one.past != other.past or not (_moved_ahead(left, right) or _moved_ahead(right, left))
    return _replaced(left, right, tense_differs=one.past != other.past)


def _moved_ahead(left: list[str], right: list[str]) -> bool:
    """Whether the right one is the left one with its last phrase in front: "on Mondays it is closed"."""
    return (
        len(left) == len(right)
        and right[0] in _LEADING
        and any(left[i:] + left[:i] == right for i in range(1, len(left)))
    )


def _replaced(left: list[str], right: list[str], *, tense_differs: bool) -> bool:
    start = _common_start(left, right)
    left, right = left[start:], right[start:]
    end = _common_start(left[::-1], right[::-1])
    left, right = left[: len(left) - end], right[: len(right) - end]
    if not left or not right:
        return tense_differs  # nothing but an addition; yet what was is not what is
    if sorted(left) == sorted(right):
        # "Hybrid retrieval" is "retrieval is hybrid". But an exchange around what stays in place
        # turns the claim round ("client calls server"), and further in, order may be the claim.
        return tense_differs or start > 0 or all(left[i:] + left[:i] != right for i in range(len(left)))
    in_place = _places(left, set(right)) & _places(right, set(left))
    return bool(in_place) or _turned(left, right) or _turned(right, left)


def _common_start(left: list[str], right: list[str]) -> int:
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _places(words: list[str], common: set[str]) -> set[tuple[str, str]]:
    """Where words stand that the other claim lacks: after which common word, or before which."""
    known = {*common, ""}  # the ends are common
    steps = list(pairwise(["", *words, ""]))
    after = {("after", one) for one, two in steps if one in known and two not in known}
    return after | {("before", two) for one, two in steps if one not in known and two in known}


def _turned(left: list[str], right: list[str]) -> bool:
    """Whether one side has a word of the other under a prefix that turns it round."""
    return any(prefix + word in right for word in left if len(word) > 3 for prefix in _TURNING)


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
        tokens = (token for token in self.tokens if token.word not in _GLUE or token.word in glue)
        return [token.word if token.word in whole else token.stem for token in tokens]


@lru_cache(maxsize=4096)
def _read(text: str) -> _Claim:
    tokens: list[_Token] = []
    names: set[str] = set()
    past = after_number = False
    for raw, inside in _raw_words(text):
        for spelt in _spelt_plainly(raw, after_number=after_number):
            past |= spelt in _PAST
            word = _american(_PLAIN.get(spelt, spelt))
            hard = _hard_token(word, raw, inside=inside, after_number=after_number)
            after_number = word[-1].isdigit()
            if hard or word not in _FREE:
                tokens.append(_Token(word, word if hard == word else _stem(word), hard))
                if inside and raw[0].isupper() and not hard and word not in _GLUE:
                    names.add(word)
    glue = _GLUE.intersection(token.word for token in tokens)
    return _Claim(fold_claim(text), tuple(tokens), frozenset(names), glue, past)


_LABEL = re.compile(r"(?i)^\s*([#>*•–—-]+\s+)*((decision|decided|note|fyi|update)\s*[:–—-]\s+)?")
_DIGIT = re.compile(r"\d")
_PER_CENT = re.compile(r"\bper cent\b", re.I)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_MONTH = r"\b(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
_MONTH += r"|sep(?:tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
_DAY, _YEAR = r"\b(\d{1,2})(?:st|nd|rd|th)?\b", r"(?:,? (\d{4})\b)?(?!\.?\d)"
_DAY_MONTH = re.compile(rf"{_DAY}(?: of)? {_MONTH}\.?{_YEAR}", re.I)
_MONTH_DAY = re.compile(rf"{_MONTH}\.? {_DAY}{_YEAR}", re.I)
_TOKEN = re.compile(
    r"""(?P<sum> (?<=\d)\s[-+*/](?=\s\d) )
    | (?P<word> (?:(?<![^\s(\[=<>~$€£¥])(?:-(?=\.?\d)|\.{0,2}/|~/|\.))? # a sign, or a path begins
        \w+ (?:(?:[-./:@\\&']|://|::|--)\w+)* )
    | (?P<symbol> \{\}|\[\]|<=|>=|!=|<->|<-|->|=> | (?<!\S)-(?=[$€£¥]) | (?<=\w)\+{1,2}(?![\w=]) )
    | (?P<joiner> [+&](?![+&=]) )
    | (?P<other> [^-\w\s.,;:!()\[\]{}/\\|–—…•·*]+ )
    | (?P<stop> (?<!\b\w)[.:;!](?=\s) | \s[-–—]+\s ) # "H. P. Lovecraft" is no three sentences
    """,
    re.VERBOSE,
)


def _raw_words(text: str) -> Iterator[tuple[str, bool]]:
    """Words and symbols as written, and whether each stands where no capital is due."""
    text = _LABEL.sub("", _unquoted(text))
    if _DIGIT.search(text):
        text = _PER_CENT.sub("percent", _THOUSANDS.sub("", text))
        text = _DAY_MONTH.sub(lambda m: _iso_date(m[3], m[2], m[1]), text)
        text = _MONTH_DAY.sub(lambda m: _iso_date(m[3], m[1], m[2]), text)
    shouted = text[1:] == text[1:].upper()  # the first letter may be small without meaning it
    inside = False
    for match in _TOKEN.finditer(text):
        token = match[0].strip()
        if match.lastgroup == "word":
            for piece in _pieces(token):
                yield (piece.casefold() if shouted else piece), inside
                inside = True
        elif match.lastgroup == "stop":
            inside = False
        elif match.lastgroup != "joiner":
            yield token, inside
            inside = inside and "?" not in token


def _iso_date(year: str | None, month: str, day: str) -> str:
    return f"{year or '0000'}-{_MONTHS.index(month[:3].lower()) // 3 + 1:02}-{int(day):02}"


def _pieces(run: str) -> list[str]:
    """The parts of what is written without a space: full-text is two words, a path is one."""
    if run.isalnum() or run.count("/") > 1 or run.startswith(("/", "~/", "./", "../")):
        return [run]
    separators = r"(?<=\w)[-/]+" if _DIGIT.search(run) else r"(?<=\w)[-/:]+"  # 10:30 is one time
    return re.split(separators, run)


def _spelt_plainly(raw: str, *, after_number: bool) -> list[str]:
    """The words that a written word stands for: two in "can't", as in "30ms"."""
    word = raw.casefold()
    if after_number and word in _UNITS:
        return [_UNITS[word]]
    if word.isalpha():
        return ["can", "not"] if word == "cannot" else [word]
    if word.endswith("n't") and word != "n't":
        return [{"ca": "can", "wo": "will", "sha": "shall"}.get(word[:-3], word[:-3]), "not"]
    base, apostrophe, ending = word.rpartition("'")
    if apostrophe and ending in ("s", "re", "ve", "m", "d", "ll"):
        return [base, "will"] if ending == "ll" else [base]
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zμ]+)", word) if word[0].isdigit() else None
    if amount and amount[2] in _UNITS:
        return [amount[1], _UNITS[amount[2]]]
    if all(len(part) == 1 and part.isalpha() for part in word.split(".")):
        return [word.replace(".", "")]  # U.S.
    return [word[1:] if re.match(r"v\d", word) else word]


def _hard_token(word: str, raw: str, *, inside: bool, after_number: bool) -> str:
    """What the other claim must have in the place of this word; empty if nothing in particular."""
    acronym = raw[1:] != raw[1:].lower()
    if acronym or not word.isalpha() or (after_number and word in _UNITS):
        return word
    return stem if (stem := _polar_stem(word)) in _POLAR_STEMS else ""


# Spelt one way on either side of the ocean: authorisation, colour.
_BRITISH_ISE = re.compile(r"(?<=[a-z]{3})is(?=(?:e|es|ed|er|ers|ing|ation|ations)$)")
_BRITISH_OUR = re.compile(r"(?<=[a-z]{3})our(?=(?:s|ed|ing|ful|able|ite|ites)?$)")


def _american(word: str) -> str:
    return _BRITISH_OUR.sub("or", _BRITISH_ISE.sub("iz", word))


def _polar_stem(word: str) -> str:  # "disabled" like "disable"
    return _stem(word[:-1] if word.endswith("ed") else word)


def _stem(word: str) -> str:
    """The word without what number, the third person and -ing add. The past stays the past."""
    if len(word) < 4 or word in _NO_PLURAL:
        return word
    if word.endswith("ing") and len(word) > 6:
        word = word[:-3]
    elif word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif not word.endswith(("ss", "us", "is")):
        word = word.removesuffix("s")
    word = word.removesuffix("ship").removesuffix("e")
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_POLAR_STEMS = frozenset(map(_polar_stem, _POLAR))
