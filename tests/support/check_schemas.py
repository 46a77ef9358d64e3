"""Validates JSON documents with the published schemas.

Standard input: one line for each document, `SCHEMA<tab>DOCUMENT`. Prints one line for each fault. An object may
have no field that its schema does not name, so that no field is printed that nobody has described.
"""

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = Path(__file__).resolve().parents[2] / "docs/schemas"


# Keywords whose schemas apply to a value as a whole, and those whose schemas apply to its parts.
WHOLE = ("allOf", "anyOf", "oneOf")
PARTS = ("properties", "patternProperties", "items", "prefixItems", "additionalProperties")


def closed(schema, is_whole=False):
    """The schema, with no room for fields that it does not name. A schema that applies to a value beside others
    (`is_whole`) leaves room for their fields."""
    if not isinstance(schema, dict):
        return schema
    out = dict(schema)
    for key, value in schema.items():
        if key in (*WHOLE, "prefixItems"):
            out[key] = [closed(item, key in WHOLE) for item in value]
        elif key in ("properties", "patternProperties", "$defs"):
            out[key] = {name: closed(item, key == "$defs") for name, item in value.items()}
        elif key in PARTS:
            out[key] = closed(value)
    if not is_whole and any(key in schema for key in ("properties", "$ref", *WHOLE)):
        out.setdefault("unevaluatedProperties", False)
    return out


schemas = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
for schema in schemas.values():
    Draft202012Validator.check_schema(schema)
# Schemas refer to each other by their files' names.
named = {name: {"$id": name, **closed(schema)} for name, schema in schemas.items()}
registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in named.items())
validators = {Path(name).stem: Draft202012Validator(schema, registry=registry) for name, schema in named.items()}

count = 0
for line in sys.stdin:
    name, document = line.split("\t", 1)
    count += 1
    for fault in validators[name].iter_errors(json.loads(document)):
        print(f"{name}: {fault.json_path}: {fault.message[:400]}")
        for inner in fault.context or []:
            print(f"    {inner.json_path}: {inner.message[:200]}")
print(f"{count} documents checked")
