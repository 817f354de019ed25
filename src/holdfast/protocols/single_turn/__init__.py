"""Single-turn baselines: the question itself is tampered with (MedQA-Followup, section 4)."""
