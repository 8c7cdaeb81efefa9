"""pan_join: PanJoin: a manager deals subwindows to workers.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
