"""Models with lists of values: an entry stands for a plain entry for each combination of them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import truediv
from typing import Final

from asyncbench.config.entry import Place, collected
from asyncbench.errors import ConfigError

# Keys of a model that take a list, beside each of its `params`.
VARIED: Final = (
    "model",
    "api",
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "effort",
    "thinking_tokens",
    "thinking",
)
# Limits that take one, too: they change no reply, so an entry has to say that its trials are its own.
COMPARED: Final = ("rpm", "tpm", "input_tpm", "output_tpm", "concurrency", "fraction")
# Entries of `params` whose value is a list, in the words of one API or another: sent as they are.
LISTS_BY_NATURE: Final = frozenset(
    {
        *("stop", "stop_sequences", "stopSequences", "stop_token_ids", "eos_token_id", "bad_words"),
        *("tools", "functions", "allowed_tools", "mcp_servers", "plugins", "connectors", "transforms"),
        *("modalities", "response_modalities", "responseModalities", "include", "betas", "models"),
        *("fallbacks", "documents", "data_sources", "search_domain_filter", "safety_settings"),
        *("safetySettings", "guided_choice", "samplers", "lora", "logits_processors", "logit_bias"),
        *("allowed_token_ids", "dry_sequence_breakers", "include_domains", "exclude_domains"),
        "search_language_filter",
        "extra_body",  # a mapping, whatever it holds; refused as anything else
    }
)
MOST_ENTRIES: Final = 1_000  # that one stands for

Keys = tuple[str | int, ...]


def expanded(raw: object, *, place: Place) -> tuple[object, Mapping[Keys, Keys]]:
    """Return a sweep whose models are plain entries, and where each of them stands in what was written.

    Keys vary in the order in which they are written, the last one fastest.

    Raises:
        ConfigError: a list is empty or holds a value twice, or they stand for too many entries; every fault
            has a line.
    """
    models = raw.get("models") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(models, list):
        return raw, {}
    plain, written, faults = list[object](), dict[Keys, Keys](), list[str]()
    for i, entry in enumerate(models):
        with collected(faults):
            for values in _combinations(entry, place / "models" / i):
                here, there = ("models", len(plain)), ("models", i)
                written[here] = there
                written |= {(*here, *keys): (*there, *keys, n) for keys, (n, _) in values.items()}
                plain.append(_plain(entry, values))
    if faults:
        raise ConfigError("\n".join(faults))
    return {**raw, "models": plain}, written


def _combinations(entry: object, place: Place) -> Iterator[Mapping[Keys, tuple[int, object]]]:
    """Yield the values of each entry that one stands for: by keys, with their places in the lists."""
    lists = dict(_lists(entry))
    for keys, values in lists.items():
        fault: str | None = None
        try:  # true and 'true' are two values
            words = Counter((repr(value), _text(value)) for value in values if len(values) > 1)
        except RecursionError:
            fault = "nests without end, and cannot be sent as JSON"
        else:
            twice = next((word for (_, word), times in words.items() if times > 1), None)
            if twice is not None:
                fault = f"lists {twice} twice. Remove one"
            elif not values:
                fault = "is an empty list. Write its values, or remove it"
        if fault:
            raise ConfigError(f"{reduce(truediv, keys, place)}: {keys[-1]!r} {fault}")
    if (count := prod(map(len, lists.values()))) > MOST_ENTRIES:
        raise ConfigError(
            f"{place}: its lists stand for {count:,} entries, and {MOST_ENTRIES:,} are the most. Shorten them"
        )
    for chosen in product(*map(enumerate, lists.values())):
        yield dict(zip(lists, chosen, strict=True))


def _lists(entry: object) -> Iterator[tuple[Keys, Sequence[object]]]:
    """Yield the lists of an entry that stand for several entries, by their keys."""
    for key, value in entry.items() if isinstance(entry, Mapping) else ():
        if key in (*VARIED, *COMPARED) and isinstance(value, list):
            yield (key,), value
        elif key == "params" and isinstance(value, Mapping):
            yield from (
                ((key, name), inner)
                for name, inner in value.items()
                if isinstance(inner, list) and name not in LISTS_BY_NATURE
            )


def _plain(entry: object, values: Mapping[Keys, tuple[int, object]]) -> object:
    """Return an entry with one value of each list, and with an alias that names those that vary."""
    if not isinstance(entry, Mapping) or not values:
        return entry
    plain, words = dict(entry), list[str]()
    for (key, *inner), (_, value) in values.items():
        options, name = (entry[key][inner[0]], inner[0]) if inner else (entry[key], key)
        plain[key] = {**plain[key], name: value} if inner else value
        if len(options) > 1 and key in COMPARED and isinstance(compared := plain.get("compare", []), list):
            plain["compare"] = [*compared, key]
        if len(options) > 1 and not (key == "model" and "alias" not in entry):
            # the word tells the value from the others of its list: true from "true"
            value_words = list(_words(str(name), value))
            same = [option for option in options if list(_words(str(name), option)) == value_words]
            words += value_words if len(same) == 1 else [f"{name}={_yaml(value)}"]
    base = plain.get("alias") or plain.get("model")
    return plain | {"alias": " ".join([str(base), *words])} if words else plain


def _words(name: str, value: object) -> Iterator[str]:
    """Yield the words of an alias for a value: `effort=high`, or of a mapping `reasoning.effort=high`."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _words(f"{name}.{key}", inner)
    else:
        yield f"{name}={_text(value)}"


def _text(value: object) -> str:
    """Return a value as YAML writes it, near enough."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_text(inner)}" for key, inner in value.items())
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def wrap_lists(params: Mapping[str, object]) -> dict[str, object]:
    """Return `params` that `expanded` leaves as they are: their other lists are wrapped."""
    return {
        name: [value] if isinstance(value, list) and name not in LISTS_BY_NATURE else value
        for name, value in params.items()
    }


def kept_as_written(raw: object) -> object:
    """Return the sweep of a results folder so that `expanded` leaves it as it is.

    No list there stands for several entries, and versions before there were such lists wrapped none.
    """
    models = raw.get("models") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(models, list):
        return raw
    entries: list[object] = []
    for entry in models:
        params = entry.get("params") if isinstance(entry, Mapping) else None
        if isinstance(entry, Mapping) and isinstance(params, Mapping):
            bare = {name: value for name, value in params.items() if not _wrapped(value)}
            entries.append({**entry, "params": {**params, **wrap_lists(bare)}})
        else:
            entries.append(entry)
    return {**raw, "models": entries}


def _wrapped(value: object) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)


def sent_whole(models: object, kept: object, *, place: Place) -> Iterator[str]:
    """Yield complaints about lists that a results folder has sent unchanged, and would be asked again.

    Args:
        models: of a sweep, as they are written.
        kept: those of the folder's own sweep, from a version before lists stood for several entries.
        place: of the models.
    """
    before = {_alias_of(entry): entry for entry in kept} if isinstance(kept, list) else {}
    for i, entry in enumerate(models if isinstance(models, list) else ()):
        earlier = dict(_lists(before.get(_alias_of(entry))))
        for keys, values in _lists(entry):
            if earlier.get(keys) == values and not _wrapped(values):
                yield (
                    f"{reduce(truediv, keys, place / i)}: {keys[-1]!r} stands for an entry per value, but "
                    "this sweep's results were asked with the whole list. To send the list, wrap it: "
                    f"{_yaml([values])}"
                )


def _alias_of(entry: object) -> str:
    named = (entry.get("alias") or entry.get("model")) if isinstance(entry, Mapping) else entry
    return str(named)


def _yaml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
