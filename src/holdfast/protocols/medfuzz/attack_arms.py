"""Arms of MedFuzz, by the names of the turns table."""

ATTACK = "attack"
"""The answers to modified questions."""

ATTACKER = "attacker"
"""The attacker's own replies; valid ones have the status ``parsed``. The name of its role, too."""

INERT, REASK = "inert", "reask"
"""Controls of attempts: as many words without bearing added, and the question as it is."""

AGAIN, AGAIN_PLAIN, AGAIN_INERT = "again", "again-plain", "again-inert"
"""A successful attack asked again, its original as often, and inert rewrites in its place."""

REWRITES = 20
"""Inert rewrites in place of a successful attack: an attack that none of them equals is less likely
than one in twenty to be one of them."""

MOST_AGAIN = 3
"""How often an inert rewrite is asked again, as long as it is wrong."""

REWRITTEN = (INERT, AGAIN_INERT)
"""Answers to inert rewrites."""

ORIGINAL, ATTACKED_ARM, CONTROL = "original", "attacked", "control"
"""Of a permutation test: direct answers to the text whose p(correct) is estimated."""

CONTROL_WRITER = "control-writer"
"""Of a permutation test: the attacker's replies that write a control."""

UNATTACKED_ARM, REPLAYED_ARM = "unattacked", "replayed"
"""Of a replay: the first answer of another model, and that to an attack found elsewhere."""

REFUSALS = 2
"""How often an attacker may refuse an attempt before it is asked for no more."""
