"""Rules of a gate, as written in a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from holdfast.errors import InputError, did_you_mean
from holdfast.files import named_path, text_of, toml_in
from holdfast.lookups import until_declared
from holdfast.registry import Lazily

from .declaration import TABLES
from .first_answers import STRATA


@dataclass(frozen=True)
class Condition:
    """Condition that a rule sets on a figure.

    Attributes:
        measure: name of the figure for people.
        sense: whether the figure must be at least or at most the threshold.
        points: whether the threshold is in percentage points instead of a share.
        challenge: whether the figure covers a family, technique or path.
        first_answers: whether the figure also covers first answers.
    """

    measure: str
    sense: Literal["least", "most"]
    points: bool = False
    challenge: bool = False
    first_answers: bool = False


GATES = Lazily(
    lambda: {gate.key: (table, gate) for table in TABLES.values() for gate in table.gates}
)
"""Table and gate of each rule key that sets a limit for a table's column."""

CONDITIONS = Lazily(lambda: {
    "min_accuracy": Condition("accuracy", "least", challenge=True, first_answers=True),
    "max_relative_drop": Condition("relative drop", "most", challenge=True),
    "max_drop_points": Condition("drop", "most", points=True, challenge=True),
    "max_flip_rate": Condition("flip rate", "most", challenge=True),
    "min_retention": Condition("retention", "least", challenge=True),
    "max_unparsed": Condition("unparsed replies", "most", challenge=True, first_answers=True),
    **{
        key: Condition(gate.measure, gate.sense, points=gate.sides is not None)
        for key, (_, gate) in GATES.items()
    },
    "no_worse_than": Condition(
        "difference", "least", points=True, challenge=True, first_answers=True
    ),
})  # fmt: skip
"""Condition by key in a rules file."""

AUDITED_FIGURES = {"min_accuracy": "accuracy", "max_flip_rate": "flips"}
"""Figures that audit labels correct, by the key of their condition."""

CHALLENGES = ("family", "technique", "path")

_RANGES = {"level": "Write 0.5 to less than 1, such as 0.95", "k": "Write 0 or more"}

_Model = TypeVar("_Model", bound=BaseModel)
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Points = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
_Text = Annotated[str, Field(min_length=1)]
_Missing = Literal["usual", "worst"]
"""Treatment of missing replies: as in the tables, or all against the model."""


class Rule(BaseModel):
    """Rule with a subject and exactly one of ``CONDITIONS``.

    In ``protocol``, ``dataset``, ``model``, ``family``, ``technique`` and ``path``, ``*`` matches
    any characters and ``?`` matches one character.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: _Text | None = None
    protocol: _Text | None = None
    dataset: _Text | None = None
    model: _Text | None = None
    family: _Text | None = None
    technique: _Text | None = None
    path: _Text | None = None
    mitigation: _Text | None = None
    step: _Text | None = None
    system: _Text | None = None
    specialty: _Text | None = None
    subject: _Text | None = None
    min_accuracy: _Share | None = None
    max_relative_drop: _Share | None = None
    max_drop_points: _Points | None = None
    max_flip_rate: _Share | None = None
    min_retention: _Share | None = None
    max_unparsed: _Share | None = None
    k: Annotated[int, Field(ge=0)] | None = None
    no_worse_than: _Text | None = None
    margin_points: _Points | None = None
    audited: bool | None = None
    missing: _Missing | None = None

    @property
    def key(self) -> str:
        """Key of the rule's condition in ``CONDITIONS``."""
        return next(key for key in CONDITIONS if getattr(self, key) is not None)

    @property
    def condition(self) -> Condition:
        """Condition of the rule."""
        return CONDITIONS[self.key]

    @property
    def threshold(self) -> float:
        """Limit that the figure is compared with, as a share."""
        if self.margin_points is not None:
            return -self.margin_points / 100
        value = float(getattr(self, self.key))
        return value / 100 if self.condition.points else value

    @property
    def title(self) -> str:
        """Name of the rule, or its condition as written."""
        value = getattr(self, self.key)
        return self.name or f"{self.key} = {value if isinstance(value, str) else f'{value:g}'}"

    @property
    def worst(self) -> bool:
        """Whether missing replies (unparsed, refused or failed) count against the model."""
        return self.missing == "worst"

    @property
    def strata(self) -> Mapping[str, str]:
        """Labels of the questions that the rule covers."""
        labels = {name: getattr(self, name) for name in STRATA}
        return {name: value for name, value in labels.items() if value is not None}


@until_declared
def _rule() -> type[Rule]:
    """Build the class of rules, with a field for each condition that a table declares."""
    fields: dict[str, Any] = {
        key: ((_Points if CONDITIONS[key].points else _Share) | None, None) for key in GATES
    }
    return create_model("Rule", __base__=Rule, **fields)


class Rules(BaseModel):
    """Rules of a file, with its path for errors and the coverage of the intervals that decide."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    file: str = ""
    level: Annotated[float, Field(ge=0.5, lt=1, allow_inf_nan=False)] = 0.95
    missing: _Missing | None = None
    rule: tuple[Rule, ...]

    def place(self, number: int) -> str:
        """Return the place of a rule in its file, by its number from 0."""
        return f"{self.file}, rule {number + 1}"


def read_rules(path: str) -> Rules:
    """Read the rules of a TOML file: ``[[rule]]`` tables, and optionally ``level`` and ``missing``.

    A ``missing`` above the rules is the default for each rule.

    Raises:
        InputError: the file cannot be read, is not valid TOML, or has no rule. A rule has an
            unknown key, a value out of range, no condition or several, or keys that cannot be
            combined.
    """
    return rules_of(_parse_file(path), path)


def rules_of(content: Mapping[str, Any], path: str) -> Rules:
    """Build the rules from the parsed content of a file; raises as ``read_rules``."""
    keys = ("level", "missing", "rule")
    for key in content:
        if key not in keys:
            near = did_you_mean(key, [*keys, *_rule().model_fields])
            below = "Put the keys of a rule below [[rule]]" if key in _rule().model_fields else near
            raise InputError(f"unknown key '{key}'", path, remedy=below)
    rules = content.get("rule")
    if not isinstance(rules, list) or not rules:
        raise InputError("has no rule", path, remedy="Start each rule with [[rule]]")
    top = _validate(Rules, {**content, "rule": (), "file": path}, path)
    defaults = {} if top.missing is None else {"missing": top.missing}
    rules_read: list[Rule] = []
    for number, rule in enumerate(rules, start=1):
        place = f"{path}, rule {number}"
        if not isinstance(rule, dict):
            raise InputError("is not a table", place, remedy="Start each rule with [[rule]]")
        rules_read.append(_validate(_rule(), {**defaults, **rule}, place))
        _check(rules_read[-1], place)
    return top.model_copy(update={"rule": tuple(rules_read)})


def _parse_file(path: str) -> dict[str, Any]:
    return toml_in(text_of(named_path(path), "Give a TOML file of rules"), path)


def _validate(model: type[_Model], data: Any, place: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        value = first.get("input")
        match first["type"]:
            case "extra_forbidden":
                remedy = did_you_mean(field, model.model_fields)
                raise InputError(f"unknown key '{field}'", place, remedy=remedy) from None
            case "greater_than_equal" | "less_than_equal" | "less_than" | "finite_number":
                problem, remedy = f"{value} is out of range", _RANGES.get(field, _range(field))
            case "literal_error":
                problem, remedy = f"'{str(value)[:60]}' is unknown", "Write 'usual' or 'worst'"
            case _:
                problem, remedy = f"'{str(value)[:60]}' is not a valid value", first["msg"]
        raise InputError(problem, place, field=field, remedy=remedy) from None


def _range(field: str) -> str:
    if field in CONDITIONS and not CONDITIONS[field].points:
        return "Write a share of 0 to 1, such as 0.1 for 10%"
    return "Write 0 to 100 points"


def _check(rule: Rule, place: str) -> None:
    """Check that the fields of one rule can be combined."""
    conditions = [key for key in CONDITIONS if getattr(rule, key) is not None]
    if len(conditions) != 1:
        conditions_text = f"has {' and '.join(conditions)}" if conditions else "has no condition"
        remedy = "Split it into two rules" if conditions else f"Give one of {', '.join(CONDITIONS)}"
        raise InputError(conditions_text, place, remedy=remedy)
    (key,) = conditions
    condition = CONDITIONS[key]
    challenges = [name for name in CHALLENGES if getattr(rule, name) is not None]
    if len(challenges) > 1:
        problem = f"has {' and '.join(challenges)}"
        raise InputError(problem, place, remedy="Write one rule for each")
    for name in (*challenges, *(["mitigation"] if rule.mitigation else [])):
        if not condition.challenge:
            raise InputError(
                f"cannot be combined with {key}", place, field=name, remedy="Remove it"
            )
    if condition.challenge and not condition.first_answers and not challenges:
        raise InputError(
            "does not name a challenge", place, field=key,
            remedy="Name a family, technique or path; '*' matches every name",
        )  # fmt: skip
    if rule.mitigation and not (rule.family or rule.technique):
        problem = "goes with a family or a technique"
        raise InputError(problem, place, field="mitigation", remedy="Name one")
    for name, owner in (("k", "min_accuracy_after_attacks"), ("margin_points", "no_worse_than")):
        if getattr(rule, name) is not None and key != owner:
            raise InputError(
                f"can only be combined with {owner}", place, field=name, remedy="Remove it"
            )
    if rule.audited and key not in AUDITED_FIGURES:
        remedy = f"It goes with {' and '.join(AUDITED_FIGURES)}"
        raise InputError(f"cannot be combined with {key}", place, field="audited", remedy=remedy)
    if rule.audited and rule.worst:
        raise InputError(
            "cannot be combined with missing = 'worst'", place, field="audited",
            remedy="Write missing = 'usual' in this rule",
        )  # fmt: skip
    if key == "no_worse_than" and rule.margin_points is None:
        raise InputError(
            "is missing", place, field="margin_points",
            remedy="Give the margin in points, such as margin_points = 2",
        )  # fmt: skip
