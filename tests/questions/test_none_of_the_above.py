import json
import re
from collections import Counter
from pathlib import Path

import pytest

from holdfast.questions.question import is_none_of_the_above


def test_abstentions_are_recognised() -> None:
    for text in (
        "None of the above", "None of the Above", "NONE OF THE ABOVE.", "none of above", "None",
        "None.", "None of these", "None of those", "None of them", "None of the options", "Neither",
        "None of the listed options", "None of the options listed above", "None of the two",
        "None of the given answers", "None of the answer choices are correct", "None of the other "
        "options", "None of the following", "None of the above is correct", "none apply", "NOTA",
        "N.O.T.A.", "nota", "None-of-the-above", "None of the above (NOTA)",
        "d)\tNone of the above",
        "(e) None of the above", "E. None", "Neither of these", "No correct answer", "No option is "
        "correct", "There is no correct answer", "All of the above are incorrect", "None listed",
        "non of the above", "None of  the\u00a0above", "\u201cNone of the above\u201d",
        "None of the above statements are true", "**None of the above**", "None\u200b of the above",
        "\uff2eone of the above", "None of the others", "None of the others is correct",
        "None of the remaining options", "None of the aforementioned", "None of the preceding",
        "None of the two options", "None among the above", "None correct", "None is true",
        "Not any of the above", "Not one of these", "No one of the above", "Neither option",
        "Neither statement is correct", "All are wrong", "All the above are wrong",
        "All options are incorrect", "All of the above statements are false", "none of all the "
        "above", "None of the above-mentioned", "NONE", "(None)", "\u201cNeither.\u201d",
    ):  # fmt: skip
        assert is_none_of_the_above(text), text


def test_other_texts_are_no_abstentions() -> None:
    for text in (
        "", " ", "?", "All of the above", "Any of the above", "Some of the above", "Both",
        "None of the above findings are specific", "None of the above except B", "None but A",
        "None of the above; observe", "None required", "None of the symptoms", "No", "Nil",
        "Nothing",
        "No treatment", "No change", "Non", "Non union", "Na", "NA", "N/A", "Neither A nor B",
        "Nota bene", "Not given", "Not enough information provided", "above", "Other", "Nonesuch",
        "None of the arteries", "none of the above " * 20, "All of the above are correct",
        "All of the above except B", "All of the above except the first", "All except none",
        "All are correct", "All the above", "All are correct except none of these",
        "Both assertion and reason are not true", "No abnormality", "No abnormality detected",
        "No common factor", "No difference", "Normal", "None found", "None known", "None at all",
        "None of the tests", "None of these drugs", "None of A, B or C", "Neither 1 nor 2",
        "Neither artery", "No one", "Not any", "Not above", "Not applicable", "No option",
        "None of the above, A is right", "None remaining", "Remaining", "Others", "The rest",
    ):  # fmt: skip
        assert not is_none_of_the_above(text), text


def test_options_of_medmcqa_are_recognised(resources: Path) -> None:
    texts: Counter[str] = Counter()
    questions = matches = golds = 0
    for line in (resources / "data/medmcqa/dev.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        options = [row[key] for key in ("opa", "opb", "opc", "opd")]
        none_options = [text for text in options if is_none_of_the_above(text)]
        texts.update(none_options)
        # no option with such a word is overlooked
        pattern = r"(?i)\b(none|neither|nota)\b"
        assert [text for text in options if re.search(pattern, text)] == none_options
        questions += 1
        matches += bool(none_options)
        golds += is_none_of_the_above(row["op" + "abcd"[row["cop"] - 1]])
    assert (questions, matches, golds) == (4183, 171, 2)
    assert texts.most_common(5) == [
        ("None of the above", 97), ("None", 41), ("None.", 15), ("None of the above.", 7),
        ("None of these", 4),
    ]  # fmt: skip
    assert texts.total() == 171


@pytest.mark.parametrize("name", ["us_4_options_dev", "us_4_options_test", "us_5_options_test"])
def test_medqa_has_no_abstention(resources: Path, name: str) -> None:
    lines = (resources / f"data/medqa/{name}.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [text for line in lines for text in json.loads(line)["options"].values()]
    assert len(texts) > 5000
    assert not any(map(is_none_of_the_above, texts))
