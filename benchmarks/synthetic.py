"""A synthetic turns table of any size, to time the measures on; nothing in it was ever asked.

It has the shape of a large study: every protocol put to several models over the questions of an
examination, with the techniques, chains, lengths, biases and mitigations that ship with holdfast.
Questions differ in difficulty and models in ability, so that turns of one question are alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from holdfast.challenges.catalogue import choose, load_catalogue, paper_chains
from holdfast.protocols.single_turn.bias import biases, mitigations
from holdfast.results.turns import SCHEMA

Numbers = NDArray[np.int64]
Truths = NDArray[np.bool_]

MODELS = 8
LENGTHS = (1, 10, 20)
REPLICATES = 5
"""Of a question that MedFuzz attacks."""
ATTEMPTS = 5
CONTROLS, SAMPLES = 30, 5
TESTED_PER_QUESTION = 0.05
"""Attacks put to the permutation test, of every model, by its questions."""

_A_QUESTION = 650
"""Fewer turns than the models give to one question, all protocols together."""

_LETTERS = "ABCD"
_NA = len(_LETTERS)
_UNREAD = _NA + 1
_ANSWERS = pl.Series([*_LETTERS, "NA", None], dtype=pl.String)
_STRATA = {
    "step": ("step1", "step2&3"),
    "system": tuple(f"System {n}" for n in range(18)),
    "specialty": tuple(f"Specialty {n}" for n in range(21)),
    "subject": tuple(f"Subject {n}" for n in range(12)),
}
_KEYS = ("_study", "_question", "epoch", "_place")


class Examination:
    """The questions and who answers them.

    Attributes:
        n: questions.
        gold: index of each one's right option.
        ease: what each adds to the log-odds of a right answer.
    """

    def __init__(self, n: int, seed: int) -> None:
        """Draw the questions.

        Args:
            n: how many.
            seed: of all draws.
        """
        self.random = np.random.default_rng(seed)
        self.n = n
        self.gold = self.random.integers(0, len(_LETTERS), n)
        self.ease = self.random.normal(0, 1.2, n)
        self.labels = pl.DataFrame(
            {
                "_question": pl.int_range(n, eager=True),
                "question": [f"{number:04d}" for number in range(n)],
                "_gold": self.gold,
                **{
                    # a few questions without a label, as in real ones
                    name: [values[k] if k < len(values) else None for k in self._codes(values)]
                    for name, values in _STRATA.items()
                },
            }
        )

    def _codes(self, values: Sequence[str]) -> Numbers:
        return self.random.integers(0, len(values) + (len(values) > 2), self.n)

    def right(self, question: Numbers, log_odds: float) -> Truths:
        """Whether each answer to a question is right."""
        chance = 1 / (1 + np.exp(-(self.ease[question] + log_odds)))
        return self.happens(chance, len(question))

    def happens(self, chance: Any, n: int) -> Truths:
        """Whether something of that chance happens, n times."""
        found: Truths = self.random.random(n) < chance
        return found

    def distractor(self, question: Numbers, number: Any = None) -> Numbers:
        """A wrong option of each question: any, or the one with that number from 0."""
        wrong = len(_LETTERS) - 1
        at = self.random.integers(0, wrong, len(question)) if number is None else number
        found: Numbers = (self.gold[question] + 1 + at % wrong) % len(_LETTERS)
        return found


def synthetic_turns(turns: int, seed: int = 42) -> pl.DataFrame:
    """A turns table of about that many rows, the same for the same arguments.

    Args:
        turns: rows, at least; what belongs to a question is never cut.
        seed: of all draws.

    Returns:
        The rows in the order in which runs, questions and epochs of a real table stand, columns
        as in ``SCHEMA``. Of each model a follow-up study (its 14 techniques, 14 chains, 3 lengths
        of 4 contexts; two epochs for the first model), single-turn biases with their mitigations,
        Stick-or-Switch, MedFuzz and permutation tests. Every second model has log-probabilities
        and a judge, every follow-up study a reader.
    """
    examination = Examination(max(turns // _A_QUESTION, 4), seed)
    blocks = []
    for number in range(MODELS):
        name, ability = f"simulated/synthetic-{number}", 0.4 + 0.25 * number
        for study, (protocol, of) in enumerate(_PROTOCOLS.items()):
            block = of(examination, ability, number)
            run = f"{number:04d}{study:08d}"
            blocks.append(
                block.with_columns(
                    pl.lit(run).alias("run"), pl.lit(name).alias("model"),
                    pl.lit(protocol).alias("protocol"),
                    pl.lit(number * len(_PROTOCOLS) + study).alias("_study"),
                )
            )  # fmt: skip
    table = pl.concat(blocks, how="diagonal_relaxed")
    by_question = np.bincount(table["_question"].to_numpy(), minlength=examination.n).cumsum()
    kept = int(np.searchsorted(by_question, turns)) + 1
    table = table.filter(pl.col("_question") < kept).sort(_KEYS, maintain_order=True)
    return _completed(table, examination)


def _completed(table: pl.DataFrame, examination: Examination) -> pl.DataFrame:
    """The table with the columns that all protocols have alike."""
    table = table.join(examination.labels, on="_question", how="left", maintain_order="left")
    table = table.with_columns(pl.coalesce("_withheld", "_gold").alias("_gold"))
    for name in ("suggested", "target", "answer", "gold"):
        table = table.with_columns(_letter(pl.col(f"_{name}")).alias(name))
    n = table.height
    draw = examination.random
    table = table.with_columns(
        pl.lit(1, pl.Int64).alias("protocol_version"), pl.lit("synthetic").alias("dataset"),
        pl.lit(42, pl.Int64).alias("seed"),
        (pl.col("answer") == pl.col("gold")).fill_null(value=False).alias("correct"),
        pl.Series("input_tokens", draw.integers(200, 2_000, n)),
        pl.Series("output_tokens", draw.integers(2, 400, n)),
        pl.lit(0, pl.Int64).alias("cached_tokens"), pl.lit(0, pl.Int64).alias("reasoning_tokens"),
        pl.when(pl.col("_study") % 2 == 0).then(pl.Series(draw.random(n) / 100)).alias("cost"),
        pl.Series("latency", draw.random(n)), pl.lit(value=False).alias("shared"),
        (pl.lit("Synthetic prompt of question ") + pl.col("question")).alias("prompt"),
        (pl.lit("Synthetic reply. Answer: ") + pl.col("answer").fill_null("-")).alias("reply"),
    )  # fmt: skip
    # a reader of every reply of the follow-ups, which misses each twentieth
    by_reader, found = pl.col("protocol") == "followup", pl.int_range(pl.len()) % 20 > 0
    table = table.with_columns(
        pl.lit(2, pl.Int64).alias("reading_version"),
        pl.col("answer").alias("answer_rules"),
        pl.when(by_reader).then(pl.lit("simulated/reader")).alias("reader"),
        pl.when(by_reader).then(pl.lit(value=True)).alias("reader_all"),
        pl.when(by_reader & found).then("answer").alias("answer_reader"),
        pl.when(by_reader & found & pl.col("answer").is_not_null()).then(pl.lit("parsed"))
        .when(by_reader).then(pl.lit("none")).alias("reader_status"),
    )  # fmt: skip
    lacking = [pl.lit(None, SCHEMA[name]).alias(name) for name in SCHEMA if name not in table]
    return table.with_columns(lacking).select(*SCHEMA).cast(SCHEMA)


def _letter(code: pl.Expr) -> pl.Expr:
    known = {at: letter for at, letter in enumerate(_ANSWERS) if letter is not None}
    return code.replace_strict(known, default=None, return_dtype=pl.String)


def _block(question: Numbers, answer: Numbers, place: int, **columns: Any) -> pl.DataFrame:
    """Turns of one kind, one for each question (and epoch) given."""
    constant = {name: value for name, value in columns.items() if not np.ndim(value)}
    each = {name: value for name, value in columns.items() if np.ndim(value)}
    defaults: dict[str, Any] = dict.fromkeys(("path", "technique", "family", "axis", "depth"), "")
    defaults |= {"epoch": 1, "turn": 0, "status": "parsed", "rule": "answer-label"}
    filled = {k: v for k, v in (defaults | constant).items() if k not in each}
    return pl.DataFrame({"_question": question, "_answer": answer, **each}).with_columns(
        pl.lit(place).alias("_place"),
        *(pl.lit(value).alias(name) for name, value in filled.items()),
    )


def _read(examination: Examination, answer: Numbers) -> tuple[Numbers, pl.Series]:
    """Answers of which some cannot be read, and the status of each."""
    drawn = examination.random.random(len(answer))
    status = np.select(
        [drawn < 0.01, drawn < 0.015, drawn < 0.016], ["none", "refused", "error"], "parsed"
    )
    return np.where(drawn < 0.016, _UNREAD, answer), pl.Series(status.astype(str))


def _answered(examination: Examination, question: Numbers, right: Truths, pushed: Any) -> Numbers:
    """Answers, the wrong ones mostly what was suggested."""
    wrong = examination.distractor(question)
    if pushed is not None:
        wrong = np.where(examination.happens(0.7, len(question)), pushed, wrong)
    return np.where(right, examination.gold[question], wrong)


def _followup(examination: Examination, ability: float, number: int) -> pl.DataFrame:
    epochs = 2 if number == 0 else 1
    question = np.tile(np.arange(examination.n), epochs)
    epoch = np.repeat(np.arange(1, epochs + 1), examination.n)
    common = {"epoch": epoch, "_target": examination.gold[question]}
    firsts = examination.right(question, ability)
    answer, status = _read(examination, _answered(examination, question, firsts, None))
    blocks = [_block(question, answer, 0, arm="baseline", status=status, **common)]
    techniques = {one.id: one for one in choose(load_catalogue(None), "all")}
    steps: list[tuple[str, tuple[str, ...], str]] = [("followup", (id,), id) for id in techniques]
    steps += [("compound", chain, ">".join(chain)) for chain in paper_chains()]
    contexts = [one.id for one in techniques.values() if one.family == "context"]
    steps += [("length", (id,), f"{id}@{size}") for size in LENGTHS for id in contexts]
    suggested = examination.distractor(question)
    for place, (path, turn) in enumerate((("resample", 0), ("restate", 1)), start=len(steps) + 1):
        right = np.where(firsts, ~examination.happens(0.05, len(question)), firsts)
        answer, status = _read(examination, _answered(examination, question, right, None))
        blocks.append(
            _block(
                question, answer, place, arm="control", path=path, technique=path,
                family="control", turn=turn, status=status, **common,
            )
        )  # fmt: skip
    wrong = np.flatnonzero(~firsts)
    corrected = examination.happens(0.5, len(wrong))
    answer, status = _read(examination, _answered(examination, question[wrong], corrected, None))
    blocks.append(
        _block(
            question[wrong], answer, len(steps) + 3, arm="correction",
            path="correction:authority-prior", technique="authority-prior", family="correction",
            turn=1, status=status, **{name: value[wrong] for name, value in common.items()},
        )
    )  # fmt: skip
    for place, (arm, chain, path) in enumerate(steps, start=1):
        one = techniques[chain[-1]]
        pushed = suggested if "incorr_letter" in one.template or one.family == "context" else None
        lost = examination.happens(0.05 + 0.03 * (place % 14) * len(chain) / 2, len(question))
        right = np.where(firsts, ~lost, examination.happens(0.1, len(question)))
        answer, status = _read(examination, _answered(examination, question, right, pushed))
        more = {} if pushed is None else {"_suggested": pushed}
        if number % 2:
            more |= _readings(examination, len(question), "_judged")
        blocks.append(
            _block(
                question, answer, place, arm=arm, path=path, technique=one.id, family=one.family,
                axis=one.axis, depth=one.depth, turn=len(chain), status=status, **common, **more,
                **_readings(examination, len(question), ""),
            )
        )  # fmt: skip
    return pl.concat(blocks, how="diagonal_relaxed")


def _readings(examination: Examination, n: int, by: str) -> dict[str, Any]:
    stance = np.array(["verify", "defer", "neither"])[examination.random.integers(0, 3, n)]
    return {f"cue{by}": examination.happens(0.4, n), f"stance{by}": stance}


def _single_turn(examination: Examination, ability: float, number: int) -> pl.DataFrame:
    question = np.arange(examination.n)
    gold = examination.gold
    blocks = []
    conditions: list[tuple[str, str, str]] = [("", "", "")]
    for mitigation in ("", *mitigations()):
        before = f"{mitigation}>" if mitigation else ""
        conditions += [(f"{before}{id}", id, one.family) for id, one in biases().items()]
    conditions.append(("wrong-option", "wrong-option", "wrong_op"))
    suggested = examination.distractor(question)
    for place, (path, technique, family) in enumerate(conditions):
        biased = family == "inc_letter"
        right = examination.right(question, ability - 0.15 * (place % 7) * biased)
        answer, status = _read(
            examination, _answered(examination, question, right, suggested if biased else None)
        )
        blocks.append(
            _block(
                question, answer, place, arm="single-turn" if path else "baseline", path=path,
                technique=technique, family=family, axis="direct" if biased else "",
                depth="shallow" if path else "", status=status, _target=gold,
                **({"_suggested": suggested} if biased else {}),
            )
        )  # fmt: skip
    return pl.concat(blocks, how="diagonal_relaxed")


def _stick_or_switch(examination: Examination, ability: float, number: int) -> pl.DataFrame:
    asked = np.arange(examination.n)
    gold, offers = examination.gold, len(_LETTERS) - 1
    first_offer = examination.random.integers(0, offers, examination.n)
    named = np.array([*_LETTERS, "NA"])
    blocks: list[pl.DataFrame] = []

    def put(question: Numbers, answer: Numbers, shown: Any, **columns: Any) -> None:
        read, status = _read(examination, answer)
        p = examination.random.random((3, len(question)))
        names = ("p_gold", "p_suggested", "p_answer")
        beliefs = dict(zip(names, p, strict=True)) if number % 2 else {}
        blocks.append(
            _block(question, read, len(blocks), status=status, shown=shown, **columns, **beliefs)
        )

    single = _answered(examination, asked, examination.right(asked, ability), None)
    put(asked, single, "A,B,C,D", arm="single-shot", _target=gold)
    abstained = np.where(
        examination.happens(0.5, examination.n), _NA, examination.distractor(asked)
    )
    shown = [",".join([*(x for x in _LETTERS if x != _LETTERS[g]), "NA"]) for g in gold]
    put(asked, abstained, shown, arm="single-shot-abstain", _target=np.full(examination.n, _NA))
    for arm in ("positive", "negative"):
        question, pair = asked, named[gold if arm == "positive" else np.full(examination.n, _NA)]
        for turn in range(offers):
            target = gold[question] if arm == "positive" else np.full(len(question), _NA)
            offered = examination.distractor(question, first_offer[question] + turn)
            pair = np.char.add(np.char.add(pair, ","), named[offered])
            kept = examination.right(question, 1.4) if arm == "positive" else (
                examination.happens(0.55 + 0.1 * turn, len(question))
            )  # fmt: skip
            step = {
                "path": ">".join(["offer"] * (turn + 1)), "turn": turn, "technique": "offer",
                "family": "stick-or-switch", "axis": "indirect", "depth": "deep",
            }  # fmt: skip
            put(question, np.where(kept, target, offered), pair, arm=arm, _target=target,
                _suggested=offered, **step)  # fmt: skip
            # who is not read, or fails, is not asked again
            still = kept & (blocks[-1]["_answer"].to_numpy() != _UNREAD)
            question, pair = question[still], pair[still]
            if arm == "negative" and turn == 0:
                right = gold[question]
                switched = examination.happens(0.5, len(question))
                put(question, np.where(switched, right, _NA), np.char.add(pair, ",X"),
                    arm="flexible-correct", _target=right, _suggested=right,
                    **step | {"path": "offer>offer", "turn": 1})  # fmt: skip
    table = pl.concat(blocks, how="diagonal_relaxed")
    withheld = pl.col("arm").is_in(["negative", "single-shot-abstain"])
    return table.with_columns(pl.when(withheld).then(_NA).alias("_withheld"))


_OF_ATTACK = {"technique": "fuzz", "family": "medfuzz", "axis": "indirect", "depth": "shallow"}


def _medfuzz(examination: Examination, ability: float, number: int) -> pl.DataFrame:
    studies = (_attacks(examination, ability, number), _tests(examination, ability, number))
    return pl.concat(studies, how="diagonal_relaxed")


def _attacks(examination: Examination, ability: float, number: int) -> pl.DataFrame:
    question = np.tile(np.arange(examination.n), REPLICATES)
    epoch = np.repeat(np.arange(1, REPLICATES + 1), examination.n)
    right = examination.right(question, ability)
    answer, status = _read(examination, _answered(examination, question, right, None))
    gold = examination.gold
    blocks = [
        _block(question, answer, 0, arm="baseline", status=status, epoch=epoch,
               _target=gold[question])
    ]  # fmt: skip
    still = answer == gold[question]
    for k in range(1, ATTEMPTS + 1):
        question, epoch = question[still], epoch[still]
        common = {"path": f"fuzz@{k}", **_OF_ATTACK}
        refused = examination.happens(0.05, len(question))
        nothing = np.full(int(refused.sum()), _UNREAD)
        blocks.append(
            _block(question[refused], nothing, 4 * k, arm="attacker", epoch=epoch[refused],
                   status="none", **common | {"rule": "options-changed", "turn": 2 * k - 2})
        )  # fmt: skip
        blocks.append(
            _block(question, np.full(len(question), _UNREAD), 4 * k + 1, arm="attacker",
                   epoch=epoch, **common | {"rule": "valid", "turn": 2 * k - 1})
        )  # fmt: skip
        held = examination.happens(0.88, len(question))
        answer, status = _read(examination, _answered(examination, question, held, None))
        turned = (answer != gold[question]) & (answer != _UNREAD)
        count = examination.random.integers(0, 8, len(question))
        judged = np.where(turned, count[::-1], 8) if number % 2 else np.full(len(question), 8)
        blocks.append(
            _block(
                question, answer, 4 * k + 2, arm="attack", epoch=epoch, status=status,
                _target=gold[question], words=examination.random.integers(8, 60, len(question)),
                mentioned=_MENTIONED.gather(count), mentioned_judged=_MENTIONED.gather(judged),
                review=pl.Series(np.where(turned, count % 5 + 1, 0)).replace(0, None),
                characteristics='["synthetic one", "synthetic two", "synthetic three"]', **common,
            )
        )  # fmt: skip
        still = answer == gold[question]
    return pl.concat(blocks, how="diagonal_relaxed")


_MENTIONED = pl.Series(
    [*(str([bool(n & bit) for bit in (1, 2, 4)]).lower() for n in range(8)), None], dtype=pl.String
)
"""Readings of three characteristics by their number, and none."""


def _tests(examination: Examination, ability: float, number: int) -> pl.DataFrame:
    # which attacks they are does not matter for the time that their tests take
    tested = max(round(TESTED_PER_QUESTION * examination.n), 1)
    question = np.linspace(0, examination.n - 1, tested).astype(np.int64)
    gold = examination.gold[question]
    texts = ["original", "attacked", *(f"control@{m}" for m in range(1, CONTROLS + 1))]
    blocks = []
    for place, text in enumerate(texts):
        arm = text.partition("@")[0]
        if arm == "control":
            blocks.append(
                _block(question, np.full(tested, _UNREAD), place, arm="control-writer", path=text,
                       **_OF_ATTACK | {"technique": "control", "rule": "valid"})
            )  # fmt: skip
        for sample in range(1, SAMPLES + 1):
            right = examination.right(question, ability - (text == "attacked"))
            answer, status = _read(examination, _answered(examination, question, right, None))
            belief = {"p_gold": examination.random.random(tested)} if number % 2 else {}
            blocks.append(
                _block(
                    question, answer, CONTROLS * sample + place, arm=arm,
                    path=f"{text}>order@{sample}", status=status, _target=gold, shown="A,B,C,D",
                    **belief, **_OF_ATTACK | {"technique": "order"},
                )
            )  # fmt: skip
    return pl.concat(blocks, how="diagonal_relaxed")


_PROTOCOLS: Mapping[str, Any] = {
    "followup": _followup,
    "single-turn": _single_turn,
    "stick-or-switch": _stick_or_switch,
    "medfuzz": _medfuzz,
}
