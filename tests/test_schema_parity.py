"""Every type, in every revision, against the official `schema.json` of that revision, in both directions.

A definition without a type is a problem, a type without a definition is one, and so is each difference in
field names, required fields, arms of unions, enumerated values, constants, bounds and openness. What the official
schemas define is kept in `tests/data/schemas/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from accord import errors, types as messages
from accord.messages import envelope
from accord.messages.base import ARMS, Model
from accord.messages.methods import table
from accord.messages.revision import REVISIONS
from accord.messages.views import arm_view, arms_of_revision, is_type_in_revision, view

from tests import data

ENVELOPE = "the JSON-RPC envelope: messages/envelope.py, held by its own tests"
ABSTRACT = "never sent by itself: its fields are compared in each type that extends it"

WITHOUT_TYPE = {
    "JSONRPCBatchRequest": ENVELOPE,
    "JSONRPCBatchResponse": ENVELOPE,
    "JSONRPCError": ENVELOPE,
    "JSONRPCErrorResponse": ENVELOPE,
    "JSONRPCMessage": ENVELOPE,
    "JSONRPCNotification": ENVELOPE,
    "JSONRPCRequest": ENVELOPE,
    "JSONRPCResponse": ENVELOPE,
    "JSONRPCResultResponse": ENVELOPE,
    "Notification": ENVELOPE,
    "PaginatedRequest": ENVELOPE,
    "Request": ENVELOPE,
    "Annotated": ABSTRACT,
    "BaseMetadata": ABSTRACT,
    "Icons": ABSTRACT,
    "PaginatedResult": ABSTRACT,
    "ResourceContents": ABSTRACT,
    "ResourceRequestParams": ABSTRACT,
    "TaskAugmentedRequestParams": ABSTRACT,
    "InputResponse": "has no tag: its arms are compared with INPUT_RESPONSES",
    "InputResponses": "a mapping to InputResponse, kept as JSON",
    "JSONArray": "Any",
    "JSONValue": "Any",
}

RENAMED: dict[str, Any] = {
    "Cursor": str,
    "EnumSchema": messages.PrimitiveSchema,
    "Error": envelope.ErrorObject,
    "InputRequests": dict[str, messages.InputRequest],
    "MetaObject": messages.Meta,
    "MultiSelectEnumSchema": messages.PrimitiveSchema,
    "NotificationMetaObject": messages.NotificationMeta,
    "PrimitiveSchemaDefinition": messages.PrimitiveSchema,
    "NotificationParams": messages.NotificationParams,
    "RequestMetaObject": messages.RequestMeta,
    "RequestParams": messages.Params,
    "ResourceReference": messages.ResourceTemplateReference,
    "Result": messages.EmptyResult,
    "ResultMetaObject": messages.ResultMeta,
    "ResultType": str,
    "SingleSelectEnumSchema": messages.PrimitiveSchema,
    "Task": messages.TaskInfo,
    "SubscriptionsListenRequestParams": messages.ListenParams,
    "SubscriptionsListenResult": messages.ListenResult,
    "SubscriptionsListenResultMetaObject": messages.ListenResultMeta,
}

ERRORS = {
    "ParseError": (errors.PARSE_ERROR, None),
    "InvalidRequestError": (errors.INVALID_REQUEST, None),
    "MethodNotFoundError": (errors.METHOD_NOT_FOUND, None),
    "InvalidParamsError": (errors.INVALID_PARAMS, None),
    "InternalError": (errors.INTERNAL_ERROR, None),
    "HeaderMismatchError": (errors.HEADER_MISMATCH, None),
    "MissingRequiredClientCapabilityError": (
        errors.MISSING_CLIENT_CAPABILITY,
        messages.MissingClientCapabilityData,
    ),
    "UnsupportedProtocolVersionError": (errors.UNSUPPORTED_VERSION, messages.UnsupportedVersionData),
    "URLElicitationRequiredError": (errors.URL_ELICITATION_REQUIRED, messages.URLElicitationRequiredData),
}

MESSAGE_UNIONS = {
    "ClientRequest": ("client", False),
    "ClientNotification": ("client", True),
    "ServerRequest": ("server", False),
    "ServerNotification": ("server", True),
}

UNDECLARED = {"RequestMeta": {"traceparent", "tracestate", "baggage"}}
"""Fields that stand in the prose alone (basic, `_meta`)."""

EMPTY_BUT_REQUIRED = {("2025-11-25", "CancelledNotification")}
"""Where params must be there although nothing in them must: here, absent ones are read as empty."""

UNREFERENCED: dict[str, str] = {
    "InputResponseParams": ABSTRACT,
    "CacheableResult": ABSTRACT,
    "NotificationParams": ABSTRACT,
    "Params": ABSTRACT,
    "ListResult": ABSTRACT,
    "Result": "EmptyResult is its open-ended twin",
}
"""Types that no schema names in some revision in which they live."""


def type_named(name: str) -> Any:
    """The type of a definition: by its own name, with the short form of `Params`, or as `RENAMED` tells."""
    short = name.replace("RequestParams", "Params").replace("NotificationParams", "Params")
    return RENAMED.get(name) or getattr(messages, name, None) or getattr(messages, short, None)


class Parity:
    """One revision's schema beside the types; `problems` holds what differs."""

    def __init__(self, schema: dict[str, Any], revision: str) -> None:
        self.definitions: dict[str, Any] = schema.get("$defs") or schema["definitions"]
        self.revision = revision
        self.problems: list[str] = []
        self.seen: set[str] = set()
        self.rows = {**table(revision, "client"), **table(revision, "server")}

    def run(self) -> list[str]:
        for name, definition in self.definitions.items():
            self.definition(name, definition)
        for name, (sender, notification) in MESSAGE_UNIONS.items():
            rows = table(self.revision, sender).values()
            ours = {row.name for row in rows if row.notification is notification}
            self.same(name, self.methods(name), ours)
        self.results("ClientResult", "server")
        self.results("ServerResult", "client")
        for each in vars(messages).values():
            if isinstance(each, type) and issubclass(each, Model) and each is not Model:
                self.covered(each)
        return self.problems

    def same(self, path: str, theirs: Any, ours: Any) -> None:
        if theirs != ours:
            self.problems.append(f"{path}: the schema has {theirs}, the types have {ours}")

    def covered(self, type_: type) -> None:
        if is_type_in_revision(type_, self.revision) and type_.__name__ not in {*self.seen, *UNREFERENCED}:
            self.problems.append(f"{type_.__name__}: lives in {self.revision}, no definition has it")

    # Definitions by their kind

    def definition(self, name: str, schema: Any) -> None:
        method = self.constant(schema, "method")
        if name in WITHOUT_TYPE or name in MESSAGE_UNIONS or name in ("ClientResult", "ServerResult"):
            return
        if name in ERRORS:
            self.error(name, schema)
        elif name.endswith("ResultResponse"):
            self.response(name, schema)
        elif method in self.rows:
            self.message(name, schema, self.rows[method])
        elif arm := self.arm_named(name):
            self.compare(name, schema, arm)
        elif (type_ := type_named(name)) is not None:
            self.compare(name, schema, view(type_, self.revision, strict=True))
        else:
            self.problems.append(f"{name}: no type")

    def arm_named(self, name: str) -> Any:
        if name == "EnumSchema" and "anyOf" not in self.definitions[name]:
            name = "LegacyTitledEnumSchema"
        for type_ in ARMS:
            if name in {arm.name for arm in arms_of_revision(type_, self.revision)}:
                return arm_view(type_, name, self.revision)
        return None

    def constant(self, schema: Any, key: str) -> Any:
        return schema.get("properties", {}).get(key, {}).get("const")

    def message(self, name: str, schema: Any, row: Any) -> None:
        params = schema["properties"]["params"]
        if "$ref" not in params:
            params = self.with_meta(params, row.notification)
        shape = view(row.params, self.revision, strict=True)
        self.compare(f"{name}.params", params, shape)
        needed = any(field.required for field in msgspec.structs.fields(shape))
        if (self.revision, name) not in EMPTY_BUT_REQUIRED:
            self.same(f"{name}: params required", "params" in schema["required"], needed)
        result = name.removesuffix("Request") + "Result"
        if not row.notification:
            expected = type_named(result) if result in self.definitions else messages.EmptyResult
            self.same(f"{name}: result", expected, row.result)

    def with_meta(self, params: Any, notification: bool) -> Any:
        """Params written inline do not repeat the `_meta` of the base they extend."""
        base_name = "Notification" if notification else "Request"
        inherited = self.definitions.get(f"{base_name}Params") or self.definitions[base_name]["properties"]["params"]
        meta = {"_meta": inherited["properties"]["_meta"]}
        return {**params, "properties": {**meta, **params.get("properties", {})}}

    def response(self, name: str, schema: Any) -> None:
        row = self.rows[self.constant(self.definitions[name.removesuffix("ResultResponse") + "Request"], "method")]
        theirs = {type_named(arm) for arm in self.names(schema["properties"]["result"])}
        ours = {row.result, messages.InputRequiredResult} if row.may_ask else {row.result}
        self.same(f"{name}.result", theirs, ours)

    def error(self, name: str, schema: Any) -> None:
        code, data = ERRORS[name]
        error = self.resolve(schema["properties"].get("error", schema))
        self.same(f"{name}: code", self.constant(error, "code"), code)
        if data is not None:
            self.compare(f"{name}.data", error["properties"]["data"], view(data, self.revision, strict=True))

    def methods(self, name: str) -> set[str]:
        union = self.definitions.get(name, {"anyOf": []})
        return {self.constant(self.resolve(arm), "method") for arm in union.get("anyOf", [union])}

    def results(self, name: str, asker: Any) -> None:
        theirs = [type_named(arm) for arm in self.names(self.definitions[name])]
        rows = [row for row in table(self.revision, asker).values() if not row.notification]
        ours = [messages.EmptyResult, *(row.result for row in rows)]
        if is_type_in_revision(messages.InputRequiredResult, self.revision) and any(row.may_ask for row in rows):
            ours.append(messages.InputRequiredResult)
        self.same(name, {str(each) for each in theirs}, {str(each) for each in ours})

    def names(self, schema: Any) -> list[str]:
        return [arm["$ref"].rsplit("/", 1)[1] for arm in schema.get("anyOf", [schema])]

    # Shapes

    def resolve(self, schema: Any) -> Any:
        """The schema behind `$ref` and `allOf`."""
        if "$ref" in schema:
            return self.resolve(self.definitions[schema["$ref"].rsplit("/", 1)[1]])
        if "allOf" in schema:
            parts = [self.resolve(part) for part in schema["allOf"]]
            properties = {key: value for part in parts for key, value in part["properties"].items()}
            return {
                "type": "object",
                "properties": properties,
                "required": [key for part in parts for key in part.get("required", [])],
            }
        return schema

    def flat(self, schema: Any) -> list[tuple[str, Any]]:
        """The arms of a union with their names, unions within it opened."""
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        solved = self.resolve(schema)
        if "anyOf" in solved:
            return [arm for part in solved["anyOf"] for arm in self.flat(part)]
        if isinstance(solved.get("type"), list):
            return [("", {"type": kind}) for kind in solved["type"]]
        return [(name, solved)]

    def compare(self, path: str, schema: Any, hint: Any) -> None:
        if schema.get("$ref", "").endswith("/InputResponses"):
            self.answers(path)
            return
        arms = [arm for arm in members(hint) if arm is not msgspec.UnsetType]
        if Any in arms:
            self.same(f"{path}: constraints", self.resolve(schema).keys() - {"description"}, set())
        elif len(arms) == 1 and isinstance(arms[0], type) and self.merged(arms[0]):
            self.compare_merged(path, schema, self.merged(arms[0]))
        elif len(arms) > 1 or len(self.flat(schema)) > 1:
            theirs = {self.kind(arm): arm for _, arm in self.flat(schema)}
            ours = {kind(arm): arm for arm in arms}
            if "integer" in theirs and "number" in ours:
                # a union with `number` comes out of the schema's generator as one with `integer`
                theirs["number"] = {**theirs.pop("integer"), "type": "number"}
            self.same(f"{path}: arms", sorted(theirs), sorted(ours))
            for key in theirs.keys() & ours.keys():
                self.compare_one(f"{path}<{key}>", theirs[key], ours[key])
        else:
            self.compare_one(path, self.resolve(schema), arms[0])

    def answers(self, path: str) -> None:
        theirs = {type_named(name) for name in self.names(self.definitions["InputResponse"])}
        self.same(f"{path}: answers", theirs, set(messages.INPUT_RESPONSES.values()))

    def compare_one(self, path: str, schema: Any, hint: Any) -> None:
        origin = get_origin(hint)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            self.compare_struct(path, schema, hint)
        elif origin is dict:
            self.compare_dict(path, schema, get_args(hint)[1])
        elif origin is list:
            self.same(path, schema.get("type"), "array")
            self.compare(f"{path}[]", schema["items"], get_args(hint)[0])
        elif origin is Literal:
            values = [schema["const"]] if "const" in schema else schema.get("enum", [])
            self.same(path, sorted(values), sorted(get_args(hint)))
        else:
            self.same(path, self.kind(schema), kind(hint))
            self.same(f"{path}: values", schema.get("enum"), None)

    def compare_dict(self, path: str, schema: Any, values: Any) -> None:
        self.same(path, schema.get("type"), "object")
        self.same(f"{path}: fields", schema.get("properties", {}).keys() - {"_meta"}, set())
        inner = schema.get("additionalProperties")
        if values is not Any:
            self.compare(f"{path}{{}}", inner, values)

    def compare_struct(self, path: str, schema: Any, struct: Any) -> None:
        self.seen.add(struct.__name__)
        self.same(path, schema.get("type"), "object")
        config = struct.__struct_config__
        tags = {config.tag_field: config.tag} if config.tag_field else {}
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        ours = {*fields, *tags} - UNDECLARED.get(struct.__name__, set())
        properties = schema.get("properties", {})
        self.same(f"{path}: fields", sorted(properties), sorted(ours))
        needed = {*tags, *(key for key, field in fields.items() if field.required)}
        self.same(f"{path}: required", sorted(schema.get("required", [])), sorted(needed))
        self.same(f"{path}: constants", {key: self.constant(schema, key) for key in tags}, tags)
        if schema.get("additionalProperties") in ({}, True):
            self.same(f"{path}: open", True, not config.forbid_unknown_fields)
        for key in properties.keys() & fields.keys():
            self.compare(f"{path}.{key}", properties[key], fields[key].type)
            self.same(f"{path}.{key}: bounds", bounds_of(properties[key]), bounds_in(fields[key].type))

    def merged(self, struct: type) -> Any:
        return next((type_ for type_ in ARMS if type_.__name__ == struct.__name__), None)

    def compare_merged(self, path: str, schema: Any, type_: Any) -> None:
        """A merged type against the union it stands for; an arm alone, or inline, against that arm."""
        self.seen.add(type_.__name__)
        arms = {arm.name: arm for arm in arms_of_revision(type_, self.revision)}
        theirs = dict(self.flat(schema))
        if "EnumSchema" in theirs:
            theirs["LegacyTitledEnumSchema"] = theirs.pop("EnumSchema")  # its name in 2025-06-18
        if set(theirs) == {""} and len(arms) == 1:
            theirs = {next(iter(arms)): theirs[""]}
        if len(theirs) > 1 and path not in ("EnumSchema", "MultiSelectEnumSchema", "SingleSelectEnumSchema"):
            self.same(f"{path}: arms", sorted(theirs), sorted(arms))
        for name, arm in theirs.items():
            if name in arms:
                self.compare_struct(f"{path}<{name}>", arm, arm_view(type_, name, self.revision))
            else:
                self.problems.append(f"{path}: no arm {name!r}")

    def kind(self, schema: Any) -> str:
        for key in ("type", "method"):
            if constant := self.constant(schema, key):
                return f"{key}={constant}"
        return schema.get("type", "any")


def members(hint: Any) -> list[Any]:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    arms = get_args(hint) if get_origin(hint) is Union or type(hint).__name__ == "UnionType" else [hint]
    flat = [get_args(arm)[0] if get_origin(arm) is Annotated else arm for arm in arms]
    return [arm for arm in flat if arm is not int] if float in flat else flat


KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def kind(hint: Any) -> str:
    if hint in KINDS:
        return KINDS[hint]
    if isinstance(hint, type):
        config = hint.__struct_config__
        return f"{config.tag_field}={config.tag}" if config.tag_field else "object"
    return {list: "array", dict: "object", Literal: "string"}[get_origin(hint)]


def bounds_of(schema: Any) -> tuple[Any, Any]:
    return schema.get("minimum"), schema.get("maximum")


def bounds_in(hint: Any) -> tuple[Any, Any]:
    arms = [hint, *get_args(hint)]
    notes = [note for arm in arms if get_origin(arm) is Annotated for note in get_args(arm)[1:]]
    return next(((note.ge, note.le) for note in notes), (None, None))


@pytest.mark.parametrize("revision", REVISIONS)
def test_types_are_those_of_the_official_schema(revision: str) -> None:
    problems = Parity(data.schema(revision), revision).run()
    assert not problems, "\n".join(problems)


def drop_a_field(definitions: dict[str, Any]) -> None:
    del definitions["Tool"]["properties"]["title"]


def add_a_field(definitions: dict[str, Any]) -> None:
    definitions["TextResourceContents"]["properties"]["etag"] = {"type": "string"}


def require_more(definitions: dict[str, Any]) -> None:
    definitions["Tool"]["required"].append("description")


def require_params(definitions: dict[str, Any]) -> None:
    definitions["ToolListChangedNotification"]["required"].append("params")


def add_a_value(definitions: dict[str, Any]) -> None:
    definitions["LoggingLevel"]["enum"].append("trace")


def change_a_constant(definitions: dict[str, Any]) -> None:
    definitions["TextContent"]["properties"]["type"]["const"] = "words"


def drop_an_arm(definitions: dict[str, Any]) -> None:
    del definitions["ContentBlock"]["anyOf"][0]


def rename_an_arm_of_a_merged_type(definitions: dict[str, Any]) -> None:
    definitions["HexResourceContents"] = definitions["BlobResourceContents"]
    resource = definitions["EmbeddedResource"]["properties"]["resource"]
    resource["anyOf"][1] = {"$ref": "#/$defs/HexResourceContents"}


def change_a_type(definitions: dict[str, Any]) -> None:
    definitions["Resource"]["properties"]["size"] = {"type": "string"}


def change_a_bound(definitions: dict[str, Any]) -> None:
    definitions["Annotations"]["properties"]["priority"]["maximum"] = 10


def close_a_value(definitions: dict[str, Any]) -> None:
    definitions["CallToolResult"]["properties"]["structuredContent"] = {"type": "object"}


def close_a_name(definitions: dict[str, Any]) -> None:
    definitions["Tool"]["properties"]["name"]["enum"] = ["a", "b"]


def open_a_type(definitions: dict[str, Any]) -> None:
    definitions["Tool"]["additionalProperties"] = {}


def add_a_definition(definitions: dict[str, Any]) -> None:
    definitions["VideoContent"] = {"type": "object", "properties": {"type": {"const": "video"}}}


def drop_a_method(definitions: dict[str, Any]) -> None:
    for name in ("CompleteRequest", "CompleteRequestParams", "CompleteResult", "CompleteResultResponse"):
        del definitions[name]
    for union in ("ClientRequest", "ServerResult"):
        arms = definitions[union]["anyOf"]
        definitions[union]["anyOf"] = [arm for arm in arms if "Complete" not in arm["$ref"]]


def let_a_list_ask(definitions: dict[str, Any]) -> None:
    response = definitions["ListToolsResultResponse"]["properties"]
    response["result"] = {"anyOf": [response["result"], {"$ref": "#/$defs/InputRequiredResult"}]}


def change_an_error_code(definitions: dict[str, Any]) -> None:
    definitions["ParseError"]["properties"]["code"]["const"] = -1


def add_an_answer(definitions: dict[str, Any]) -> None:
    definitions["InputResponse"]["anyOf"].append({"$ref": "#/$defs/EmptyResult"})


@pytest.mark.parametrize(
    ("change", "report"),
    [
        (drop_a_field, "Tool: fields"),
        (add_a_field, "TextResourceContents: fields"),
        (require_more, "Tool: required"),
        (require_params, "ToolListChangedNotification: params required"),
        (add_a_value, "LoggingLevel: "),
        (change_a_constant, "TextContent: constants"),
        (drop_an_arm, "ContentBlock: arms"),
        (rename_an_arm_of_a_merged_type, "EmbeddedResource.resource: arms"),
        (rename_an_arm_of_a_merged_type, "EmbeddedResource.resource: no arm 'HexResourceContents'"),
        (change_a_type, "Resource.size: "),
        (change_a_bound, "Annotations.priority: bounds"),
        (close_a_value, "CallToolResult.structuredContent: constraints"),
        (close_a_name, "Tool.name: values"),
        (open_a_type, "Tool: open"),
        (add_a_definition, "VideoContent: no type"),
        (drop_a_method, "CompleteParams: lives in"),
        (drop_a_method, "ClientRequest: the schema has"),
        (let_a_list_ask, "ListToolsResultResponse.result: "),
        (change_an_error_code, "ParseError: code"),
        (add_an_answer, "CallToolRequestParams.inputResponses: answers"),
    ],
)
def test_a_changed_schema_is_reported(change: Callable[[dict[str, Any]], None], report: str) -> None:
    schema = data.schema("2026-07-28")
    change(schema["$defs"])
    problems = Parity(schema, "2026-07-28").run()
    assert [problem for problem in problems if problem.startswith(report)], problems


def test_no_exception_is_without_use() -> None:
    names = {name for revision in REVISIONS for name in Parity(data.schema(revision), revision).definitions}
    assert not {*WITHOUT_TYPE, *RENAMED, *ERRORS, *MESSAGE_UNIONS} - names
    assert not UNREFERENCED.keys() - vars(messages).keys()
