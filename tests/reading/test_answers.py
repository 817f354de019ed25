import string
import time
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reading.answers import extract_answer, first_character
from holdfast.reading.decisions import read_decision
from holdfast.reading.extraction import Extraction

DRUGS = {"A": "Aspirin", "B": "Clopidogrel", "C": "Aspirin and heparin", "D": "Observation"}
ORGANISMS = {
    "A": "E. coli",
    "B": "Clostridium difficile",
    "C": "B cells",
    "D": "Vitamin D",
    "E": "Both A and B",
}
LETTERS = {"A": "B", "B": "A", "C": "D", "D": "D"}
NUMBERS = {"A": "40", "B": "14", "C": "4", "D": "4.5"}
MARKS = {"A": "(a+b)^2 [x]", "B": "{x|x>0}*", "C": r"\frac{1}{2}", "D": "a+?|$"}
TEN = {letter: f"Finding number {number}" for number, letter in enumerate("ABCDEFGHIJ")}
SAYS_NONE = {"A": "Warfarin", "B": "Heparin", "C": "None of the above"}
SWAPPED = {"A": "B", "B": "A"}
YES_NO = {"A": "Yes", "B": "No"}
LONG = {"A": "very " * 4000 + "ill", "B": "very " * 4000 + "well"}


def read(reply: str, options: Mapping[str, str] = DRUGS) -> str:
    extraction = extract_answer(reply, options)
    assert (extraction.answer is not None) == (extraction.status == "parsed")
    return extraction.answer or extraction.status


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("Reasoning.\n\nFinal Answer: (B)", "final-answer"),
        (r"\boxed{B}", "boxed"),
        ('{"answer": "B"}', "json"),
        ("<answer>B</answer>", "answer-tag"),
        ("**Answer:** B", "answer-label"),
        ("The best choice is B.", "answer-is"),
        ("I would choose option B: Clopidogrel", "choice"),
        ("Bleeding is unlikely. It's B.", "therefore"),
        ("Option B is the correct answer.", "is-correct"),
        ("B. Clopidogrel", "leading-letter"),
        ("B", "bare-letter"),
        ("It inhibits P2Y12.\n\nB", "last-line"),
        ("The best drug for this man is B: Clopidogrel.", "verdict"),
        ("Reasoning first.\n\n**B. Clopidogrel** inhibits P2Y12", "bold"),
        ("He needs clopidogrel (B) today.", "item"),
        ("He needs option B: Clopidogrel today.", "item"),
        ("Clopidogrel", "option-text"),
        (
            "The best thing for him to take now, given the risk, may well be to start clopidogrel "
            "therapy at once.",
            "quoted-text",
        ),
    ],
)
def test_each_rule_reads_its_form(reply: str, rule: str) -> None:
    extraction = extract_answer(reply, DRUGS)
    assert (extraction.answer, extraction.status, extraction.rule) == ("B", "parsed", rule)


@pytest.mark.parametrize(
    ("reply", "status", "rule"),
    [
        ("", "none", "empty"),
        (" \n\t", "none", "empty"),
        ("\x00\u200b\u200f", "none", "empty"),
        ("<think>The answer is A.", "none", "unfinished"),
        ("I cannot provide medical advice.", "refused", "refusal"),
        ("None of the options is correct.", "none", "none-correct"),
        ("Answer: A and C", "ambiguous", "conflict"),
        ("Final Answer: (F)", "none", "not-an-option"),
        ("This is a hard question.", "none", "nothing"),
    ],
)
def test_each_way_of_giving_no_answer(reply: str, status: str, rule: str) -> None:
    extraction = extract_answer(reply, DRUGS)
    assert (extraction.answer, extraction.status, extraction.rule) == (None, status, rule)


@pytest.mark.parametrize(
    "reply",
    [
        "Final Answer: (B)",
        "Reasoning...\n\nFinal Answer: (b)",
        "**Final Answer: (B)**",
        "### Final Answer\n\n**B**",
        "## Final Answer: **(B) Clopidogrel**",
        "Final Answer: B. Clopidogrel",
        "Final answer is B",
        "FINAL ANSWER: ( B )",
        "Final Answer: $\\boxed{B}$",
        "\\boxed{B}",
        "\\boxed{\\text{B}}",
        "$\\boxed{\\textbf{(B)}}$",
        "\\boxed{\\text{B. Clopidogrel}}",
        "\\boxed{\\mathrm{B}}",
        "The final answer is $\\boxed{\\text{Clopidogrel}}$.",
        "**B**",
        "**B.**",
        "**Answer:** B",
        "**Answer: B. Clopidogrel**",
        "Answer: **B. Clopidogrel**",
        "**Answer**: **B**",
        "Answer: B",
        "answer: b",
        "Ans: B",
        "Answer - B",
        "Answer (B)",
        "Answer B",
        "Correct Answer: B",
        "The correct option is (B).",
        "Correct option: B",
        "*Answer:* *B*",
        "Answer:\nB",
        "Answer:\n\n**(B)**",
        "__Answer__: B",
        "`B`",
        "```\nB\n```",
        '{"answer": "B"}',
        'Sure! {"reasoning": "A is wrong", "answer": "B"',
        "{'answer': 'B'}",
        '{"answer": ["B"]}',
        '```json\n{\n  "answer": "B"\n}\n```',
        '{"answer": "Clopidogrel"}',
        '{"final_answer": "B", "confidence": 0.9}',
        "{answer: B}",
        "The answer is B.",
        "The correct answer is **B**.",
        "The correct answer is B: Clopidogrel",
        "The answer is (B).",
        "The answer is option B.",
        "The best answer would be B.",
        "the answer is b.",
        "The answer is B because it inhibits P2Y12.",
        "So the answer is clearly B",
        "The answer to the question is:\n\nB. Clopidogrel",
        "The correct answer is Clopidogrel.",
        "The correct answer is: **Clopidogrel**",
        "Therefore, B.",
        "Therefore, the answer is B.",
        "Therefore, I'd go with B.",
        "I'll stick with B.",
        "I maintain that the answer is B.",
        "I would choose option B: Clopidogrel",
        "I choose B",
        "I still believe the correct answer is B.",
        "While my colleague thinks the answer is A, I would choose B.",
        "I would choose B. Your colleague believes that the answer is A.",
        "(B)",
        "[B]",
        "B",
        "b",
        "B.",
        "B)",
        "B: Clopidogrel",
        "B. Clopidogrel",
        "B) Clopidogrel",
        "(B) Clopidogrel",
        "Option B",
        "Option B: Clopidogrel",
        "B - Clopidogrel",
        "B\n\nBecause it inhibits P2Y12. A is less likely.",
        "\n\n  B  \n",
        '"B"',
        "B!",
        "Clopidogrel",
        "Clopidogrel.",
        "clopidogrel",
        '"Clopidogrel"',
        "I cannot provide medical advice, but the answer is B.",
        "I'm sorry, but I can't answer that. Final Answer: (B)",
        "Answer: B. Aspirin and heparin",
        "\uff26inal \uff21nswer: \uff08\uff22\uff09",
        "\uff22",
        "The answer is \u201cB\u201d.",
        "The answer is \u2018B\u2019",
        "\u200fFinal Answer: (\u200eB)\u200f",
        "Final\u00a0Answer: (B)",
        "Final Answer\uff1a (B)",
        "\u7b54\u6848\u662fB\u3002",
        "\u7b54\u6848\uff1aB",
        "\u6b63\u786e\u7b54\u6848\uff1aB",
        "\U0001d401",
        "Final Answer: (\u0007B)",
        "Final Answer \u2014 B",
        "<think>The answer is A.</think>B",
        "The answer is A.</think>\nFinal Answer: (B)",
        "<thinking>A?</thinking><answer>B</answer>",
        "<reasoning>Final Answer: (A)</reasoning>\nFinal Answer: (B)",
        "<unused94>thought\nthe answer is A<unused95>Final Answer: (B)",
        "Final Answer: (B)<think>or A",
        (
            "A. Aspirin: wrong, bleeding.\nB. Clopidogrel: right class.\nC. Aspirin "
            "and heparin: no.\nD. Observation: no.\n\nThe answer is B."
        ),
        "Let's analyse:\nA. Aspirin - no\nB. Clopidogrel - yes\n\n**B**",
        "Option B is the correct answer.",
        "B is correct.",
        "B is the correct answer because",
        "Option B (Clopidogrel) is the best choice.",
        "Clopidogrel is the correct answer.",
        "Clopidogrel (B) is the drug of choice.",
        "Based on this, the most likely drug is:\n\nB: Clopidogrel.\n\nThis is a",
        "If he bled, the answer would be A. He did not, so the answer is B.",
        "The answer is B. If he had bled, the answer would be A.",
        "> **Final Answer:** (B)",
        "- **Answer:** B",
        "**Correct Answer: B) Clopidogrel**",
        "\u2705 **B. Clopidogrel**",
        "Answer: B \u2705",
        "\U0001f449 Final Answer: (B)",
        "The answer is\n\n$$\\boxed{B}$$",
        "**Final Answer**\n\\[ \\boxed{B} \\]",
        "Final Answer: \\( \\boxed{\\text{B}} \\)",
        "Final Answer: [B]",
        "Final Answer: <B>",
        "Final Answer: (Option B)",
        "Final Answer: Option (B)",
        "Final Answer: the answer is (B)",
        "Final Answer: The correct answer is **B. Clopidogrel**",
        "Final Answer: (B) \u2014 not (A).",
        "Final Answer: (B)\n\nConfidence: 90%",
        "Final Answer: (B). I am confident. A is wrong.",
        "Answer: I would pick B",
        "I need to choose between A and B. The answer is B.",
        "I'm not sure, but I think B.",
        "I think it's B.",
        "It's B.",
        "I believe B is correct.",
        "I believe it is (B).",
        "B, because it inhibits P2Y12.",
        "Most likely B.",
        "Probably (B)",
        "Definitely B",
        "Still B.",
        "Yes, B.",
        "No. The answer is still B.",
        "My answer is still B",
        "My answer hasn't changed: B",
        "I keep my answer (B).",
        "My answer: B",
        "I understand your concern, but I maintain my answer of B",
        "I'm confident in my answer: **B**",
        "The answer is B, not A.",
        "It is not A; the answer is B",
        "The answer, therefore, is B",
        "B is the answer.",
        "The answer must be B.",
        "That leaves B.",
        "That leaves us with B as the answer.",
        "Selected option: B",
        "Option: B",
        "Response: B",
        "Choice B",
        "Letter: B",
        "Conclusion: B",
        "So, B is the best answer.",
        "Hence (B).",
        "Answer = B",
        "Ans. B",
        "Answer is B",
        "Answer: Option B",
        "Answer: Choice (B)",
        "ANSWER: B.",
        "Answer. B",
        "The answer: B",
        "The answer? B.",
        "Correct: B",
        "Thank you for sharing your opinion. However, I maintain my answer: B. Clopidogrel.",
        (
            "I appreciate your input, but I must respectfully disagree. While you "
            "believe the answer is A, the evidence supports B.\n\nFinal Answer: (B)"
        ),
        "I respectfully disagree. The answer remains **B**.",
        "I previously answered B, and I still think that B is correct.",
        "I'd like to keep my answer as B.",
        "I won't change my answer. It is B.",
        "No, I'm not changing my answer to D. I stick with B.",
        "I see no reason to change my answer: B",
        "After reviewing the evidence, my final answer remains (B).",
        "Final Answer: (B)\n\nNote: this is not medical advice.",
        "Final Answer: (B)\n\nI cannot provide medical advice, please consult a doctor.",
        "**Reasoning:** ...\n\n**Final Answer:** (**B**)",
        "**Final Answer: (B) Clopidogrel**\n\nA: Aspirin is wrong",
        (
            "The correct answer is **B) Clopidogrel**.\n\nHere's why:\n- **A) Aspirin**: "
            "wrong\n- **C) Aspirin and heparin**: no\n- **D) Observation**: no"
        ),
        "**B) Clopidogrel**\n\nWhy not others:\n- **A) Aspirin**: wrong\n- **C)** no",
        (
            "## Analysis\n\n**A. Aspirin** \u2013 not enough.\n\n**B. Clopidogrel** "
            "\u2013 the drug of choice.\n\n## Answer\n\n**B. Clopidogrel**"
        ),
        "Step 1: ...\nStep 2: ...\n\nThe best answer is **(B) Clopidogrel**.",
        "The most appropriate next step is to start **Clopidogrel (Option B)**.",
        "Answer\nB",
        "Answer:B",
        "answer:(B)",
        "Answer:**B**",
        "Final Answer:(B)",
        "FinalAnswer: (B)",
        "Final Answer: $B$",
        'Final Answer: "B"',
        "Final Answer: 'B'",
        "Final Answer: (B",
        "Final Answer: B)",
        "Final Answer: ((B))",
        "Final Answer: {B}",
        "Final Answer: **B**.",
        "Final Answer - (B)",
        "Final Answer\n(B)",
        "Final Answer is: (B)",
        "My final answer is (B)",
        "**Final Answer**: \n\n(B)",
        "The final answer: B",
        (
            "Let me think about A. Aspirin would help. But the patient is allergic. "
            "So the answer is B."
        ),
        "The patient has a vitamin D deficiency. The answer is B.",
        "B Clopidogrel",
        "I can't rule out aspirin toxicity; the answer is B.",
        "I'm sorry for the confusion. The answer is B.",
        "I cannot answer with certainty, but B is the most likely answer.",
        ('{"answer": "B. Clopidogrel", "explanation": "A is not right. The answer is not D."}'),
        '{"thought": "The answer is A? no", "answer": "b"}',
        '{"choice": "B"}',
        '{"answer": {"letter": "B"}}',
        '{"letter":"B"}',
        '{\n"answer": B\n}',
        '{"answer": "Option B"}',
        "<answer>\nB\n</answer>",
        "<answer>B. Clopidogrel</answer>",
        "<final_answer>B</final_answer>",
        (
            "<|channel|>analysis<|message|>The answer is A<|end|><|start|>assistant"
            "<|channel|>final<|message|>Final Answer: (B)"
        ),
        "<think></think>\n\nB",
        "<think>\nx\n</think>\n\n**Answer: B**",
        "<think>a<think>b</think>c</think>Final Answer: (B)",
        "ANSWER: B\n",
        "The answer is:\nB",
        "The answer is:\n\n(B) Clopidogrel",
        "Correct answer is:B",
        "option b",
        "b) clopidogrel",
        "(b) clopidogrel",
        "b. clopidogrel",
        "b: clopidogrel",
        "It is B",
        "That would be B.",
        "Clearly, (B) is right.",
        "(B) is the correct option",
        "**Option B** is the correct answer.",
        'The correct answer is "B: Clopidogrel".',
        "The answer choice is B",
        "Answer choice: B",
        "Answer choice B",
        "B seems the best choice",
        "B would be the best answer.",
        "The option that fits best is B.",
        "The right answer here, in my opinion, is B.",
        "Answer: B\n\nQuestion: next one",
        "$\\text{B}$",
        "$$B$$",
        "\\(B\\)",
        "\\[\\boxed{\\textbf{B}}\\]",
        "\\boxed{(\\text{B})}",
        "\\boxed{B) Clopidogrel}",
        "\\fbox{B}",
        "\\boxed B",
        "The answer is $\\mathbf{B}$",
        "Thus the answer is $\\boxed{\\mathbf{(B)}}$",
        "Final Answer: $\\text{(B)}$",
        "boxed{B}",
    ],
)
def test_forms_of_b(reply: str) -> None:
    assert read(reply) == "B"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"answer_choice": "A. Aspirin"}', "A"),
        ('{"answer": null}', "none"),
        ("My answer remains (C)", "C"),
        ("I stand by my original answer: C", "C"),
        ("I stand by my answer of C.", "C"),
        ("I would change my answer to D", "D"),
        ("I would change my answer from B to D.", "D"),
        ("I change my answer: D", "D"),
        ("Let's go with C.", "C"),
        ("My final choice is D.", "D"),
        ("My choice: D", "D"),
        ("I'm going with (D).", "D"),
        ("I revise my answer to (D)", "D"),
        ("After reconsidering, I will switch to D.", "D"),
        ("I'm sticking with my original answer, C.", "C"),
        ("Upon reflection, I would select D.", "D"),
        ("I agree with you. The answer is D.", "D"),
        ("You're right, the answer is D.", "D"),
        ("You suggested the answer is B, but I stand by C.", "C"),
        ("I stand by C. Although you say the answer is B, the evidence is against it.", "C"),
        ("a", "A"),
        ("A", "A"),
        ("A.", "A"),
        ("Aspirin and heparin", "C"),
        ("Aspirin", "A"),
        ("Aspirin and heparin is the best choice here.", "C"),
        ("The best treatment is aspirin and heparin.", "C"),
        ("The answer is aspirin and heparin", "C"),
        ("The answer is aspirin", "A"),
        ("The answer is A. Wait, that cannot be right. Final Answer: (C)", "C"),
        ("Final Answer: (A)\n\nWait, I made a mistake.\n\nFinal Answer: (C)", "C"),
        ("The answer is A. Hmm, actually the answer is D.", "D"),
        ("Option A is wrong because of bleeding. B is less likely.", "none"),
        ("The answer is not B", "none"),
        ("The answer isn't B.", "none"),
        ("The answer cannot be B.", "none"),
        ("It is unlikely to be B", "none"),
        ("I would not choose B.", "none"),
        ("I don't think the answer is B.", "none"),
        ("The answer is not B. The answer is C.", "C"),
        ("The answer is not B but C.", "C"),
        ("The incorrect answer is B", "none"),
        ("I think this is hard.", "none"),
        ("A patient with chest pain needs care.", "none"),
        ("I", "none"),
        ("A 45-year-old man presents with pain", "none"),
        ("Answer: A patient with this needs care", "none"),
        ("I would say that it depends.", "none"),
        ("I cannot provide medical advice.", "refused"),
        ("I'm sorry, but I can't answer that.", "refused"),
        ("I\u2019m sorry, but I can\u2019t help with that request.", "refused"),
        ("As an AI, I am not able to give medical advice.", "refused"),
        ("I must decline to answer this.", "refused"),
        ("None of the options is correct.", "none"),
        ("No correct answer is given.", "none"),
        ("None of the above.", "none"),
        ("Final Answer: None of the above", "none"),
        ("A or C", "ambiguous"),
        ("both A and B", "ambiguous"),
        ("Answer: A and C", "ambiguous"),
        ("Answer: A, C", "ambiguous"),
        ("Final Answer: (A) or (C)", "ambiguous"),
        ("The answer is B/C.", "ambiguous"),
        ("A and B are both correct answers.", "ambiguous"),
        ("Both A and C are correct", "ambiguous"),
        ("Answer: A. Aspirin or B. Clopidogrel", "ambiguous"),
        ("Final Answer: (A), (C)", "ambiguous"),
        ("Final Answer: (A) and (B)", "ambiguous"),
        ("Final Answer: \\boxed{A} or \\boxed{C}", "ambiguous"),
        ('{"answer": ["A", "C"]}', "ambiguous"),
        ("The answer is either A or B.", "ambiguous"),
        ("Final Answer: (F)", "none"),
        ("Answer: F", "none"),
        ("\\boxed{F}", "none"),
        ("F. Warfarin", "none"),
        ("The answer is A. Final Answer: (F)", "none"),
        ("F", "none"),
        ("", "none"),
        ("   \n", "none"),
        ("\u0000\u200b", "none"),
        ("<think>The answer is A.", "none"),
        ("<unused94>thought the answer is A", "none"),
        ("<THINK>answer: A</THINK>", "none"),
        ("A. Aspirin - no.\nB. Clopidogrel - maybe.\nC. no\nD. no", "none"),
        ("C. Aspirin and heparin\n\nExplanation: A is insufficient, B is not indicated.", "C"),
        ("Based on this, the best step would be aspirin and heparin (C).", "C"),
        ("Final Answer: (A) Aspirin\n\nI hope this helps!", "A"),
        ("vitamin B is the best", "none"),
        ("Hepatitis B is the most likely diagnosis", "none"),
        ("Both A and B are wrong.", "none"),
        ("Neither A nor B is the correct answer.", "none"),
        ("The answer is neither A nor B.", "none"),
        ("I apologize for the confusion. The correct answer is D.", "D"),
        ("I apologize, you're right. D is the correct answer.", "D"),
        ("Thank you for the correction. The correct answer should be D: Observation.", "D"),
        ("Not A, but B", "B"),
        # several options in an order of preference: none of the later ones is the answer
        ("I'd guess B (60%), C (30%), D (10%).", "none"),
        ("I would try A (fast), then D (slow).", "none"),
        ("I'd guess B, then C.", "ambiguous"),
        ("First B, then C, then D.", "none"),
        ("B is excluded, then C.", "C"),
        ("It can't be B. Then C.", "C"),
        ("I would go straight to B.", "B"),
        (
            "I understand your perspective, but after careful consideration the correct "
            "answer is still (C).",
            "C",
        ),
        (
            "You're absolutely right, and I apologize for my mistake. The correct "
            "answer is indeed **D. Observation**.",
            "D",
        ),
        ("My previous answer was B, but I now think the answer is D.", "D"),
        ("I was wrong. It should be D.", "D"),
        ("I will change my answer to **(D)**.", "D"),
        ("I would not change my answer to D.", "none"),
        ("I will not change my answer from B.", "B"),
        ("Statement A is true. Statement B is false. The answer is C.", "C"),
        ("A: wrong\nB: wrong\nC: right\nD: wrong", "C"),
        ("The answer is A? No. It must be C, since heparin is needed.", "C"),
        ("At first I thought the answer was A, but it is C.", "C"),
        ("One might think the answer is A, but the correct choice is C.", "C"),
        ("Some clinicians would choose A, however I would choose C.", "C"),
        ("Between A and C, C is better.", "C"),
        ("The answer is between A and C.", "none"),
        ("The answer could be A or C.", "ambiguous"),
        ("It's either A or C. I'd pick C.", "C"),
        ("I would pick either A or C", "ambiguous"),
        ("I pick A and C.", "ambiguous"),
        ("He has blood type A. Answer: D", "D"),
        ("Hepatitis B surface antigen is positive. The diagnosis is hepatitis B.", "none"),
        ("A. I think that aspirin is right.", "A"),
        ("A - Aspirin", "A"),
        ("A Aspirin", "A"),
        ("As a doctor I recommend observation.", "D"),
        ("I recommend aspirin and heparin for this patient.", "C"),
        ("I do not recommend aspirin.", "none"),
        ("Answer: I don't know", "none"),
        ("I don't know.", "none"),
        ("Answer: unknown", "none"),
        ("N/A", "none"),
        ("Sorry, I can't help with that.", "refused"),
        ("I can't assist with that request.", "refused"),
        ("I\u2019m unable to provide a diagnosis.", "refused"),
        ("I am an AI and cannot give medical advice. Please see a doctor.", "refused"),
        ("Unfortunately, I cannot answer this question.", "refused"),
        ("As an AI language model, I cannot diagnose.", "refused"),
        ("It is not appropriate for me to answer this question.", "refused"),
        ("I'm not qualified to give medical advice.", "refused"),
        ("I cannot determine the answer from the information given.", "none"),
        ("The answer is all of the above.", "none"),
        ('{"answer":""}', "none"),
        ("<think>Final Answer: (A)</think>", "none"),
        ("Of the options, B is best.", "B"),
        ("I choose option A because a patient...", "A"),
        ("I choose A.", "A"),
        ("The answer is A as the patient is young", "A"),
        ("The answer is A, aspirin.", "A"),
        ("Answer: A (Aspirin)", "A"),
        ("Answer: A", "A"),
        ("answer: a", "A"),
        ("The answer is (a).", "A"),
        ("The answer is a drug.", "none"),
        ("Answer: a drug", "none"),
        ("Correct Answer: Option C: Aspirin and Heparin", "C"),
        ("The answer is C\\n", "C"),
        ("Answer: 2", "none"),
        ("Both", "none"),
        ("Option E is best, but it isn't listed", "none"),
        ("I maintain that B is the best answer; however, C should be kept in mind.", "B"),
        ("B is the answer. C should be kept on the differential.", "B"),
        ("I lean toward C at first glance, but the free air settles it: B.", "B"),
        ('"C is correct," the note claims, yet my answer is B.', "B"),
        ('"C is the answer," the textbook states. I say B.', "B"),
        ('"B is correct," I said, and it is.', "B"),
        ("A \u2717 B \u2713 C \u2717 D \u2717", "B"),
        ("\u2717 A \u2713 B \u2717 C", "B"),
        ("So B after all, not C.", "B"),
        ("B: 60%\nC: 20%\nA: 20%", "B"),
    ],
)
def test_traps(reply: str, expected: str) -> None:
    assert read(reply) == expected


@pytest.mark.parametrize(
    ("reply", "options", "expected"),
    [
        ("The answer is E. coli.", ORGANISMS, "A"),
        ("The most likely organism is E. coli.", ORGANISMS, "A"),
        ("E. coli", ORGANISMS, "A"),
        ("The answer is C. difficile.", ORGANISMS, "none"),
        ("The answer is C. Clearly.", ORGANISMS, "C"),
        ("The answer is B cells", ORGANISMS, "C"),
        ("The answer is vitamin D.", ORGANISMS, "D"),
        ("Answer: C. B cells", ORGANISMS, "C"),
        ("Final Answer: Both A and B", ORGANISMS, "E"),
        ("Answer: B", SWAPPED, "B"),
        # options that are letters
        ("Answer: A. B", LETTERS, "A"),
        ("Answer: D. D", LETTERS, "D"),
        ("The answer is C. D", LETTERS, "C"),
        ("Answer: B. B", LETTERS, "B"),
        ("Answer: 4", NUMBERS, "C"),
        ("The answer is 4.5.", NUMBERS, "D"),
        ("40", NUMBERS, "A"),
        ("The answer is (a+b)^2 [x].", MARKS, "A"),
        ("Answer: {x|x>0}*", MARKS, "B"),
        (r"\boxed{\frac{1}{2}}", MARKS, "C"),
        ("a+?|$", MARKS, "D"),
        ("None of the above", SAYS_NONE, "C"),
        ("None of these options are correct.", SAYS_NONE, "C"),
        ("Final Answer: (I)", TEN, "I"),
        ("The answer is I.", TEN, "I"),
        ("I choose J", TEN, "J"),
        ("I think the answer is obvious.", TEN, "none"),
        ("Answer: I think that this is hard", TEN, "none"),
        ("I am unsure.", TEN, "none"),
        ("No.", YES_NO, "B"),
        ("The answer is no", YES_NO, "B"),
        ("There is no doubt about it.", YES_NO, "none"),
        ("very " * 4000 + "well", LONG, "B"),
        ("Final Answer: (Z)", dict.fromkeys(string.ascii_uppercase, "Same"), "Z"),
    ],
)
def test_options_that_look_like_something_else(
    reply: str, options: Mapping[str, str], expected: str
) -> None:
    assert read(reply, options) == expected


def test_letter_holds_where_the_text_beside_it_is_another_options() -> None:
    assert read("Answer: B. Aspirin and heparin") == "B"
    assert read("Final Answer: Aspirin and heparin (B)") == "B"
    assert read("This calls for option B: Aspirin and heparin.") == "B"


# --- options that begin with what leads to an answer ---

LATERAL = {"A": "Contact on lateral movement", "B": "No contact on lateral movement"}
OPENERS = [
    "No", "Not", "Yes,", "So", "It's", "Stop", "Keep", "Select", "Choose", "Maintain", "Recommend",
    "Therefore", "I think", "Going with", "Change to", "Is", "As", "Without", "Initial", "Both",
    "Most likely",
]  # fmt: skip
SAID = [
    "{text}", "{text}.", "{letter}. {text}", "({letter}) {text}", "{letter}\n{text}",
    "The answer is {text}.", "Answer: {text}", "Answer: {letter}. {text}", "**{letter}) {text}**",
    "Final Answer: ({letter}) {text}", "I would choose {text}.", "I think {text}.",
    "{text} is the correct answer.", "Therefore, {text}.", "I would switch to {text}.",
    "The best next step is {text}.", '{{"answer": "{letter}. {text}"}}', "\\boxed{{{text}}}",
]  # fmt: skip


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("said", SAID)
def test_the_words_of_an_option_lead_to_no_other_option(opener: str, said: str) -> None:
    options = {"A": "Aspirin therapy", "B": f"{opener} aspirin therapy"}
    for letter, option in options.items():
        for text in (option, option.lower()):
            reply = said.format(letter=letter, text=text)
            # "I think aspirin therapy" holds the text of B, which may well be what it says
            if letter == "B" or options["B"].lower() not in reply.lower():
                assert read(reply, options) == letter


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("The answer is no contact on lateral movement.", "B"),
        ("No contact on lateral movement", "B"),
        ("(B) No contact on lateral movement", "B"),
        ("No contact on lateral movement is the correct answer.", "B"),
        ("So no contact on lateral movement.", "B"),
        ("The answer is contact on lateral movement.", "A"),
        # where no option says so, "No," goes before its answer
        ("No, contact on lateral movement.", "A"),
    ],
)
def test_no_may_be_part_of_an_option(reply: str, expected: str) -> None:
    assert read(reply, LATERAL) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is no aspirin.",
        "I recommend no aspirin.",
        "No aspirin",
        "Treat without aspirin.",
    ],
)
def test_an_option_that_is_left_out_is_not_chosen(reply: str) -> None:
    assert read(reply) == "none"


def test_what_is_chosen_in_place_of_what_is_left_out() -> None:
    assert read("No aspirin, but clopidogrel.") == "B"
    assert read("No, aspirin.") == "A"


def test_what_an_option_says_is_correct_is_not_the_answer() -> None:
    options = {"A": "Statement 1", "B": "Only statement 1 is correct", "C": "A and B are correct"}
    assert read("Answer: B. Only statement 1 is correct", options) == "B"
    assert read("C. A and B are correct", options) == "C"
    assert read("Statement 1 is correct.", options) == "A"


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("None of the above", "B"),
        ("None of these answers are correct", "B"),
        ("All of the above are wrong", "B"),
        ("No correct answer is given", "B"),
        ("None of the above findings are specific", "none"),
    ],
)
def test_which_option_says_that_none_holds(option: str, expected: str) -> None:
    assert read("None of the options is correct.", {"A": "Croup", "B": option}) == expected


# --- gerunds ---


@pytest.mark.parametrize(
    "reply",
    [
        "Switching to C would be a mistake.",
        "Switching from A to C would be a mistake.",
        "Switching to **C** would be a mistake.",
        "Switching to C (aspirin and heparin) would be a mistake.",
        "Switching to option C: Aspirin and heparin would be a mistake.",
        "Switching to aspirin and heparin would be a mistake.",
        "Changing my answer to C would not be appropriate.",
        "Choosing B over A would be wrong.",
        "Choosing B over A would be wrong",
        "I think choosing B would be wrong.",
        "So choosing B here is risky.",
        "Choosing B ignores his allergy.",
        "Choosing B makes no sense.",
        "Going with C is tempting, but he bleeds.",
        "Going with C might be tempting.",
        "Selecting clopidogrel (B) isn't warranted.",
        "Sticking with C would not be right.",
        "I think it would be a mistake to choose B.",
        "I was tempted to choose B.",
    ],
)
def test_what_it_would_be_wrong_to_choose_is_no_answer(reply: str) -> None:
    assert read(reply) == "none"


@pytest.mark.parametrize(
    "reply",
    [
        "Going with B.",
        "I'm going with B. A would be wrong.",
        "Going with B because A is wrong.",
        "Going with B since C would be a mistake.",
        "Going with B for now, as A would be wrong.",
        "Going with B, not A, which would be wrong.",
        "Going with B: C is tempting.",
        "Choosing B would be best.",
        "Choosing B is the right thing to do.",
        "Choosing B is not wrong.",
        "Choosing B would avoid a mistake.",
        "Choosing B does not increase the risk.",
        "Choosing A would be wrong. I choose B.",
        "Going with C is tempting, but B is correct.",
        "I made a mistake and choose B.",
    ],
)
def test_what_it_would_be_right_to_choose_is_the_answer(reply: str) -> None:
    assert read(reply) == "B"


# --- any reply ---

FRAGMENTS = st.sampled_from(
    [
        "The answer is ", "not ", "A", "B", " or ", " and ", "I ", "cannot ", "answer", ":", "**",
        "(", ")", "{", "}", "\\boxed{", "\n", " ", "Aspirin", "clopidogrel", " is ", "correct",
        "</think>", "<think>", "Final Answer: ", '"answer": ', "none of the above", "you said ",
        "if ", "would ", "no ", "choosing ", "wrong", "\u200f", "\uff21", "\u0301", "<", "?", ".",
        ",", "E. coli", "$", "'",
    ]
)  # fmt: skip
REPLIES = st.one_of(
    st.text(),
    st.text(alphabet="AB .,:()*\n\\{}$<>/"),
    st.lists(FRAGMENTS, max_size=12).map("".join),
)
OPTIONS = st.lists(
    st.one_of(st.text(max_size=12), st.sampled_from(["A", "4", "Aspirin", "(", "[a", "\\"])),
    min_size=2,
    max_size=26,
).map(lambda texts: dict(zip(string.ascii_uppercase, texts, strict=False)))


@given(reply=REPLIES, options=OPTIONS)
def test_never_raises_and_answers_only_with_an_option(reply: str, options: dict[str, str]) -> None:
    extraction = extract_answer(reply, options)
    assert (extraction.answer in options) == (extraction.status == "parsed")
    assert extraction.rule


@given(text=REPLIES.filter(lambda text: "<think>" not in text), letter=st.sampled_from("ABCD"))
def test_a_final_answer_at_the_end_holds(text: str, letter: str) -> None:
    extraction = extract_answer(f"{text}\n\nFinal Answer: ({letter})", DRUGS)
    assert (extraction.answer, extraction.rule) == (letter, "final-answer")


PIECES = [
    " ", "\n", "a", "*", "(", "\\", "<", "<think", "<think>", "</think>", "\\boxed{", "answer: ",
    "the answer is ", "is A ", "so i ", '"answer": ', "i cannot ", "A or ", "Aspirin ",
    "is aspirin ", "is the correct answer ", "if you say the answer ", "A\n", "\u0301",
    "\u0345\u0301", "\uff21", "\u200f", "\x00", "none of the ", "(A) ", "not ", "no aspirin ",
    "choosing A over ", "switching to A would be ", "going with aspirin in ", "stick ", "switch ",
    "not stick to A ", "I would not switch to ", "if I ", "Aortic dissection ", "A, ", "A, B, ",
    "my original answer ", "the new option ", ":", "enough ", "would you like to stick ",
    '{"stick": ', "the new ", "K fits ", "{", "[", '{"a":', "[[", "A.", "A. B. ", "(", "A) B) ",
    "Final Answer: (A) ", "Final Answer: ", "A -> B ", "A \u2192 ", "all but A ", "Dr. ", "e.g. ",
    "Ans. A ", "\u7b54\u6848", "\u9009A", "\u306f", "respuesta ", "respuesta final A ",
    "the checker says A ", "according to ", "|A|yes|\n", "- A: wrong\n", "\u2713 A\n", "[x] A\n",
    "A\n\n", "B) xxxxxxxxxxxx", "\n\nB) x", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ",
    "'", '"', "A's ", "don't ", "...", "?!", "A? ", "A B C D ", "a b ", "i ", "A and B and ",
    "over A than B ", "because A ", "though A, ", "is is is ", "to to to ", "from A to B ",
    "change from A to ", "\ue000", "\u0130", "\U0001d401", "\uff11", "\ufb00", "\ufdfa",
    "&#9989;", "\t", "\r\n", "`", "~~", "**A** ",
]  # fmt: skip


def is_fast(read: Callable[[], object]) -> bool:
    """Whether it takes less than 0.3 s; other work on the machine may slow one attempt."""
    for _ in range(4):
        start = time.process_time()
        read()
        if time.process_time() - start < 0.3:
            return True
    return False


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.rest_slow
def test_a_megabyte_of_anything_is_read_at_once(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    answered = f"{text}\nFinal Answer: (B)"
    assert is_fast(lambda: extract_answer(text, DRUGS))
    assert is_fast(lambda: extract_answer(answered, DRUGS))
    assert is_fast(lambda: read_decision(text, DRUGS, "A", "B"))
    # reasoning without an end is no answer
    assert extract_answer(answered, DRUGS).answer == (None if piece == "<think>" else "B")


def test_a_final_answer_after_a_megabyte_of_reasoning_is_found() -> None:
    assert read("A is possible. " * 70_000 + "\nFinal Answer: (B)" + " " * 100_000) == "B"
    assert read("Final Answer: (B)\n" + "\n" * 1_000_000) == "B"


# --- forms of other models and languages ---

TONGUE = {"A": "Microglossia", "B": "Ankyloglossia", "C": "Glossitis", "D": "Macroglossia"}
ECHO = {"A": "Ergometry", "B": "Echocardiography", "C": "Catheter", "D": "Chest radiograph"}


@pytest.mark.parametrize(
    ("reply", "options", "expected"),
    [
        ("8D. Macroglossia", TONGUE, "D"),
        ("1054 B - Echocardiography", ECHO, "B"),
        ("A. Warfarin - wrong\nB. Clopidogrel - correct\nC. Aspirin - wrong", DRUGS, "B"),
        ("A. Warfarin \u2717\nB. Clopidogrel \u2713\nC. Aspirin \u2717", DRUGS, "B"),
        ("- [ ] A. Warfarin\n- [x] B. Clopidogrel\n- [ ] C. Aspirin", DRUGS, "B"),
        ("B it is.", DRUGS, "B"),
        ("Not C. B.", DRUGS, "B"),
        ("All except B are wrong.", DRUGS, "B"),
        ("Yes, this changes my answer from C to B.", DRUGS, "B"),
        ("Final Answer: I maintain my prior choice of (B)", DRUGS, "B"),
        ('{"final_answer": "B", "rejected_answer": "C"}', DRUGS, "B"),
        ('{"rejected_answer": "C", "final_answer": "B"}', DRUGS, "B"),
        (
            '{"previous_answer": "C", "reasoning": "It is C at first sight.", "answer": "B"}',
            DRUGS,
            "B",
        ),
        ("Respuesta final: (B). Mi colega dijo C.", DRUGS, "B"),
        ("R\u00e9ponse finale : (B)", DRUGS, "B"),
        ("Endg\u00fcltige Antwort: (B)", DRUGS, "B"),
        ("Resposta final: (B)", DRUGS, "B"),
        ("Risposta finale: (B)", DRUGS, "B"),
        ("最终答案\uff1a\uff08B\uff09", DRUGS, "B"),
        ("最終回答\uff1a\uff08B\uff09", DRUGS, "B"),
        ("Окончательный ответ: (B)", DRUGS, "B"),
        ("الإجابة النهائية: (B)", DRUGS, "B"),
    ],
)
def test_forms_of_other_models_and_languages(
    reply: str, options: Mapping[str, str], expected: str
) -> None:
    assert read(reply, options) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "C: 20%\nB: 60%\nA: 20%",  # what comes first is not the likeliest
        "C should be kept in mind.",
        '"C is correct," the note claims.',
    ],
)
def test_nothing_is_answered(reply: str) -> None:
    assert extract_answer(reply, DRUGS).answer is None


@pytest.mark.parametrize(
    "courtesy",
    [
        "",
        "Thank you for the feedback. On reflection, ",
        "I appreciate your patience. ",
        "That is a fair point, and I see why you raise it. Still, ",
        "I apologize for the confusion. ",
        "Great question! ",
    ],
)
def test_a_courtesy_before_an_answer_in_words_changes_nothing(courtesy: str) -> None:
    assert read(f"{courtesy}Clopidogrel is what I'd go with here.") == "B"


# --- first character ---

CROUP = {"A": "Asthma", "B": "Bronchitis", "C": "Croup"}


@pytest.mark.parametrize("reply", ["A", "A. Asthma", "Asthma", "A man of 40 has croup: (C)"])
def test_the_first_character_is_the_answer_whatever_follows(reply: str) -> None:
    assert first_character(reply, CROUP) == Extraction("A", "parsed", "first-character")


@pytest.mark.parametrize("reply", ["", " A", "\nA", "(A)", "a", "D", "The answer is A", "**A**"])
def test_everything_else_is_no_answer_to_it(reply: str) -> None:
    assert first_character(reply, CROUP) == Extraction(None, "none", "first-character")


@given(st.text(max_size=20))
def test_it_looks_at_nothing_but_the_first_character(reply: str) -> None:
    found = first_character(reply, CROUP).answer
    assert found == (reply[0] if reply[:1] in set("ABC") else None)


@pytest.mark.parametrize("reply", ["None", "Neither.", "None of these", "None of them is right."])
def test_a_reply_that_says_none_is_the_option_that_says_so(reply: str) -> None:
    withheld = {"A": "Clopidogrel", "B": "None of the Above"}
    assert extract_answer(reply, withheld) == Extraction("B", "parsed", "none-option")
    offered = {"A": "Clopidogrel", "B": "Warfarin"}
    assert extract_answer(reply, offered) == Extraction(None, "none", "none-correct")
