"""foreground: runs a topology in this process, from files to files, while somebody looks on.

In: tables, and what is to be launched. Out: results on the terminal, in a pipe or in a file; notes and progress on
standard error. Imports files.
"""
