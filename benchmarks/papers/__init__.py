"""Figures of the five papers, measured here: `python -m benchmarks papers`.

In: the registry, one module per paper (`registry`). Each figure measures points; a full run stores them under
`results/`, one JSON file per figure, and skips figures that have one. Out: the figures' part of docs/papers.md and its
plots (`page`).
"""
