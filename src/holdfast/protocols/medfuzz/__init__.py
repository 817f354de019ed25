"""MedFuzz: an attacker rewrites the question until the answer turns (Ness et al., 2024)."""
