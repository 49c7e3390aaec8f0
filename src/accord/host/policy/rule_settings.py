"""Rules as a configuration has them. An invalid rule is an error that names it, and says what was expected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from accord.errors import PolicyError
from accord.host.policy import hosts, path_readings
from accord.host.policy.patterns import matches
from accord.host.policy.real_paths import PathSystem
from accord.host.policy.rule import PolicyRule
from accord.host.policy.value_tests import (
    ArgumentCondition,
    Equals,
    HostIn,
    InRange,
    Not,
    OneOf,
    TextPattern,
    UnderFolder,
    ValueTest,
)  # fmt: skip
from accord.locked_cache import safe_convert

_Text = Annotated[str, Meta(min_length=1)]
_Texts = _Text | Annotated[list[_Text], Meta(min_length=1)]
_Scalar = str | int | float | bool | None


class _Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An object of a configuration; an unknown key is an error."""


class ArgumentSettings(_Settings, frozen=True):
    """The tests of an argument."""

    equals: Any | UnsetType = UNSET
    one_of: Annotated[list[_Scalar], Meta(min_length=1)] | UnsetType = UNSET
    pattern: _Texts | UnsetType = UNSET
    under: _Texts | UnsetType = UNSET
    host: _Texts | UnsetType = UNSET
    minimum: int | float | UnsetType = UNSET
    maximum: int | float | UnsetType = UNSET
    opposite: ArgumentSettings | UnsetType = field(default=UNSET, name="not")


class AnnotationSettings(_Settings, frozen=True):
    """The expected annotations of a tool."""

    read_only: bool | UnsetType = UNSET
    destructive: bool | UnsetType = UNSET
    idempotent: bool | UnsetType = UNSET
    open_world: bool | UnsetType = UNSET


class RuleSettings(_Settings, frozen=True):
    """A rule."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    decision: Literal["allow", "ask", "deny"]
    server: _Texts | UnsetType = UNSET
    tools: _Texts | UnsetType = UNSET
    principal: str | Annotated[list[str], Meta(min_length=1)] | UnsetType = UNSET
    annotations: AnnotationSettings | UnsetType = UNSET
    arguments: Annotated[dict[_Text, ArgumentSettings], Meta(min_length=1)] | UnsetType = UNSET


def parse_rules(settings: object, file: str, system: PathSystem) -> tuple[PolicyRule, ...]:
    """Return the rules of a configuration, sorted by name. Raises `PolicyError`; `file` names the configuration."""
    if not isinstance(settings, list):
        raise PolicyError(f'{file}: "policy" must be a list of rules, not {_kind(settings)}')
    rules: dict[str, PolicyRule] = {}
    for number, each in enumerate(settings, 1):
        rule = _parse_rule(each, f"{file}: {_label(each, number)}", system)
        if rule.name in rules:
            raise PolicyError(f"{file}: two rules have the name {rule.name!r}: give each its own")
        rules[rule.name] = rule
    return tuple(rules[name] for name in sorted(rules))


def check_servers(rules: Iterable[PolicyRule], servers: Collection[str], file: str) -> None:
    """Raise `PolicyError` for a rule with a name, or pattern, of a server that is not configured: it would never match,
    and so would not deny what it should.
    """
    for rule in rules:
        for pattern in rule.servers or ():
            if not any(matches(pattern, server) for server in servers):
                known = ", ".join(servers) or "none"
                raise PolicyError(f"{file}: rule {rule.name!r}: no server has the name {pattern!r}; there are {known}")


def canonical_form(settings: Sequence[object]) -> list[Any]:
    """Return valid rules in a form that is equal for rules that mean the same in another order."""
    rules = [msgspec.to_builtins(safe_convert(each, RuleSettings)) for each in settings]
    return sorted((_canonical(rule) for rule in rules), key=lambda rule: str(rule["name"]))


def _canonical(value: Any, key: str = "") -> Any:
    if key == "equals":
        return value
    if isinstance(value, dict):
        return {name: _canonical(member, name) for name, member in value.items()}
    if key in _SINGLE_OR_LIST:
        value = [value] if isinstance(value, str) else value
        unique = {msgspec.json.encode(each): each for each in value}
        return [unique[each] for each in sorted(unique)]
    return value


_SINGLE_OR_LIST = ("server", "tools", "principal", "pattern", "under", "host", "one_of")


def _label(rule: object, number: int) -> str:
    name = rule.get("name") if isinstance(rule, Mapping) else None
    return f"rule {number}" + (f" ({name[:100]!r})" if isinstance(name, str) else "")


def _kind(value: object) -> str:
    names = {dict: "an object", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null" if value is None else type(value).__name__)


def _parse_rule(settings: object, place: str, system: PathSystem) -> PolicyRule:
    try:
        rule = safe_convert(settings, RuleSettings)
        if not rule.name.isprintable():
            raise ValueError("its name has a control character")
        return PolicyRule(
            name=rule.name,
            decision=rule.decision,
            servers=_texts(rule.server),
            tools=_texts(rule.tools),
            principals=_texts(rule.principal),
            annotations=_annotations(rule.annotations),
            arguments=tuple(_conditions(rule.arguments, system)),
        )
    except msgspec.ValidationError as exc:
        raise PolicyError(f"{place}: {_explain(str(exc))}") from exc
    except (ValueError, path_readings.UnclearPath, hosts.UnclearHost) as exc:
        raise PolicyError(f"{place}: {exc}") from exc


def _explain(text: str) -> str:
    """Add the keys that exist to the error about one that does not."""
    if "unknown field" not in text:
        return text
    kind: type[_Settings] = RuleSettings
    if "arguments" in text.partition(" - at ")[2]:
        kind = ArgumentSettings
    elif "annotations" in text.partition(" - at ")[2]:
        kind = AnnotationSettings
    return f"{text}; expected one of {', '.join(each.encode_name for each in msgspec.structs.fields(kind))}"


def _texts(value: str | list[str] | UnsetType) -> tuple[str, ...] | None:
    if value is UNSET:
        return None
    return (value,) if isinstance(value, str) else tuple(value)


def _annotations(settings: AnnotationSettings | UnsetType) -> dict[str, bool]:
    if settings is UNSET:
        return {}
    expected: dict[str, bool] = msgspec.to_builtins(settings)
    if not expected:
        raise ValueError('"annotations" is empty: give an annotation, or leave it out')
    return expected


def _conditions(arguments: dict[str, ArgumentSettings] | UnsetType, system: PathSystem) -> Iterator[ArgumentCondition]:
    for name, settings in {} if arguments is UNSET else arguments.items():
        try:
            yield ArgumentCondition(name, _tests(settings, system))
        except (ValueError, path_readings.UnclearPath, hosts.UnclearHost) as exc:
            raise ValueError(f"argument {name!r}: {exc}") from exc


def _tests(settings: ArgumentSettings, system: PathSystem) -> tuple[ValueTest, ...]:
    tests = tuple(_each_test(settings, system))
    if not tests:
        raise ValueError("it has no test: expected one of equals, one_of, pattern, under, host, minimum, maximum, not")
    return tests


def _each_test(settings: ArgumentSettings, system: PathSystem) -> Iterator[ValueTest]:
    if settings.equals is not UNSET:
        yield Equals(settings.equals)
    if settings.one_of is not UNSET:
        yield OneOf(tuple(settings.one_of))
    if patterns := _texts(settings.pattern):
        yield TextPattern(patterns)
    if folders := _texts(settings.under):
        for folder in folders:
            _check_folder(folder, system)
        yield UnderFolder(folders)
    if names := _texts(settings.host):
        yield HostIn(tuple(map(_host_pattern, names)), ", ".join(names))
    if settings.minimum is not UNSET or settings.maximum is not UNSET:
        yield _range(settings)
    if settings.opposite is not UNSET:
        yield Not(_tests(settings.opposite, system))


def _check_folder(folder: str, system: PathSystem) -> None:
    try:
        path_readings.absolute_folder(folder, system)
    except path_readings.UnclearPath as exc:
        raise ValueError(
            f'"under" needs an absolute folder, or one that begins with ~/, not {folder!r}: {exc}'
        ) from exc


def _host_pattern(text: str) -> hosts.HostPattern:
    try:
        return hosts.parse_pattern(text)
    except hosts.UnclearHost as exc:
        forms = "example.com, *.example.com, example.com:8443 or *"
        raise ValueError(f'"host" must be written as {forms}, not {text!r}: {exc}') from exc


def _range(settings: ArgumentSettings) -> InRange:
    minimum = None if settings.minimum is UNSET else settings.minimum
    maximum = None if settings.maximum is UNSET else settings.maximum
    if minimum is not None and maximum is not None and minimum > maximum:
        raise ValueError(f"minimum {minimum} is above maximum {maximum}")
    return InRange(minimum, maximum)
