"""PySpark's only home: from the runs under results/ to curated tables, and checks spread over workers.

| module | what it holds |
|---|---|
| `java`, `session` | which Java there is; one quiet Spark session |

Nothing here is imported before a verb needs it: `qsync run` does not pay for Spark.
"""
