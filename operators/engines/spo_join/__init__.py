"""spo_join: SPO-Join: mutable part, permutation, PO-Join elements.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
