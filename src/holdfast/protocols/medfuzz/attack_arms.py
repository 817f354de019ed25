"""Arms of MedFuzz, as named in the turns table."""

ATTACK = "attack"
"""Answers to modified questions."""

ATTACKER = "attacker"
"""Replies of the attacker, with status ``parsed`` if valid; also the name of its role."""

INERT, REASK = "inert", "reask"
"""Controls of attempts: as many words added without relevance, and the unchanged question."""

AGAIN, AGAIN_PLAIN, AGAIN_INERT = "again", "again-plain", "again-inert"
"""Repetitions of a successful attack and of its original, and inert rewrites in its place."""

REWRITES = 20
"""Number of inert rewrites in place of a successful attack, for a p-value below 0.05."""

MOST_AGAIN = 3
"""Maximum number of repetitions of an inert rewrite, as long as the answer is wrong."""

REWRITTEN = (INERT, AGAIN_INERT)
"""Arms of answers to inert rewrites."""

ORIGINAL, ATTACKED_ARM, CONTROL = "original", "attacked", "control"
"""Direct answers of a permutation test, by the text whose p(correct) they estimate."""

CONTROL_WRITER = "control-writer"
"""Replies of the attacker that write the controls of a permutation test."""

UNATTACKED_ARM, REPLAYED_ARM = "unattacked", "replayed"
"""First answers of another model in a replay, and its answers to the attacks."""

REFUSALS = 2
"""Number of refusals after which an attacker is not asked again for an attempt."""
