"""edges: messages from task to task between the processes of a topology, over encrypted sockets.

In: messages of tasks here. Out: the same in the inboxes of tasks elsewhere. Imports graph, tasks, handle and security.
"""
