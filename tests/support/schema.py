# SPDX-License-Identifier: BSD-3-Clause
"""Is a document what its schema says? The keywords that our schemas use, and no others; where the
package jsonschema is at hand it must come to the same answer."""
import json
import os
import re

try:
    import jsonschema
except ImportError:
    jsonschema = None

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "schema")


VERSIONS = {"weft-result": 2, "weft-comparison": 1, "weft-info": 3, "weft-map": 1}


def load(name, version):
    with open(os.path.join(FOLDER, f"{name}-{version}.schema.json"), encoding="utf-8") as file:
        return json.load(file)


SCHEMAS = {name: load(name, version) for name, version in VERSIONS.items()}
SCHEMA = SCHEMAS["weft-result"]
FIRST = load("weft-result", 1)  # which is still read

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "const", "enum", "required",
         "properties", "additionalProperties", "items", "prefixItems", "minItems", "maxItems",
         "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "anyOf"}


def is_type(value, name):
    if name in ("number", "integer"):
        whole = not isinstance(value, float) or value.is_integer()
        return isinstance(value, (int, float)) and not isinstance(value, bool) and \
            (name == "number" or whole)
    return isinstance(value, TYPES[name])


def number_errors(value, schema):
    rules = {"minimum": lambda limit: value >= limit, "maximum": lambda limit: value <= limit,
             "exclusiveMinimum": lambda limit: value > limit,
             "exclusiveMaximum": lambda limit: value < limit}
    return [f"{value} against {name} {schema[name]}" for name, holds in rules.items()
            if name in schema and not holds(schema[name])]


def object_errors(value, schema, where, defs):
    known, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    found = [f"{where}: {key} is missing" for key in schema.get("required", ()) if key not in value]
    for key, entry in value.items():
        if key in known:
            found += errors(entry, known[key], f"{where}.{key}", defs)
        elif more is False:
            found.append(f"{where}: {key} is unknown")
        elif more is not True:
            found += errors(entry, more, f"{where}.{key}", defs)
    return found


def array_errors(value, schema, where, defs):
    found = []
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        found.append(f"{where}: {len(value)} entries")
    first = schema.get("prefixItems", [])
    for i, entry in enumerate(value):
        rule = first[i] if i < len(first) else schema.get("items", {})
        found += errors(entry, rule, f"{where}[{i}]", defs)
    return found


def errors(value, schema, where="document", defs=None):
    """Everything that is wrong, a sentence each."""
    defs = schema.get("$defs", {}) if defs is None else defs
    assert not set(schema) - KNOWN, set(schema) - KNOWN
    found = []
    if "$ref" in schema:
        found += errors(value, defs[schema["$ref"].rsplit("/", 1)[1]], where, defs)
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_type(value, name) for name in names):
        return found + [f"{where}: {value!r:.60} is not {names}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r:.60} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r:.60} is not one of {schema['enum']}")
    if "anyOf" in schema and all(errors(value, rule, where, defs) for rule in schema["anyOf"]):
        found.append(f"{where}: none of the possibilities")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{where}: {value!r:.60} does not match")
    if is_type(value, "number"):
        found += [f"{where}: {words}" for words in number_errors(value, schema)]
    if isinstance(value, dict):
        found += object_errors(value, schema, where, defs)
    if isinstance(value, list):
        found += array_errors(value, schema, where, defs)
    return found


def once(pairs):
    keys = [key for key, _ in pairs]
    assert len(set(keys)) == len(keys), f"a key stands there twice: {keys}"
    return dict(pairs)


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


def read(text, name="weft-result", schema=None):
    """The document in a text, checked. Raises AssertionError or ValueError."""
    schema = schema or SCHEMAS[name]
    document = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    found = errors(document, schema)
    assert not found, "\n".join(found[:20])
    if jsonschema and hasattr(jsonschema, "Draft202012Validator"):
        jsonschema.Draft202012Validator(schema).validate(document)
    return document
