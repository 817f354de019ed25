"""Single-turn baselines: the question itself is manipulated (MedQA-Followup, section 4)."""
