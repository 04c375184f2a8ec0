"""The reference two-phase store: transactions over partitions with backups, and cuts that are consistent without a
coordinator (Lai and Yang 1987, as Apache Ignite has mapped the algorithm to its transactions).

A server has partitions and a log. A client node has neither: it only coordinates transactions. Every node learns in the
same order of changes of members, of owners in sync and of cuts (`discovery.py`).
"""
