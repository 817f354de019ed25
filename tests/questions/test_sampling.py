from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.questions.loading import QuestionSet, load_questions
from holdfast.questions.question import LABELS, Question
from holdfast.questions.sampling import shuffled

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def build_question(name: str, **labels: str | None) -> Question:
    return Question(id=name, stem=f"Case {name}?", options={"A": "x", "B": "y"}, gold="A", **labels)


def of_sizes(sizes: list[int], label: str = "system") -> QuestionSet:
    """Strata of these sizes; the first has no label."""
    strata = [None, *LETTERS]
    return QuestionSet(
        "set",
        tuple(
            build_question(f"{number}-{place}", **{label: strata[number]})
            for number, size in enumerate(sizes)
            for place in range(size)
        ),
    )


def ids(questions: QuestionSet) -> list[str]:
    return [question.id for question in questions.questions]


def deviation(order: QuestionSet, label: str) -> Fraction:
    """How far a beginning's count of a stratum is from its share, at the most."""
    n = len(order.questions)
    sizes = Counter(getattr(question, label) for question in order.questions)
    so_far: Counter[str | None] = Counter()
    worst = Fraction(0)
    for size_so_far, question in enumerate(order.questions, start=1):
        so_far[getattr(question, label)] += 1
        for stratum, size in sizes.items():
            worst = max(worst, abs(so_far[stratum] - Fraction(size_so_far * size, n)))
    return worst


seeds = st.integers(-(2**40), 2**40)
sizes_of_strata = st.lists(st.integers(0, 15), min_size=2, max_size=8).filter(
    lambda sizes: any(sizes[1:])
)


def test_the_order_never_changes() -> None:
    # written down once: another machine, or a later version, must draw the same sample
    whole = of_sizes([2, 3, 2])
    assert " ".join(ids(shuffled(whole, 42))) == "1-0 2-0 1-2 2-1 0-0 0-1 1-1"
    by_system = ids(shuffled(whole, 42, "system"))
    assert " ".join(by_system) == "1-0 2-0 0-0 1-2 2-1 0-1 1-1"


@given(seed=seeds, sizes=sizes_of_strata, data=st.data())
def test_the_order_of_the_file_does_not_matter(
    seed: int, sizes: list[int], data: st.DataObject
) -> None:
    whole = of_sizes(sizes)
    copy = QuestionSet("set", tuple(data.draw(st.permutations(whole.questions))))
    for stratify in (None, "system"):
        assert ids(shuffled(copy, seed, stratify)) == ids(shuffled(whole, seed, stratify))


@given(seed=seeds, sizes=sizes_of_strata, limit=st.integers(0, 300))
def test_the_first_n_are_a_sample_without_replacement(
    seed: int, sizes: list[int], limit: int
) -> None:
    whole = of_sizes(sizes)
    for stratify in (None, "system"):
        order = shuffled(whole, seed, stratify)
        sample = ids(order.first(limit))
        assert len(set(sample)) == len(sample) == min(limit, sum(sizes))
        assert sorted(ids(order)) == sorted(ids(whole))
        assert order.name == whole.name


@given(seed=seeds, n=st.integers(2, 20), data=st.data())
def test_removing_a_question_moves_no_other(seed: int, n: int, data: st.DataObject) -> None:
    whole = of_sizes([n])
    removal = data.draw(st.sampled_from(ids(whole)))
    fewer = QuestionSet("set", tuple(q for q in whole.questions if q.id != removal))
    assert ids(shuffled(fewer, seed)) == [id for id in ids(shuffled(whole, seed)) if id != removal]


def test_every_question_comes_first_equally_often() -> None:
    whole = of_sizes([10])
    first = Counter(ids(shuffled(whole, seed))[0] for seed in range(2000))
    assert len(first) == 10
    # 200 are expected, with a standard deviation of 13.4
    assert all(140 < times < 260 for times in first.values())
    # and of equal strata every stratum
    whole = of_sizes([3, 3, 3, 3, 3])
    strata = Counter(shuffled(whole, seed, "system").questions[0].system for seed in range(1000))
    assert len(strata) == 5
    assert all(140 < times < 260 for times in strata.values())


@settings(deadline=None, max_examples=50)
@given(seed=seeds, sizes=sizes_of_strata)
def test_every_prefix_keeps_the_shares_of_strata(seed: int, sizes: list[int]) -> None:
    assert deviation(shuffled(of_sizes(sizes), seed, "system"), "system") < 1


def test_strata_of_one_question_are_spread_out() -> None:
    assert deviation(shuffled(of_sizes([100] + [1] * 20), 1, "system"), "system") < 1


def test_shares_match_hand_calculation() -> None:
    order = shuffled(of_sizes([0, 6, 3, 1]), 7, "system")
    counts = [Counter(q.system for q in order.first(n).questions) for n in (5, 10)]
    assert counts[0]["A"] == 3  # 6 of 10, half of them
    assert counts[0]["B"] in (1, 2)
    assert counts[0]["C"] in (0, 1)
    assert counts[1] == {"A": 6, "B": 3, "C": 1}


def test_questions_without_the_label_are_a_stratum() -> None:
    order = shuffled(of_sizes([5, 5]), 3, "system")
    for n in range(0, 11, 2):
        assert sum(q.system is None for q in order.first(n).questions) == n // 2
    # apart from those of a label "None"
    questions = [build_question(f"{n}", system="None" if n < 4 else None) for n in range(8)]
    whole = QuestionSet("set", tuple(questions))
    assert deviation(shuffled(whole, 5, "system"), "system") < 1


@pytest.mark.parametrize("label", LABELS)
def test_every_label_can_be_kept(label: str) -> None:
    assert deviation(shuffled(of_sizes([1, 7, 3], label), 11, label), label) < 1


def test_another_seed_is_another_order() -> None:
    whole = of_sizes([30])
    assert len({tuple(ids(shuffled(whole, seed))) for seed in range(20)}) == 20


@pytest.mark.parametrize(
    ("sizes", "label", "fault", "remedy"),
    [([1, 1], "sistem", "'sistem' is not a label", "'system'"),
     ([1, 1], "gold", "'gold' is not a label", ""),
     ([4], "system", "no question of 'set' has the label system", "")],
)  # fmt: skip
def test_a_bad_label_is_refused(sizes: list[int], label: str, fault: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        shuffled(of_sizes(sizes), 1, label)
    assert (caught.value.field, caught.value.fault) == ("stratify", fault)
    assert remedy in str(caught.value.remedy)


def test_the_bank_keeps_its_systems() -> None:
    order = shuffled(load_questions("bank"), 42, "system")
    counts = Counter(question.system for question in order.first(15).questions)
    assert set(counts.values()) == {1}
    assert len(counts) == 15


def test_medmcqa_keeps_its_subjects(resources: object) -> None:
    order = shuffled(load_questions(f"{resources}/data/medmcqa/dev.jsonl"), 42, "subject")
    assert deviation(order, "subject") < 1
