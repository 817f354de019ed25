"""Bad input: one line with place and remedy, exit code 2, nothing asked and nothing written."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from tests.cli.commands import facts_of, lacking, refusal
from tests.results.frames import alone, table, turn
from tests.studies import holdfast, question_rows, write_jsonl

GOOD = question_rows(3)
RULE = "[[rule]]\nmin_accuracy = 0.5\n"


def question(**fields: object) -> str:
    return json.dumps({**GOOD[0], **fields}) + "\n"


FILES: dict[str, str | bytes] = {
    "q.jsonl": "".join(json.dumps(row) + "\n" for row in GOOD),
    "again/q.jsonl": question(),
    "empty.jsonl": "",
    "broken.jsonl": question() + "{oops\n",
    "gold.jsonl": question(gold="X"),
    "few.jsonl": question(options={"A": "only"}, gold="A"),
    "ids.jsonl": question() * 2,
    "alike.jsonl": question(options={"A": "x", "B": "y", "C": "x"}, gold="A"),
    "elsewhere.jsonl": '{"question": "z1", "misleading_context": "Text."}\n',
    "textless.jsonl": '{"question": "q0"}\n',
    "stem.csv": "stem,misleading_context\nx,Text.\n",
    "misspelt.csv": "question,misleading_contxt\nq0,Text.\n",
    "twice.csv": "id,edge_case_context\nq0,Text.\nq0,Text.\n",
    "second.csv": "id,second_best,edge_case_context\nq0,A,Text.\n",
    "four.csv": "id,sentences,edge_case_context\nq0,four,Text.\n",
    "d-elsewhere.jsonl": '{"question": "z1", "distractors": {"B": "x"}}\n',
    "d-gold.jsonl": '{"question": "q0", "distractors": {"A": "x"}}\n',
    "d-there.jsonl": '{"question": "q0", "distractors": {"B": "Finding C of case 0."}}\n',
    "d-text.csv": "question,distractors\nq0,B\n",
    "s-gold.csv": "question,suggested\nq1,D\nq0,A\n",
    "s-none.csv": "question,letter\nq0,B\n",
    "s-elsewhere.csv": "question,suggested\nz0,B\n",
    "s-twice.csv": "question,suggested\nq0,B\nq0,C\n",
    "exemplars.jsonl": question() + question(id="dev", stem="Another case?"),
    "l-empty.jsonl": "",
    "l-broken.jsonl": '{"question": "q0", "system": "x"}\n{oops\n',
    "l-id.jsonl": '{"system": "x"}\n',
    "l-none.jsonl": '{"question": "q0", "sistem": "x"}\n',
    "l-elsewhere.jsonl": '{"question": "z9", "system": "x"}\n',
    "l-short.csv": "question,system\nq0\n",
    "l.jsonl": '{"question": "q0", "step": "step1"}\n',
    "l.txt": "x",
    "g-column.csv": "head,relation,tial\na,b,c\n",
    "g-cell.csv": "head,relation,tail\na,b,c\na,,c\n",
    "g-short.csv": "head,relation,tail\na,b\n",
    "g-rows.csv": "head,relation,tail\n",
    "g-bytes.csv": b"head,relation,tail\n\xff,b,c\n",
    "g.csv": "head,relation,tail\na,b,c\n",
    "colours.csv": "colour,size\nred,1\n",
    "tool.toml": "[tool]\nx = 1\n",
    "no-keys.toml": "",
    "rules.toml": RULE,
    "r-key.toml": "[[rule]]\nmin_acuracy = 0.8",
    "r-technique.toml": '[[rule]]\ntechnique = "rag-stile"\nmin_accuracy = 0.8',
    "r-family.toml": '[[rule]]\nfamily = "rethnk"\nmin_accuracy = 0.8',
    "r-step.toml": '[[rule]]\nstep = "step4"\nmin_accuracy = 0.8',
    "r-protocol.toml": "[[rule]]\nmin_survival = 0.5",
    "r-broken.toml": "[[rule]\nmin_accuracy = 0.8",
    "r-percent.toml": "[[rule]]\nmin_accuracy = 80",
    "r-last.toml": '[[rule]]\nno_worse_than = "runs/last"\nmargin_points = 2',
    "r-old.toml": '[[rule]]\nno_worse_than = "old.parquet"\nmargin_points = 2',
    "r-points.toml": "[[rule]]\nmax_attributable_points = 5\n",
    "u-family.toml": '[[rule]]\nmax_flip_rate = 0.2\nfamily = "incletter"\n',
    "u-known.toml": '[[rule]]\nmax_flip_rate = 0.2\nfamily = "authority"\n',
    "u-technique.toml": '[[rule]]\nmax_flip_rate = 0.2\ntechnique = "authority"\n',
    "u-pattern.toml": '[[rule]]\nmax_flip_rate = 0.2\ntechnique = "own-*"\n',
    "w-id.toml": "rag-stile = 'A'",
    "w-number.toml": "rag-style = 3",
    "w-broken.toml": "rag-style = ",
    "w-same.toml": "rag-style = 'A'\ndouble-check = 'A'",
    "sheet.csv": "unit\n",
    "x.eval": "",
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files, a finished run, turns tables and folders of nothing."""
    folder = tmp_path_factory.mktemp("bad")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("again", "folder", "nothing"):
            Path(name).mkdir()
        for name, text in FILES.items():
            Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
        run = holdfast(
            "run", "followup", "--model", "simulated/sycophant", "--questions", "q.jsonl",
            "-T", "techniques=rethink,rag-style", "-T", "contexts=synthetic", "--log-dir", "r",
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        for model in ("m1", "m2"):
            rows = [turn(f"q{n}", "AB"[n % 2], path, run=model, model=model)
                    for n in range(8) for path in ("", "push")]  # fmt: skip
            table(rows).write_parquet(f"{model}.parquet")
        table(rows).drop("depth").write_parquet("old.parquet")
        table([]).write_parquet("no-turns.parquet")
        table([alone("q1", "A")]).write_parquet("alone.parquet")
    return folder


@pytest.fixture
def here(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inputs)


MEDFUZZ = "medfuzz --model simulated/fuzz-swayed --questions q.jsonl"
STICK = "stick-or-switch --questions q.jsonl"

LEAN = "followup --model lean/m --model-base-url http://127.0.0.1:9/v1"

STUDIES: list[tuple[str, ...]] = [
    # questions
    ("followup --questions none.jsonl", "none.jsonl: no such file"),
    ("followup --questions empty.jsonl", "empty.jsonl: is empty"),
    ("followup --questions broken.jsonl", "broken.jsonl", "row 2", "broken JSON"),
    ("followup --questions gold.jsonl", "gold.jsonl", "row 1", "field 'gold'",
     "'X' is neither one of the options A, B, C, D"),
    ("followup --questions few.jsonl", "row 1", "field 'options'", "needs 2 to 26"),
    ("followup --questions ids.jsonl", "row 2", "field 'id'", "already used in row 1"),
    ("followup --questions alike.jsonl", "row 1", "options A and C have the same text"),
    ("followup --questions bnk", "Did you mean 'bank'?"),
    (f"{STICK} --questions again/q.jsonl", "again/q.jsonl", "both be called 'q'", "Rename a file"),
    (f"{STICK} --questions gold.jsonl", "gold.jsonl", "row 1"),
    (f"{STICK} -T stratify=step", "Add --shuffle SEED"),
    (f"{STICK} --shuffle 1 -T stratify=stp", "Did you mean 'step'?"),
    (f"{STICK} --shuffle 1 -T stratify=system", "has the label system"),
    # protocols, settings and models
    ("folowup", "Did you mean 'followup'?"),
    ("followup -T techniques=authority-prio", "Did you mean 'authority-prior'"),
    ("followup -T chains=rag-style>athority-prior", "Did you mean 'authority-prior'"),
    ("followup -T chains=rag-style", "Join two or more"),
    ("followup -T sugest=not-own", "Did you mean 'suggest'?"),
    ("followup -T suggest=notown", "Did you mean 'not-own'?"),
    ("followup -T seed=x", "not a whole number"),
    ("followup -T challenges=none.toml", "no such file"),
    ("followup -T contexts=none.jsonl", "no such file"),
    ("followup -T contexts=synthetc", "Did you mean 'synthetic'?"),
    ("followup -T contexts=generate", "no model has the role 'generator'",
     "Give --model-role generator=MODEL"),
    ("followup -T lengths=1,ten", "'ten' is not a number of sentences"),
    ("followup -T lengths=0", "'0' is not a number of sentences"),
    ("followup --prices none.json", "no such file"),
    ("followup -T strings.yaml", "'strings.yaml' is not NAME=VALUE"),
    ("single-turn -T biases=recencey", "Did you mean 'recency'"),
    ("single-turn -T mitigations=fewshot", "Did you mean 'few-shot'"),
    ("single-turn -T answers=first-char", "Did you mean 'first-character'?"),
    ("single-turn -T suggest=not-own", "is not a rule for single turns"),
    ("single-turn -T suggest=none.csv", "none.csv: no such file"),
    ("single-turn -T distractors=none.jsonl", "none.jsonl: no such file"),
    ("single-turn -T distractors=bnk", "Did you mean 'bank'?"),
    ("single-turn -T distractors=generate", "no model has the role 'generator'"),
    ("single-turn -T chains=paper", "unknown setting 'chains'"),
    ("stick-or-switch -T beliefs=maybe", "beliefs is 'maybe', not true or false"),
    ("stick-or-switch -T shots=x", "shots is 'x', not a whole number"),
    ("stick-or-switch -T shots=-1", "shots is '-1', not a number of exemplars"),
    ("stick-or-switch -T shots=7", "bank, field 'exemplars': has 6 exemplars"),
    ("stick-or-switch -T shot=1", "Did you mean 'shots'?"),
    ("stick-or-switch -T exemplars=none.jsonl", "no such file"),
    (f"{STICK} -T exemplars=exemplars.jsonl", "exemplars.jsonl", "has 1 exemplar", "-T shots=0"),
    (MEDFUZZ, "the role 'attacker'", "--model-role attacker=MODEL"),
    ("followup --model-role jugde=simulated/judge", "Did you mean 'judge' or 'judge-2'?"),
    ("followup --model-role judge", "is not ROLE=MODEL"),
    ("followup --model-role judge=opnai/x", "Did you mean 'openai'"),
    ("followup --model-role judge=simulated/juge", "Did you mean 'judge'"),
    ("followup --model-role generator=simulated/generator "
     "--model-role generator=simulated/generator", "given twice"),
    ("followup --model-role reader=simulated/reader --model-role reader-all=simulated/reader",
     "has a model both"),
    ("followup --model-role reader=simulated/sycophant", "is also the model under test",
     "Give another model"),
    ("followup --model simulated/sycophnt", "Did you mean 'sycophant' or 'noisy-sycophant'?"),
    ("followup --model opnai/gpt-4.1", "Did you mean 'openai'"),
    ("followup --model lexical/bm25", "Use lexical/overlap"),
    ("followup --model recorded/none.jsonl", "no such file"),
    # files beside the questions
    ("followup --questions q.jsonl -T contexts=elsewhere.jsonl", "elsewhere.jsonl",
     "field 'question'", "contains no context for any of the 3 questions", "were built for"),
    ("followup --questions q.jsonl -T contexts=textless.jsonl", "textless.jsonl",
     "contains no context", "Give at least one of the columns"),
    ("followup --questions q.jsonl -T contexts=stem.csv", "stem.csv, row 1, field 'question'",
     "is missing", "Name the question by its id"),
    ("followup --questions q.jsonl -T contexts=misspelt.csv",
     "misspelt.csv, row 1, field 'misleading_contxt'", "Did you mean 'misleading_context'?"),
    ("followup --questions q.jsonl -T contexts=twice.csv", "twice.csv, row 2",
     "'q0' is already in row 1", "Keep one"),
    ("followup --questions q.jsonl -T contexts=second.csv", "row 1, field 'second_best'",
     "'A' is not a wrong option of question 'q0'", "B, C, D"),
    ("followup --questions q.jsonl -T contexts=four.csv", "row 1, field 'sentences'",
     "is 'four', which is not a number of sentences"),
    ("single-turn --questions q.jsonl -T distractors=d-elsewhere.jsonl", "field 'question'",
     "contains no wrong options for any of the 3 questions", "was built for"),
    ("single-turn --questions q.jsonl -T distractors=d-gold.jsonl", "row 1, field 'distractors'",
     "'A', which is no wrong option", "Correct the row"),
    ("single-turn --questions q.jsonl -T distractors=d-there.jsonl", "row 1, field 'distractors'",
     "repeats the option"),
    ("single-turn --questions q.jsonl -T distractors=d-text.csv", "row 1, field 'distractors'",
     "is not an object of letters and texts"),
    ("single-turn --questions q.jsonl -T suggest=s-gold.csv", "row 2, field 'suggested'",
     "'A' is not a wrong option of question 'q0'", "B, C, D"),
    ("followup --questions q.jsonl -T suggest=s-none.csv", "row 1, field 'suggested'",
     "is missing"),
    ("followup --questions q.jsonl -T suggest=s-elsewhere.csv", "field 'suggested'",
     "contains no letter for any question"),
    ("single-turn --questions q.jsonl -T suggest=s-twice.csv", "row 2",
     "is the second letter for question 'q0'", "Keep one"),
    # how the model is asked, and where the log goes
    (f"{LEAN} --generate-config '{{reasoning_effort: much}}'", "reasoning_effort: is 'much'"),
    (f"{LEAN} --generate-config '{{reasoning_tokens: 100}}'",
     "reasoning_tokens: 'lean/m' does not support it"),
    (f"{LEAN} --generate-config '{{batch: 10}}'", "batch: 'lean/m' does not support it"),
    (f"{LEAN} --generate-config '{{top_p: 2}}'", "top_p: is 2.0. Give 0 to 1"),
    (f"{LEAN} -M config=1", "-M: 'config' is not a provider argument"),
    (f"{LEAN} -M =1", "-M: '' is not a provider argument"),
    (f"{LEAN} --generate-config '{{verbosty: low}}'", "verbosty", "Did you mean 'verbosity'"),
    ("followup --generate-config '{temperature: 1}'", "'simulated/sycophant' does not support it"),
    ("followup --model python:mine.py:answer -M x=1", "-M: does not apply to", "Remove -M"),
    ("followup --model lean/m --model-base-url 'x y'", "is not a URL (model 'lean/m')"),
    ("followup --log-dir a#b", "--log-dir"),
    ("followup --log-dir a?b", "--log-dir"),
    ("followup --log-dir a%20b", "--log-dir"),
]  # fmt: skip
"""Arguments of ``run`` and of ``run --dry-run``, and what the line says."""

MODEL = "--model simulated/sycophant"
LABELS = f"run followup {MODEL} --questions q.jsonl -T techniques=double-check --labels"
CONTEXTS = "generate contexts --model simulated/generator"
GRAPH = "generate distractors --model simulated/generator --graph"
GATE = "gate r --junit gate.xml --summary gate.md --rules"
COMPARE = "compare m1.parquet m2.parquet"
POWER = "power --baseline 90 --difference 5"
PILOT = "power m1.parquet"
UNTIL = f"run followup {MODEL} --until"

COMMANDS: list[tuple[str, ...]] = [
    (f"run followup {MODEL} --cost-limit 1", "the price of"),
    (f"run stick-or-switch {MODEL} --shuffle x", "--shuffle"),
    ("run followup --model simulated/sycophant --log-dir sheet.csv", "cannot be written"),
    *((f"run followup {MODEL} --{name} 1", f"No such option: --{name}")
      for name in ("max-calls", "max-cost", "max-output-tokens")),
    # labels
    (f"{LABELS} none.jsonl", "none.jsonl: no such file"),
    (f"{LABELS} l-empty.jsonl", "l-empty.jsonl: is empty"),
    (f"{LABELS} l-broken.jsonl", "l-broken.jsonl", "row 2", "broken JSON"),
    (f"{LABELS} l-id.jsonl", "l-id.jsonl, row 1, field 'question'", "is missing"),
    (f"{LABELS} l-none.jsonl", "row 1, field 'system'", "has no label", "Did you mean 'system'"),
    (f"{LABELS} l-elsewhere.jsonl", "field 'question'", "no label for any question"),
    (f"{LABELS} folder", "folder: is a folder"),
    (f"{LABELS} l.txt", "unknown file type '.txt'"),
    (f"{LABELS} l-short.csv", "row 1", "has 1 cells"),
    # what is generated
    ("generate contexts --model simulated/nobody", "unknown profile 'nobody'"),
    ("generate contexts --model opnai/x", "Did you mean 'openai'"),
    ("generate labels --model opnai/x", "Did you mean 'openai'"),
    (f"{CONTEXTS} --lengths a", "'a' is not a number of sentences"),
    (f"{CONTEXTS} --questions bnk", "Did you mean 'bank'?"),
    (f"{CONTEXTS} -o folder", "folder: cannot be written"),
    (f"{CONTEXTS} -o sheet.csv/c.jsonl", "sheet.csv/c.jsonl: cannot be written"),
    *((f"{CONTEXTS} -o {name}", f"{name}: ", ".jsonl") for name in ("c.csv", "c.txt", "c")),
    (f"{GRAPH} none.csv", "none.csv: no such file"),
    (f"{GRAPH} g-column.csv", "g-column.csv, row 1, field 'tail'", "'tial'"),
    (f"{GRAPH} g-cell.csv", "row 2, field 'relation'"),
    (f"{GRAPH} g-short.csv", "row 1", "has 2 cells"),
    (f"{GRAPH} g-rows.csv", "has no rows", "head, relation, tail."),
    (f"{GRAPH} g-bytes.csv", "is not UTF-8"),
    # what is checked
    ("check none.jsonl", "none.jsonl: no such file"),
    ("check none.toml", "none.toml: no such file"),
    ("check colours.csv", "has the columns colour, size", "--kind: questions, "),
    ("check g.csv", "looks like a knowledge graph", "--graph"),
    ("check tool.toml", "has the keys tool", "--kind: questions, contexts, "),
    ("check no-keys.toml", "has no keys"),
    ("check l.txt", "unknown file type '.txt'"),
    ("check q.jsonl --sentences 3", "--sentences: does not apply to questions"),
    ("check l.jsonl --kind labels --fields gold=x", "--fields: does not apply to labels"),
    ("check rules.toml --questions q.jsonl", "--questions: does not apply to rules"),
    ("check q.jsonl --kind question", "Did you mean 'questions'?"),
    # tables and pictures
    ("table nowhere", "nowhere: no such log dir"),
    ("table nothing", "nothing: has no holdfast logs"),
    ("table r --table acuracy", "Did you mean 'accuracy'"),
    ("table r --table single", "Did you mean 'single-turn'"),
    ("table r --format markdown", "--format: unknown format 'markdown'"),
    ("table r --format pgn", "Did you mean 'png'"),
    ("table r --compare-with papr", "Did you mean 'paper'"),
    ("table r --compare-with kggd", "unknown published source 'kggd'"),
    ("table r --by step --relative-to all", "unknown baseline 'all'"),
    ("table r --relative-to overall", "does not use a baseline for strata"),
    ("table r -o nowhere/t.md", "cannot be written", "Give another -o FILE"),
    ("table r -o .", "cannot be written", "Give another -o FILE"),
    ("table r --table flips --format svg", "table 'flips' has no figure",
     "Tables with a figure: worst"),
    ("table r --table survival --format svg", "nothing to draw"),
    ("table r --by step --format svg", "over 10 questions or more"),
    ("table r --format svg --compare-with stick-or-switch", "--compare-with: "),
    ("table r --table tax --models sheet.csv", "--models: table 'tax' does not use model sizes"),
    ("table r --table scale --models none.csv", "none.csv: cannot be read"),
    ("table r --format svg --width 3.3", "--width: '3.3' is not a width"),
    ("table r --format svg --width 0in", "is not a width from 1in to 40in"),
    ("table r --format svg --width 1in", "Give a larger --width"),
    ("table r --format svg --font-size 1", "Give 4 to 48"),
    ("table r --format md --width 3in", "--format: md is not a figure format"),
    ("table r --format svg --labels w-id.toml", "Did you mean 'rag-style'"),
    ("table r --format svg --labels w-number.toml", "'rag-style' has no label"),
    ("table r --format svg --labels w-broken.toml", "is not valid TOML"),
    ("table r --format svg --labels w-same.toml",
     "'rag-style' and 'double-check' have the same label"),
    # gates and verdicts
    (f"{GATE} r-key.toml", "r-key.toml, rule 1", "unknown key 'min_acuracy'", "Did you mean"),
    (f"{GATE} r-technique.toml", "Did you mean 'rag-style'?"),
    (f"{GATE} r-family.toml", "Did you mean 'rethink'?"),
    (f"{GATE} r-step.toml", "unknown step 'step4'", "Did you mean 's"),
    (f"{GATE} r-protocol.toml", "It is one of stick-or-switch."),
    (f"{GATE} r-broken.toml", "r-broken.toml: is not valid TOML"),
    (f"{GATE} r-percent.toml", "Write a share of 0 to 1"),
    (f"{GATE} no-keys.toml", "no-keys.toml: has no rule", "[[rule]]"),
    (f"{GATE} r-last.toml", "runs/last: no such log dir"),
    (f"{GATE} r-old.toml", "old.parquet, field 'depth': is missing"),
    ("gate nothing --rules rules.toml", "nothing: has no holdfast logs"),
    ("gate no-turns.parquet --rules rules.toml", "no-turns.parquet: has no turns"),
    ("gate old.parquet --rules rules.toml", "old.parquet, field 'depth': is missing",
     "written by this version of holdfast"),
    ("gate r --rules rules.toml --junit nowhere/x", "nowhere/x: cannot be written", "--junit"),
    ("gate r --rules rules.toml --summary nowhere/x", "nowhere/x: cannot be written", "--summary"),
    ("gate nowhere --rules none.toml", "none.toml"),  # rules are read before the logs
    (f"{UNTIL} u-family.toml", "u-family.toml, rule 1, field 'family'", "mean 'inc_letter'"),
    (f"{UNTIL} u-known.toml", "field 'family': unknown", "context, document, inc_letter, rethink."),
    (f"{UNTIL} u-technique.toml", "field 'technique': unknown", "Did you mean 'authority-prior'?"),
    (f"{UNTIL} u-pattern.toml", "field 'technique': unknown", "Known: "),
    (f"{UNTIL} r-points.toml", "question by question"),
    (f"{UNTIL} rules.toml --questions q.jsonl --log-dir r", "in a separate log directory"),
    # comparisons
    (f"{COMPARE} --model-a m3", "--model-a: A has no model 'm3'", "Known: m1."),
    (f"{COMPARE} --run-b mm2", "--run-b: B has no run 'mm2'", "Did you mean 'm2'?"),
    (f"{COMPARE} --protocol folowup", "Did you mean 'followup'?"),
    (f"{COMPARE} --dataset d5", "--dataset: neither side has a data set 'd5'"),
    (f"{COMPARE} --mitigation-b education", "A has no protocol 'single-turn'", "Known: followup."),
    (f"{COMPARE} --format svg", "--format: unknown format 'svg'"),
    (f"{COMPARE} -o nowhere/x", "cannot be written"),
    (f"{COMPARE} --page nowhere/x", "cannot be written"),
    (f"{COMPARE} --paths push shove", "--paths: B has no path or family 'shove'"),
    ("compare m1.parquet old.parquet", "field 'depth': is missing", "written by this version"),
    ("compare m1.parquet no-turns.parquet", "B has no turns", "Finish the run"),
    ("compare m1.parquet alone.parquet", "A has followup, B has single-turn"),
    ("compare m1.parquet m1.parquet", "the same run", "--model-a and --model-b"),
    ("compare m1.parquet nowhere", "no such log dir"),
    # numbers of questions and labels
    ("power --difference 5", "--baseline: is required"),
    ("power --baseline 90", "--difference: is required"),
    (f"{POWER} --baseline 0.9", "such as --baseline 90"),
    (f"{POWER} --baseline inf", "--baseline"),
    (f"{POWER} --difference 0", "so small a difference"),
    (f"{POWER} --difference 1e-300", "so small a difference"),
    (f"{POWER} --difference nan", "--difference"),
    (f"{POWER} --difference 95", "90% less 95 points is not in 0% to 100%"),
    (f"{POWER} --discordant 2", "5% to 25%"),
    (f"{POWER} --discordant 0.2", "such as --discordant 20"),
    (f"{POWER} --tests {10**20}", "--tests"),
    (f"{POWER} --alpha 1e-300", "too small"),
    (f"{POWER} --power 1", "is not between 0 and 1"),
    (f"{PILOT} --difference 5", "--path: this figure needs a path"),
    (f"{PILOT} --path pusch --difference 5", "Did you mean 'push'"),
    (f"{PILOT} --path push --model m9", "--model: the results have no model 'm9'"),
    (f"{PILOT} --path push --min-accuracy 50 --max-drop 5",
     "--max-drop: cannot be combined with --min-accuracy"),
    (f"{PILOT} --path push --correlation 0.3", "such as --correlation 30"),
    ("power --audit 3", "Missing option '--baseline'"),
    ("power --audit 101 --baseline 70", "101 is not a percentage"),
    ("power --audit nan --baseline 70", "not a finite number"),
    ("power --audit nowhere", "nowhere: no such log dir"),
    # readers and audits
    ("score nowhere", "nowhere: no such log dir"),
    ("score r --model-role judge=simulated/judge", "the role 'judge'",
     "reader=MODEL or reader-all=MODEL"),
    ("score r --model-role reader=simulated/sycophant", "is also the model under test"),
    ("import sheet.csv --audit r --mapping x", "--mapping: cannot be combined with --audit"),
    ("import sheet.csv --audit r --questions x", "--questions: cannot be combined with --audit"),
    ("import sheet.csv --audit x.eval", "is a single log", "Give the log directory"),
    ("import sheet.csv --audit nowhere", "nowhere"),
    ("export r m1.parquet --format audit", "--format: audit accepts one log directory"),
]  # fmt: skip
"""Whole command lines, and what the line says."""


@pytest.mark.parametrize("row", STUDIES, ids=lambda row: row[0])
@pytest.mark.usefixtures("here")
def test_a_bad_study_and_its_plan_are_refused_alike(row: tuple[str, ...]) -> None:
    arguments, *words = row
    model = () if "--model " in arguments else ("--model", "simulated/sycophant")
    command = (*shlex.split(arguments), *model)
    line, plan = refusal("run", *command), refusal("run", "--dry-run", *command)
    assert lacking(words, line) == lacking(words, plan) == []


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row[0])
@pytest.mark.usefixtures("here")
def test_a_bad_command_ends_in_one_line(row: tuple[str, ...]) -> None:
    command, *words = row
    line = refusal(*shlex.split(command))
    assert lacking(words, line) == []


@pytest.mark.parametrize("command", [["run", "followup", "--dry-run", "--model"], ["report"]])
def test_an_undecodable_argument_ends_in_one_line(command: list[str]) -> None:
    assert "is not UTF-8" in refusal(*command, "m\udcff")


def test_a_run_in_a_subfolder_is_refused() -> None:
    study = ("run", "followup", "--model", "simulated/sycophant", "--limit", "1",
             "-T", "techniques=none", "--log-dir")  # fmt: skip
    assert holdfast(*study, "r/sub").returncode == 0
    assert "another --log-dir" in refusal(*study, "r")


HELPERS = {
    "judgement": ("run followup --model simulated/sycophant --model-role judge=simulated/{}",
                  ("sycophant", "generator"), "judge"),
    "attack": ("run medfuzz --model simulated/steadfast --epochs 1 "
               "--model-role attacker=simulated/{}", ("judge", "fuzz-swayed"), "attacker"),
    "context": ("generate contexts --model simulated/{}", ("judge",), "generator"),
    "wrong option": ("generate distractors --model simulated/{}", ("judge",), "generator"),
    "label": ("generate labels --model simulated/{}", ("judge",), "classifier"),
}  # fmt: skip


@pytest.mark.rest_slow
@pytest.mark.parametrize("name", HELPERS)
def test_a_helper_for_another_purpose_is_named(name: str) -> None:
    command, helpers, remedy = HELPERS[name]
    for helper in helpers:
        run = holdfast(*command.format(helper).split(), "--limit", "2", "--log-dir", helper)
        assert run.returncode in (2, 3)
        last = run.stderr.strip().splitlines()[-1]
        words = ["holdfast: ", f"'simulated/{helper}' gives no", f"Use simulated/{remedy}"]
        assert lacking(words, last) == []


def test_every_bad_row_is_reported_at_once(tmp_path: Path) -> None:
    rows = [{**GOOD[0], "gold": "X"}, GOOD[1], {**GOOD[2], "stem": " "}]
    path = write_jsonl(tmp_path / "q.jsonl", rows)
    check = holdfast("check", path)
    assert check.returncode == 2
    lines = check.stderr.strip().splitlines()
    assert ["row 1" in lines[0], "row 3" in lines[1], "2 bad rows" in lines[2]] == [True] * 3
    report = facts_of("check", path, code=2)
    assert [problem["row"] for problem in report["problems"]] == [1, 3]
    assert report["questions"] == 1


def test_faulty_contexts_are_left_out_and_the_rest_is_asked(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "q.jsonl", GOOD)
    sentence, two = "One sentence is here.", "One sentence is here. And another."
    contexts = write_jsonl(
        tmp_path / "c.jsonl",
        [
            {"question": "q0", "sentences": 1, "misleading_context": two,
             "alternative_context": sentence, "alternative_answer": "Finding D of case 0",
             "edge_case_context": sentence},
            {"question": "q1", "sentences": 1, "misleading_context": sentence,
             "alternative_context": sentence, "alternative_answer": "a rare syndrome",
             "content_hash": "of another question"},
            {"question": "q2", "sentences": 1, "misleading_context": sentence,
             "alternative_context": "It is not option B. It is another.",
             "alternative_answer": "a rare syndrome"},
            {"question": "somewhere else", "misleading_context": sentence},
        ],
    )  # fmt: skip
    command = ("run", "followup", "--model", "simulated/sycophant", "--questions", source,
               "-T", f"contexts={contexts}", "-T", "techniques=context")  # fmt: skip
    outcome = facts_of(*command)
    length, elsewhere, option = ("wrong sentence count", "belongs to another question "
                                 "with this id", "an option as diagnosis")  # fmt: skip
    misleading = {f"misleading_context cannot be used ({length})": 1, elsewhere: 1}
    assert outcome["left_out"] == {
        "misleading-context": misleading,
        "rag-style": misleading,
        "alternative-context": {
            f"alternative_context cannot be used ({option})": 1, elsewhere: 1,
            f"alternative_context cannot be used ({length})": 1,
        },
        "edge-case-context": {"no edge_case_context": 2},
    }  # fmt: skip
    assert outcome["remarks"] == ["c.jsonl: 1 row for other questions"]
    output = " ".join(holdfast(*command).stdout.split())
    assert lacking([*outcome["remarks"], *misleading, "edge-case-context"], output) == []
    counts = {row["path"]: row["n"] for row in outcome["accuracy"] if row["arm"] == "followup"}
    assert counts == {"misleading-context": 1, "rag-style": 1, "edge-case-context": 1}
    assert outcome["complete"] is True
    assert pl.read_parquet(outcome["turns"]).filter(arm="baseline").height == 3
