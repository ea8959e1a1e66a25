"""Servers that a run starts for its models: started, waited for, watched and stopped.

In: models that name a server, and a folder for what servers write. Out: servers that are ready for as long as
a block lasts. `keeper` is a program of its own, between asyncbench and a server.
Each module imports only from lines above its own:

    keeper
    running
"""

from asyncbench.servers.running import StartedServer as StartedServer, running_servers as running_servers
