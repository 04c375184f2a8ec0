"""Clients of a store.

| file | what |
|---|---|
| operations/ | what a workload asks, as steps of a transaction, and what came of it |
| client.py | what turns operations into requests of a store, and its answers into outcomes |
| wire.py | how requests become bytes, for a store whose messages the harness carries |
| reply.py | what became of a message |
| optimistic.py, flat_keys.py | for stores that only compare and write, or have one flat row of keys |
"""
