"""security: tokens and rights, certificates, where a process may listen.

In: hosts, and the user's own certificates. Out: what ports show and check. Imports graph and handle.
"""
