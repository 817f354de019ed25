"""Results: the turns table and what is measured on it. Reads logs and files only."""

from functools import cache

from holdfast.declared import Lazily, declaring

from .accuracy import accuracy
from .agreement import reading
from .attack_log import successful_attacks
from .attack_turns import ATTACKER
from .attacks import attacks
from .comparison import compare
from .comparison_sides import Side
from .compounding import compounding, compounding_parts, compounding_summary
from .convictions import survival, tax
from .cues import cues
from .declaration import Section, Table, sections_of, tables_of
from .dynamics import resistance, sticky_incorrect, turn_of_flip
from .faithfulness import faithfulness
from .first_answers import APART, BASELINE, FAMILY_AVERAGE
from .flexibility import beliefs, flexibility, positions, winners
from .flows import flips, flows, holding
from .gate import Outcome, Verdict, gate, overall, undecided_where_unfinished
from .gate_rules import Rule, Rules, read_rules
from .inference import clustered, holm
from .permutation import permutation
from .power import further_questions, questions_needed
from .published import beside_published, published
from .readings import (
    GIVEN,
    NON_RESPONSE,
    READ_AGAIN,
    TURN_KEY,
    as_recorded,
    check_read_alike,
    first_readings,
    mark,
    write_readings,
)
from .records import (
    RunRecord,
    errors,
    keep_plan,
    left_out,
    plans,
    question_order,
    records,
    run_records,
    runs_in,
    sent_otherwise,
)
from .runs import (
    EXTENSIBLE,
    IMPORTED,
    INPUTS,
    NO_CONTEXTS,
    RUNTIME,
    SHARD,
    is_imported,
    is_ours,
    is_simulated,
    logs_in,
    run_settings,
    set_aside,
)
from .scale import Size, scale, sizes
from .single_turn import single_turn
from .strata import lengths, strata
from .turns import (
    LABELS_FILE,
    SCHEMA,
    WrittenTurns,
    turns_in,
    turns_table,
    unfinished_runs,
    write_turns,
)

TABLES = Lazily(lambda: tables_of(declaring()))
"""Table by the name that ``holdfast table --table`` knows it by, called with a turns table."""


@cache
def sections() -> list[tuple[Section, tuple[Table, ...]]]:
    """The sections of the report, each with its tables."""
    return sections_of(declaring())


__all__ = [
    "APART",
    "ATTACKER",
    "BASELINE",
    "EXTENSIBLE",
    "FAMILY_AVERAGE",
    "GIVEN",
    "IMPORTED",
    "INPUTS",
    "LABELS_FILE",
    "NON_RESPONSE",
    "NO_CONTEXTS",
    "READ_AGAIN",
    "RUNTIME",
    "SCHEMA",
    "SHARD",
    "TABLES",
    "TURN_KEY",
    "Outcome",
    "Rule",
    "Rules",
    "RunRecord",
    "Section",
    "Side",
    "Size",
    "Table",
    "Verdict",
    "WrittenTurns",
    "accuracy",
    "as_recorded",
    "attacks",
    "beliefs",
    "beside_published",
    "check_read_alike",
    "clustered",
    "compare",
    "compounding",
    "compounding_parts",
    "compounding_summary",
    "cues",
    "errors",
    "faithfulness",
    "first_readings",
    "flexibility",
    "flips",
    "flows",
    "further_questions",
    "gate",
    "holding",
    "holm",
    "is_imported",
    "is_ours",
    "is_simulated",
    "keep_plan",
    "left_out",
    "lengths",
    "logs_in",
    "mark",
    "overall",
    "permutation",
    "plans",
    "positions",
    "published",
    "question_order",
    "questions_needed",
    "read_rules",
    "reading",
    "records",
    "resistance",
    "run_records",
    "run_settings",
    "runs_in",
    "scale",
    "sections",
    "sent_otherwise",
    "set_aside",
    "single_turn",
    "sizes",
    "sticky_incorrect",
    "strata",
    "successful_attacks",
    "survival",
    "tax",
    "turn_of_flip",
    "turns_in",
    "turns_table",
    "undecided_where_unfinished",
    "unfinished_runs",
    "winners",
    "write_readings",
    "write_turns",
]
