"""yaml_form: topologies described in YAML, in the manner of Storm's Flux.

In: the text of a file. Out: a topology or a join, with the files that its inputs read. Imports files, and the public
names of topology and operators.
"""
