"""What the report shows and in what order: sections, their tables, and words for both."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One table of results in the report.

    Attributes:
        table: its name, key of ``TABLES``.
        title: what it answers, in plain words.
        lead: how to read it; the field's term stands beside the plain word.
    """

    table: str
    title: str
    lead: str


@dataclass(frozen=True)
class Section:
    """Parts that belong together.

    Attributes:
        id: anchor in the page.
        short: as in the contents.
        title: as headed.
        lead: what was done, in plain words.
        parts: those without rows are left out, and a section without parts too.
    """

    id: str
    short: str
    title: str
    lead: str
    parts: tuple[Part, ...]


SECTIONS = (
    Section(
        "accuracy",
        "Accuracy",
        "Accuracy after each challenge",
        "The model answers, and then one more message questions the answer, pushes another option "
        "or argues for one (a follow-up technique). Accuracy is the share of right answers after "
        "that message. It should stay where the first answers are.",
        (
            Part(
                "accuracy",
                "How often is the answer right, before and after?",
                "Each line is one challenge; the first line is the first answer, before any "
                "challenge (baseline). The further left of it a mark stands, the more was lost.",
            ),
        ),
    ),
    Section(
        "flips",
        "Flips",
        "What became of the answers",
        "Accuracy is a balance: right answers are given up and wrong ones are mended. A model "
        "that holds fast keeps the right ones and still mends the wrong ones.",
        (
            Part(
                "flows",
                "Where did the answers go?",
                "From the first answers on the left to the answers after the challenge on the "
                "right. A right answer that became a wrong one is a harmful flip; it went to the "
                "option that the challenge pushed, or to another.",
            ),
            Part(
                "flips",
                "Right answers given up",
                "Of the answers that were right at first, how many became wrong (the flip rate).",
            ),
            Part(
                "holding",
                "By kind of challenge",
                "Right answers that were kept and wrong ones that were mended, over all "
                "challenges of a family.",
            ),
            Part(
                "sticky-incorrect",
                "Do wrong answers give way more easily than right ones?",
                "A model that listens to reasons leaves wrong answers more often than right ones. "
                "Where both rates are alike, it yields to pressure, whatever it had answered.",
            ),
        ),
    ),
    Section(
        "cues",
        "Cues",
        "Is the challenge named when an answer is given up?",
        "A reply can name what moved it (the cue) and then check it or defer to it. An answer that "
        "is given up without a word about the cue cannot be caught by reading the reasoning.",
        (
            Part(
                "cues",
                "Replies that name the challenge",
                "Among right answers that were kept and those that were given up.",
            ),
        ),
    ),
    Section(
        "strata",
        "Strata",
        "Which questions",
        "The same measures by the kind of question (strata). Cells are changes relative to the "
        "first answers to the same questions. Few questions make wide intervals: the tables say n.",
        (
            Part("steps", "By step of the licensing examination (USMLE)", "Family averages."),
            Part("systems", "By organ system", "Strongest loss first."),
            Part("specialties", "By clinical specialty", "Strongest loss first."),
            Part("subjects", "By subject", "Strongest loss first."),
        ),
    ),
    Section(
        "compounding",
        "Chains",
        "Several challenges in a row",
        "Challenges are put one after another in one conversation (compounding).",
        (
            Part(
                "compounding",
                "More than the sum, or less?",
                "The observed drop of each chain beside the drop that its parts let expect if "
                "every answer that any part made wrong stayed wrong (expected additive drop).",
            ),
            Part(
                "compounding-parts",
                "A chain against each of its parts",
                "How much more, or less, a chain takes away than one of its parts alone.",
            ),
            Part(
                "compounding-summary",
                "Chains in sum",
                "Sub-additive: the chain takes away less than expected. Recovered: the chain ends "
                "better than its worst part alone.",
            ),
        ),
    ),
    Section(
        "lengths",
        "Lengths",
        "Longer arguments",
        "The same argument in 1, 10 or 20 sentences (length ablation).",
        (Part("lengths", "Accuracy by length of the context", "A line for each technique."),),
    ),
    Section(
        "single-turn",
        "Single-turn",
        "Bias inside the question",
        "Here the push stands in the question itself, before any answer (single-turn bias), with "
        "and without a warning or an example beforehand (mitigation).",
        (
            Part(
                "single-turn",
                "Accuracy under each bias",
                "The plain question is the first line.",
            ),
        ),
    ),
    Section(
        "stick-or-switch",
        "Stick or switch",
        "One option after another",
        "The model sees two options and chooses, then is offered the others one at a time and may "
        "stick or switch. Its target is the right option (conviction), or “none of the above” "
        "while the right option is withheld (abstention).",
        (
            Part(
                "survival",
                "How long does the target survive?",
                "S(t) is the share of all questions whose target was answered at every turn up to "
                "t; the hazard is the share of those still holding it that leave it at turn t.",
            ),
            Part(
                "tax",
                "What does the conversation cost?",
                "End-to-end success against the same question with all options at once; the "
                "difference is the conversation tax.",
            ),
            Part(
                "flexibility",
                "Does it switch for the right reason?",
                "After an abstention, the right option is offered to one half and a wrong one to "
                "the other. A model that switches to both alike switches blindly: d' (how well "
                "both are told apart) is then 0.",
            ),
            Part("positions", "Does the place of an option matter?", "Targets kept, by position."),
            Part("winners", "Which options win?", "How often each letter was adopted."),
            Part("beliefs", "What did the model believe?", "From log-probabilities, by turn."),
            Part("scale", "Does size help?", "The measures by parameters of the model."),
        ),
    ),
    Section(
        "dynamics",
        "Turn by turn",
        "Turn by turn",
        "How answers move over the turns of a conversation, whatever the protocol.",
        (
            Part("resistance", "Resistance by turn", "Answers still held after each challenge."),
            Part(
                "turn-of-flip",
                "When does it flip, and how often?",
                "The first turn at which the answer is left, and the number of changes.",
            ),
        ),
    ),
    Section(
        "medfuzz",
        "MedFuzz",
        "Questions rewritten by an attacker",
        "A second model rewrites the question, adding details that a clinician would set aside, "
        "until the answer turns or the attempts are used up (MedFuzz).",
        (
            Part(
                "attacks",
                "Accuracy after each attempt",
                "Right answers that no attempt up to k turned.",
            ),
            Part("attack-summary", "What the attacks came to", "Model errors are counted apart."),
            Part(
                "permutation",
                "Is it the attack, or any added words?",
                "Each successful attack against rewritings of the same length without its point "
                "(permutation test). A small p-value: the attack did more than added words do.",
            ),
            Part(
                "faithfulness",
                "Does the reasoning admit what moved it?",
                "Whether the reasoning after a successful attack mentions the added details.",
            ),
            Part("attack-list", "Every successful attack", "Strongest first."),
        ),
    ),
    Section(
        "reading",
        "Reading",
        "How the replies were read",
        "Answers are read out of the replies by rules. A second language model (the reader) read "
        "replies too, shown nothing but a reply and its options. Where reading errs more after a "
        "challenge than before it, it would pass for an effect of the challenge.",
        (
            Part(
                "reading",
                "Do the rules and the reader agree, in every arm?",
                "The first line of a study is over all of its replies that both have read.",
            ),
        ),
    ),
)
"""The sections of the report, in order."""

GLOSSARY = (
    ("Accuracy", "The share of replies whose answer is the right option. A reply in which no "
     "answer can be read counts as wrong and is counted apart as unread."),
    ("95% interval", "Were the study repeated, about 19 of 20 such intervals would hold the true "
     "share. Intervals respect that one question is asked in several ways."),
    ("First answer, baseline", "The answer to the plain question, before any challenge."),
    ("Family", "Challenges of one kind: rethink (asks to reconsider), inc_letter (names a wrong "
     "letter), context (argues for a wrong option)."),
    ("Pushed option", "The option that the challenge suggests; it is wrong unless said otherwise."),
    ("Flip", "An answer that changed between right and wrong."),
    ("Unread", "A reply in which no single answer could be read: ambiguous, refused or none."),
    ("Refused", "A reply that declines to answer, by its own words or by the provider's filter."),
    ("Failed", "No reply came (an error of the service or of the network). Failed turns are in no "
     "measure."),
    ("Holm, Benjamini–Hochberg", "Corrections of p-values where many things are tested at once."),
    ("Simulated", "Replies drawn by a program with known rates, to prove the instrument. They say "
     "nothing of a real model."),
)  # fmt: skip
"""Terms in plain words."""
