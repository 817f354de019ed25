"""MedQA-Followup (Manczak et al., 2025)."""
