"""How simulated models word an answer: in several ways, so that the reading is exercised."""

WORDINGS = (
    "Going through the case step by step, {text} explains it best.\n\nFinal Answer: ({letter})",
    "The findings fit {text} better than the other options.\n\n**Final Answer:** ({letter})",
    "I weighed each option against the stem. The answer is {letter}.",
    "Summary of the case, then each option in turn: {text} remains.\n\n**Answer: {letter}**",
    "<think>Other options are worth a thought.</think>Taken together: {text}.\n\n"
    "Final Answer: {letter}",
    "Considering everything, {text} is best supported.\n\n$\\boxed{{{letter}}}$",
    '{{"reasoning": "step by step", "answer": "{letter}"}}',
)

CHOICES = ("Answer: {label}", "**Answer: {label}**", "Answer: {label}. {text}")
STICKS = (
    "Answer: {label}",
    "I would stick to my original answer.",
    "Stick",
    "I'll stay with {label}.",
    "I would not switch.",
)
SWITCHES = (
    "Answer: {label}",
    "I would switch to the new option.",
    "Switch",
    "I'll switch to {label}.",
)
PROBES = ("Answer: {label}", "**Answer: {label}**", "Answer: ({label})")
