"""Results: the turns table and what is measured on it. Reads logs and files only."""

from collections.abc import Callable, Mapping
from functools import partial

import polars as pl

from .accuracy import ACCURACY_COLUMNS, FAMILY_AVERAGE, accuracy
from .agreement import READING_COLUMNS, reading
from .attack_log import Attacked, successful_attacks
from .attack_turns import ATTACKER
from .attacks import (
    ATTACK_LIST_COLUMNS,
    ATTACK_SUMMARY_COLUMNS,
    ATTACKS_COLUMNS,
    attack_list,
    attack_summary,
    attacks,
)
from .beliefs import BELIEFS_COLUMNS, beliefs
from .comparison import COMPARISON_COLUMNS, Comparison, compare
from .comparison_sides import Side
from .compounding import (
    ALL_MODELS,
    COMPOUNDING_COLUMNS,
    PARTS_COLUMNS,
    SUMMARY_COLUMNS,
    compounding,
    compounding_parts,
    compounding_summary,
)
from .cues import CUES_COLUMNS, cues
from .damaged import set_aside
from .dynamics import (
    RESISTANCE_COLUMNS,
    STICKY_INCORRECT_COLUMNS,
    TURN_OF_FLIP_COLUMNS,
    resistance,
    sticky_incorrect,
    turn_of_flip,
)
from .faithfulness import FAITHFULNESS_COLUMNS, cohens_kappa, faithfulness
from .first_answers import APART, BASELINE
from .flexibility import FLEXIBILITY_COLUMNS, flexibility
from .flips import FLIPS_COLUMNS, flips
from .flows import FLOWS_COLUMNS, flows
from .gate import Outcome, Verdict, gate, overall
from .gate_rules import CONDITIONS, Rule, Rules, read_rules
from .holding import HOLDING_COLUMNS, holding
from .labels import LABELS_FILE
from .lengths import LENGTHS_COLUMNS, lengths
from .malfunctions import errors, sent_otherwise
from .permutation import PERMUTATION_COLUMNS, permutation
from .plans import keep_plan, plans
from .positions import POSITIONS_COLUMNS, WINNERS_COLUMNS, positions, winners
from .power import further_questions, questions_needed
from .published import PUBLISHED, beside_published, published
from .readings import (
    GIVEN,
    NON_RESPONSE,
    READ_AGAIN,
    READINGS_FILE,
    TURN_KEY,
    as_recorded,
    check_read_alike,
    first_readings,
    mark,
    write_readings,
)
from .records import question_order, records, runs_in
from .run_records import RunRecord, run_records
from .runs import (
    EXTENSIBLE,
    IMPORTED,
    INPUTS,
    RUNTIME,
    SHARD,
    is_imported,
    is_ours,
    is_simulated,
    logs_in,
    run_id,
    run_settings,
)
from .scale import SCALE_COLUMNS, scale
from .single_turn import SINGLE_TURN_COLUMNS, single_turn
from .sizes import Size, size_of, sizes
from .strata import strata, strata_columns
from .survival import SURVIVAL_COLUMNS, survival
from .tax import TAX_COLUMNS, tax
from .testing import benjamini_hochberg, clustered, holm, mcnemar
from .turns import FILE_NAME, SCHEMA, turns_in, turns_table, write_turns

TABLES: Mapping[str, Callable[..., pl.DataFrame]] = {
    "accuracy": accuracy,
    "flips": flips,
    "holding": holding,
    "flows": flows,
    "steps": partial(strata, by="step"),
    "systems": partial(strata, by="system"),
    "specialties": partial(strata, by="specialty"),
    "subjects": partial(strata, by="subject"),
    "lengths": lengths,
    "compounding": compounding,
    "compounding-parts": compounding_parts,
    "compounding-summary": compounding_summary,
    "single-turn": single_turn,
    "cues": cues,
    "survival": survival,
    "tax": tax,
    "flexibility": flexibility,
    "positions": positions,
    "winners": winners,
    "beliefs": beliefs,
    "scale": scale,
    "resistance": resistance,
    "turn-of-flip": turn_of_flip,
    "sticky-incorrect": sticky_incorrect,
    "attacks": attacks,
    "attack-summary": attack_summary,
    "attack-list": attack_list,
    "permutation": permutation,
    "faithfulness": faithfulness,
    "reading": reading,
}
"""Table by the name that ``holdfast table --table`` knows it by: a function of a turns table.

Tables of strata also take ``relative_to``, and ``scale`` takes ``models``, a file of sizes.
"""

__all__ = [
    "ACCURACY_COLUMNS",
    "ALL_MODELS",
    "APART",
    "ATTACKER",
    "ATTACKS_COLUMNS",
    "ATTACK_LIST_COLUMNS",
    "ATTACK_SUMMARY_COLUMNS",
    "BASELINE",
    "BELIEFS_COLUMNS",
    "COMPARISON_COLUMNS",
    "COMPOUNDING_COLUMNS",
    "CONDITIONS",
    "CUES_COLUMNS",
    "EXTENSIBLE",
    "FAITHFULNESS_COLUMNS",
    "FAMILY_AVERAGE",
    "FILE_NAME",
    "FLEXIBILITY_COLUMNS",
    "FLIPS_COLUMNS",
    "FLOWS_COLUMNS",
    "GIVEN",
    "HOLDING_COLUMNS",
    "IMPORTED",
    "INPUTS",
    "LABELS_FILE",
    "LENGTHS_COLUMNS",
    "NON_RESPONSE",
    "PARTS_COLUMNS",
    "PERMUTATION_COLUMNS",
    "POSITIONS_COLUMNS",
    "PUBLISHED",
    "READINGS_FILE",
    "READING_COLUMNS",
    "READ_AGAIN",
    "RESISTANCE_COLUMNS",
    "RUNTIME",
    "SCALE_COLUMNS",
    "SCHEMA",
    "SHARD",
    "SINGLE_TURN_COLUMNS",
    "STICKY_INCORRECT_COLUMNS",
    "SUMMARY_COLUMNS",
    "SURVIVAL_COLUMNS",
    "TABLES",
    "TAX_COLUMNS",
    "TURN_KEY",
    "TURN_OF_FLIP_COLUMNS",
    "WINNERS_COLUMNS",
    "Attacked",
    "Comparison",
    "Outcome",
    "Rule",
    "Rules",
    "RunRecord",
    "Side",
    "Size",
    "Verdict",
    "accuracy",
    "as_recorded",
    "attack_list",
    "attack_summary",
    "attacks",
    "beliefs",
    "benjamini_hochberg",
    "beside_published",
    "check_read_alike",
    "clustered",
    "cohens_kappa",
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
    "lengths",
    "logs_in",
    "mark",
    "mcnemar",
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
    "run_id",
    "run_records",
    "run_settings",
    "runs_in",
    "scale",
    "sent_otherwise",
    "set_aside",
    "single_turn",
    "size_of",
    "sizes",
    "sticky_incorrect",
    "strata",
    "strata_columns",
    "successful_attacks",
    "survival",
    "tax",
    "turn_of_flip",
    "turns_in",
    "turns_table",
    "winners",
    "write_readings",
    "write_turns",
]
