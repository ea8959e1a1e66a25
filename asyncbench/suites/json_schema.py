"""JSON schemas, in the process of the grader `json` alone: a pattern of one may never end.

Nothing is fetched: a `$ref` leads into the schema itself, or to a draft of JSON Schema.
"""

import decimal
from functools import lru_cache
from typing import Any, Final

from jsonschema import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, extend, validator_for
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it ships no types
from referencing import Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, SchemaResource

from asyncbench.suites.json_match import json_value

DIGITS: Final = 1_000  # to which a number is divided, for `multipleOf`
decimal.getcontext().prec = DIGITS


def faults(schema: str) -> dict[str, Any]:  # Any: JSON
    """Return the faults of a schema, "" without any."""
    try:
        _validator(schema)
    except (SchemaError, Unresolvable, ValueError) as error:
        return {"fault": getattr(error, "message", None) or str(error)}
    return {"fault": ""}


def holds(schema: str, text: str) -> dict[str, Any]:
    """Return whether a text of JSON is as a schema says."""
    return {"holds": _validator(schema).is_valid(json_value(text))}


@lru_cache(maxsize=64)
def _validator(text: str) -> Validator:
    """Return the validator of a schema, once that was checked itself."""
    schema = json_value(text)
    kind = validator_for(schema, default=Draft202012Validator)

    def is_integer(_checker: object, value: object) -> bool:  # numbers are Decimals, of which 1.0 is one
        return isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value()

    kinds = kind.TYPE_CHECKER.redefine("integer", is_integer)
    checked = extend(kind, type_checker=kinds)
    checked.check_schema(schema)
    resource: SchemaResource = Resource.from_contents(schema, default_specification=DRAFT202012)
    _check_references(resource, REGISTRY.resolver_with_root(resource))
    return checked(schema, registry=REGISTRY)


def _check_references(resource: SchemaResource, resolver: Any) -> None:
    """Look up each reference: one that leads elsewhere would be found with the first reply that needs it."""
    if isinstance(resource.contents, dict):
        for name in ("$ref", "$dynamicRef"):
            if isinstance(reference := resource.contents.get(name), str):
                resolver.lookup(reference)
    for inner in resource.subresources():
        _check_references(inner, resolver.in_subresource(inner))
