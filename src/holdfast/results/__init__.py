"""Results: the turns table and what is measured on it. Reads logs and files only."""

from holdfast.declared import Lazily, declaring
from holdfast.lookups import until_declared

from .arms import TurnsOf, turns_of
from .audit import units
from .comparison import compare
from .comparison_sides import Side
from .declaration import Section, Table, sections_of, tables_of
from .designs import Designs, designs, fitted, stated
from .first_answers import BASELINE, FAMILY_AVERAGE, apart
from .gate import Verdict, gate, overall, undecided_where_unfinished
from .gate_rules import Rules, read_rules
from .labels import label_rows, put_labels
from .power import further_questions, questions_needed
from .published import beside_published
from .readings import (
    AUDIT,
    GIVEN,
    NO_LETTER,
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
    GROWS,
    IMPORTED,
    INPUTS,
    NO_CONTEXTS,
    OWN_TECHNIQUES,
    PLACE,
    RUNTIME,
    SHARD,
    by_system,
    defence_of,
    growing,
    is_imported,
    is_ours,
    is_simulated,
    logs_in,
    run_ids,
    run_settings,
    set_aside,
    system_of,
    tested_name,
)
from .sequential import STOPPED, Stopped, stopped_runs, with_sequences
from .standing import by_model, standing
from .turns import (
    SCHEMA,
    WrittenTurns,
    together,
    turns_in,
    turns_table,
    unfinished_runs,
    write_audit,
    write_turns,
)

TABLES = Lazily(lambda: tables_of(declaring()))
"""Table by the name that ``holdfast table --table`` knows it by, called with a turns table."""


@until_declared
def sections() -> list[tuple[Section, tuple[Table, ...]]]:
    """The sections of the report, each with its tables."""
    return sections_of(declaring())


__all__ = [
    "AUDIT",
    "BASELINE",
    "FAMILY_AVERAGE",
    "GIVEN",
    "GROWS",
    "IMPORTED",
    "INPUTS",
    "NON_RESPONSE",
    "NO_CONTEXTS",
    "NO_LETTER",
    "OWN_TECHNIQUES",
    "PLACE",
    "READ_AGAIN",
    "RUNTIME",
    "SCHEMA",
    "SHARD",
    "STOPPED",
    "TABLES",
    "TURN_KEY",
    "Designs",
    "Rules",
    "RunRecord",
    "Section",
    "Side",
    "Stopped",
    "Table",
    "TurnsOf",
    "Verdict",
    "WrittenTurns",
    "apart",
    "as_recorded",
    "beside_published",
    "by_model",
    "by_system",
    "check_read_alike",
    "compare",
    "defence_of",
    "designs",
    "errors",
    "first_readings",
    "fitted",
    "further_questions",
    "gate",
    "growing",
    "is_imported",
    "is_ours",
    "is_simulated",
    "keep_plan",
    "label_rows",
    "left_out",
    "logs_in",
    "mark",
    "overall",
    "plans",
    "put_labels",
    "question_order",
    "questions_needed",
    "read_rules",
    "records",
    "run_ids",
    "run_records",
    "run_settings",
    "runs_in",
    "sections",
    "sent_otherwise",
    "set_aside",
    "standing",
    "stated",
    "stopped_runs",
    "system_of",
    "tested_name",
    "together",
    "turns_in",
    "turns_of",
    "turns_table",
    "undecided_where_unfinished",
    "unfinished_runs",
    "units",
    "with_sequences",
    "write_audit",
    "write_readings",
    "write_turns",
]
