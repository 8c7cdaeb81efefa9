"""on_ray: what watches know, among the metrics of Ray itself; and Ray Data in and out.

In: looks at a topology; datasets. Out: metrics of Ray; rows in an input, and datasets of results. Imports watching.
"""
