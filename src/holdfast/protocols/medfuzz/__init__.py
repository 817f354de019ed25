"""MedFuzz: an attacker rewrites the question until the answer flips (Ness et al., 2024)."""
