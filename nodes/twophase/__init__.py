"""The reference two-phase store: transactions over partitions with backups, and cuts that are consistent without a
coordinator (Lai and Yang 1987, as Apache Ignite has mapped the algorithm to its transactions).

A server holds partitions and a log. A client node holds nothing: it only coordinates transactions. Every node learns in
the same order who is a member, which owners of a partition are in sync, and which cuts run (`discovery.py`).
"""
