"""command_line: the program `interlace`.

In: arguments, files and standard input. Out: rows on the terminal, in pipes and in files, and an exit code. Imports
files, yaml_form, foreground, watching, on_ray and web; what takes long to import is imported by the command that needs
it.
"""
