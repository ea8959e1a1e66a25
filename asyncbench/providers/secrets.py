"""Remove API keys from all that a server repeats, in whatever form it does.

A key may come back as it is, in other letters (`error.code` in small ones), cut by a line or at its end. It
may be escaped as in an address, in HTML or in JSON. Or it is coded: in base64, as in a header of the Basic
scheme, or as hexadecimal digits.
"""

import html
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote, unquote_plus
from urllib.request import getproxies

import orjson

from asyncbench.records import Reply

SHORTEST_SECRET: Final = 8  # characters; a shorter key is a word such as "none", which messages may hold
TELLING: Final = 16  # characters in a row of a key that stand nowhere else by chance
MARK: Final = "[key]"
SECRET_NAMES: Final = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "PROXY", "AUTH")  # in part

# What the keys of providers look like: their usual beginnings, or letters and digits in a long row.
_PASTED: Final = re.compile(
    r"(?<![a-z0-9])(?:sk[-_][\w-]{3,}|(?:gsk|csk|xai|hf|r8|fw|pplx|nvapi|ghp|tgp)[-_][\w-]{16,}|AIza[\w-]{16,}"
    r"|(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]{32,})",
    re.IGNORECASE,
)
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_WORD: Final = re.compile(r"[A-Za-z0-9]+")  # no way to escape changes these
WORDS: Final = ("finish_reason", "model_served", "fingerprint", "upstream", "service_tier")
_TEXTS: Final = ("text", "reasoning", *WORDS)
_BREAKS: Final = re.compile(r"\s+|\\[nrt]")  # of lines, which may cut a key; also as JSON writes them
_BREAK_BYTES: Final = b" \r\n\t"


def looks_secret(name: str) -> bool:
    """Return whether a variable of this name is likely to hold a secret."""
    return any(word in name.upper() for word in SECRET_NAMES)


def withhold_secret(text: str, *, key: str) -> str:
    """Return a text without the key, and without what else is withheld; unescaped where it held it escaped.

    What is shorter than `SHORTEST_SECRET` is no secret, and is left where it stands.
    """
    if len(text) < SHORTEST_SECRET:
        return text  # no form of a key is shorter than the key

    secrets = [secret for secret in {key, *_others()} if len(secret) >= SHORTEST_SECRET]
    for secret in sorted(secrets, key=len, reverse=True):  # one may begin with another
        text = _withhold(text, secret)
    for secret in secrets:  # after whole ones, which may begin alike
        text = _withhold_parts(text, secret.lower())
    return text


def withhold_pasted_key(text: str) -> str:
    """Return a typed text without what looks like an API key, pasted where it does not belong."""
    return _PASTED.sub(MARK, text)


def _withhold(text: str, key: str) -> str:
    word, coded = _looked_for(key)
    squeezed = _BREAKS.sub("", text.lower())
    if word in squeezed:
        for plain in _PLAIN:
            unescaped = plain(text)
            if (without := _pattern(key).sub(MARK, unescaped)) != unescaped:
                text = without
    for form in coded:
        if form in squeezed:
            text = _pattern(form).sub(MARK, text)
    return text


def _withhold_parts(text: str, key: str) -> str:
    """Return a text without what is so long a part of a key: it was cut, or escaped twice."""
    if len(text) < TELLING:
        return text

    lowered = text.lower()
    if len(lowered) != len(text):  # few letters have small ones of more than one
        lowered = "".join([sign.lower() if len(sign.lower()) == 1 else sign for sign in text])
    key_start = 0
    while key_start + TELLING <= len(key):
        start, length = lowered.find(key[key_start : key_start + TELLING]), TELLING
        if start < 0:
            key_start += 1
            continue
        longest = len(key) - key_start
        while length < longest and lowered.startswith(key[key_start + length], start + length):
            length += 1
        text = f"{text[:start]}{MARK}{text[start + length :]}"
        lowered = f"{lowered[:start]}{MARK}{lowered[start + length :]}"
    return text


@lru_cache(maxsize=1024)
def _pattern(form: str) -> re.Pattern[str]:
    """Return the pattern of a form of a key, in letters of any case, cut by lines where it is long enough."""
    between = r"(?:\s|\\[nrt])*" if len(form) >= TELLING else ""
    return re.compile(between.join(map(re.escape, form)), re.IGNORECASE)


def may_hold(body: bytes, *, key: str) -> bool:
    """Return whether JSON may hold the key: one search of all of it, before any of it is read.

    Neither quotes nor escapes change what is looked for, but those of letters by their number.
    """
    squeezed = body.lower().replace(b"\\n", b"").replace(b"\\r", b"").translate(None, _BREAK_BYTES)
    return b"\\u00" in squeezed or any(map(squeezed.__contains__, _forms(key, *_others())))


def keyless_body(body: bytes, *, key: str) -> bytes:
    """Return a body without the key, of JSON or not, before anything of it is read."""
    if not may_hold(body, key=key):
        return body
    try:
        return orjson.dumps(keyless_json(orjson.loads(body), key=key))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, RecursionError):
        unescaped = body.decode("utf-8", "replace").replace("\\n", "\n").replace('\\"', '"')
        return withhold_secret(unescaped, key=key).encode()


def keyless(reply: Reply, *, key: str) -> Mapping[str, Any]:
    """Return the fields of a reply that hold the key, without it. Pieces of a stream may make it up."""
    texts = {name: value for name in _TEXTS if (value := getattr(reply, name))}
    whole = "\n".join((*texts.values(), str(reply.raw_usage)))
    if not may_hold(whole.encode("utf-8", "replace"), key=key):
        return {}
    changed: dict[str, Any] = {name: withhold_secret(value, key=key) for name, value in texts.items()}
    return changed | {"raw_usage": keyless_json(reply.raw_usage, key=key)}


def hush(error: BaseException | None, *, key: str) -> None:
    """Take the key out of what a library's error and its causes would print in a traceback."""
    while error is not None:
        error.args = tuple(
            withhold_secret(word, key=key) if isinstance(word, str) else word for word in error.args
        )
        if isinstance(message := getattr(error, "message", None), str):
            error.message = withhold_secret(message, key=key)  # type: ignore[attr-defined]  # it is there
        error = error.__cause__ or error.__context__


def keyless_json(value: Any, *, key: str) -> Any:
    """Return a value of JSON without the key, which may stand in any text or name of it."""
    if isinstance(value, str):
        return withhold_secret(value, key=key)
    if isinstance(value, Mapping):
        return {keyless_json(name, key=key): keyless_json(item, key=key) for name, item in value.items()}
    if isinstance(value, list):
        return [keyless_json(item, key=key) for item in value]
    return value


_PLAIN: Final[tuple[Callable[[str], str], ...]] = (
    *(str, unquote, unquote_plus, html.unescape),
    lambda text: _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], text),  # JSON
)


_WITHHELD: Final = set[str]()  # beside the key of a call, in this process


def withhold_too(secrets: Iterable[str]) -> None:
    """Withhold more from now on, such as a gateway's headers and the tokens of a cloud."""
    _WITHHELD.update(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)
    _others.cache_clear()


@lru_cache(maxsize=1)
def _others() -> tuple[str, ...]:
    """Return the secrets to withhold beside a call's key; of two, the one within the other comes last."""
    # A proxy may repeat what it is sent, its password too.
    matches = (re.search(r"//[^/@]*:([^/@]+)@", address) for address in getproxies().values())
    passwords = {unquote(match[1]) for match in matches if match}
    return (*passwords, *sorted(_WITHHELD, key=len, reverse=True))


@lru_cache(maxsize=256)
def _forms(*secrets: str) -> tuple[bytes, ...]:
    """Return the forms of secrets that `_withhold` looks for first."""
    sought = [_looked_for(secret) for secret in secrets if len(secret) >= SHORTEST_SECRET]
    beginnings = [secret[:TELLING].lower() for secret in secrets if len(secret) > TELLING]  # of what is cut
    return tuple(form.encode() for form in (*beginnings, *chain(*((word, *coded) for word, coded in sought))))


@lru_cache(maxsize=256)
def _looked_for(key: str) -> tuple[str, tuple[str, ...]]:
    """Return a word that every escaped form of a key holds, and its coded forms, in small letters."""
    raw = key.encode()
    coded = {raw.hex()}
    for coder in (b64encode, urlsafe_b64encode):
        for shift in range(3):  # bytes in front of it, which move where its digits begin
            digits = coder(b"\0" * shift + raw).decode().rstrip("=")
            sure = (shift + len(raw)) * 8 // 6  # digits that what follows does not change
            coded.add(digits[-(-shift * 8 // 6) : sure].lower())
    return max(_WORD.findall(key.lower()), key=len, default=""), tuple(sorted(coded))
