"""spo_join: SPO-Join: mutable part, permutation, PO-Join elements.

For comparison only: decomposed_plan, predicate_element, logical_and_element, hash_intersection, index_segment and
state_cache.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
