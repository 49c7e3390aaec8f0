"""The keywords of JSON Schema that refuse values, in all its dialects, and those that refuse none."""

from __future__ import annotations

REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor"))

DEFINITIONS = frozenset(("$defs", "definitions"))

SIMPLE = frozenset((
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties",
))  # fmt: skip
"""These judge a value on their own, whatever stands beside them, and hold no schemas."""

VALIDATING = SIMPLE | REFERENCES | DEFINITIONS
VALIDATING |= frozenset((
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "items",
    "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "unevaluatedItems",
    "unevaluatedProperties", "dependentRequired", "dependentSchemas", "dependencies", "allOf", "anyOf", "oneOf",
    "not", "if", "then", "else",
))  # fmt: skip
"""All that decide whether a value passes, and those that hold them."""
