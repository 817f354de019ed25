"""MedQA-Followup: a question, the model's answer, and challenges to it (Manczak et al., 2025)."""
