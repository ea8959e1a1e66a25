"""Facets of a row's name: padding, effort, thinking, quantisation.

A sweep says it in its columns. Of recorded and of published runs only their names tell, by the suffixes that
the benchmark gives them: `o4-mini-2025-04-16-medium-4k`, `qwen3-14b@q4_k_m-ctx4k-thinking`.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

# by what it tells; the end of a name is looked at first, for `medium` may be part of a model's own name
_SUFFIXES: Final = {
    "padding": re.compile(r"-(\d+)k$"),
    "effort": re.compile(r"[-_](minimal|low|medium|high|xhigh)$"),
    "thinking": re.compile(r"[-_]((?:no-)?thinking)[-_]?\d*(?=$|-)"),
    "quantisation": re.compile(r"[-@](i?q\d\w*|fp\d+|bf16|int[48])(?=$|-)", re.IGNORECASE),
}


_OF_PADDING: Final = ("context", "extra_context", "turns_digest")  # keys of a condition


class Facets(NamedTuple):
    """What of a row may be varied."""

    family: str  # the model's name without the others
    padding: int = 0  # thousand tokens of small talk before the question
    effort: str | None = None  # None: not set
    thinking: bool = False
    quantisation: str | None = None  # None: not said
    rest: str = ""  # how it was asked else; rows that differ in it are not set beside each other

    def name_omitting(self, facet: str) -> str:
        """Return the name of rows that differ in one facet alone."""
        words = {
            "effort": self.effort,
            "thinking": "thinking" if self.thinking else None,
            "quantisation": self.quantisation,
            "padding": f"{self.padding}k" if self.padding else None,
        }
        return " ".join([self.family, *(text for name, text in words.items() if text and name != facet)])


def facets_of(name: str, columns: Mapping[str, Any] | None = None, *, rest: str = "") -> Facets:
    """Return the facets of a model.

    Args:
        name: of the model, with its suffixes; of a sweep the model's id.
        columns: how a sweep asked it: `effort`, and as JSON `params` and `condition_params`.
        rest: what else tells rows apart.
    """
    facets = dict[str, str]()
    for facet, suffix in _SUFFIXES.items():
        if match := suffix.search(name):
            facets[facet] = match[1]
            name = name[: match.start()] + name[match.end() :]
    columns = columns or {}
    params, condition = (json.loads(columns.get(key) or "{}") for key in ("params", "condition_params"))
    params |= condition.pop("params", {})
    thoughts = [params.pop(key, None) for key in ("thinking", "thinking_tokens")]
    padding = re.fullmatch(r"(\d+)k?", str(condition.get("context", condition.get("extra_context"))))
    if padding:
        condition = {key: value for key, value in condition.items() if key not in _OF_PADDING}
    for options in (params, condition):
        options.pop("effort", None)  # a facet of its own
    others = [words_of(options) for options in (params, condition) if options]
    return Facets(
        family=name,
        padding=int(padding[1] if padding else facets.get("padding", 0)),
        effort=columns.get("effort") or facets.get("effort"),
        thinking=any(thought and "disabled" not in str(thought) for thought in thoughts)
        or facets.get("thinking") == "thinking",
        quantisation=facets.get("quantisation"),
        rest=" ".join([*others, rest]).strip(),
    )


def words_of(options: Mapping[str, Any]) -> str:
    """Return options as a name shows them: `temperature 0.5, response_format.type text`."""
    words = []
    for key, value in sorted(options.items()):
        if isinstance(value, Mapping):
            words.append(words_of({f"{key}.{name}": item for name, item in value.items()}))
        elif isinstance(value, list | tuple):
            words.append(f"{key} {' '.join(map(str, value))}")
        else:
            words.append(f"{key} {value}")
    return ", ".join(filter(None, words))


K = TypeVar("K", bound=Hashable)


def distinct_facets(facets_by_row: Mapping[K, Facets], origins: Mapping[K, Sequence[str]]) -> dict[K, Facets]:
    """Return facets that no two rows share, so that a line has one point of each.

    Who answered always counts. Of rows that are still alike, and of those beside them, `rest` then says where
    they come from, as far as it takes.

    Args:
        facets_by_row: the facets of each row.
        origins: of each row the provider, then what tells rows apart, the coarsest first.
    """
    distinct = dict(facets_by_row)
    for depth in range(max(map(len, origins.values()), default=0)):
        often = Counter(distinct.values())
        alike = {(facets.family, facets.rest) for facets, times in often.items() if times > 1 or not depth}
        among = defaultdict[tuple[str, str], set[str]](set)
        for row, facets in distinct.items():
            among[facets.family, facets.rest].add(origins[row][depth])
        for row, facets in distinct.items():
            if (group := (facets.family, facets.rest)) in alike and len(among[group]) > 1:
                distinct[row] = facets._replace(rest=f"{facets.rest} {origins[row][depth]}".strip())
    return distinct
