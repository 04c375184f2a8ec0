"""PySpark's only home: from the runs under results/ to curated tables, and checks spread over workers.

| module | content |
|---|---|
| `java`, `session` | the Java for Spark; one quiet Spark session |
| `analyze`, `report`, `follow` | one call of `qsync analyze`, and its result; the stream that keeps the tables fresh |
| `schemas` | every table, written down |
| `operations`, `latency`, `documents`, `node_files` | DataFrame → DataFrame: the curated tables |
| `aggregates` | DataFrame → DataFrame: tables over many runs |
| `curate` | all of these as one plan |
| `workers` | files that only our own code can read |
| `tables`, `remote_tables` | the folder, or an address: a batch gets in as a whole or not at all |
| `stock` | the content of tables, by their state or by their files alone |
| `places`, `sources`, `usable` | folders and addresses; where runs come from; which of them are whole |
| `overview`, `progress` | page, screen and progress bar |
| `checking` | checks of runs over workers: checks, keys, segments, whole runs |
| `spread` | registers of one big history.parquet over workers |

Nothing here is imported before a verb needs it: `qsync run` does not pay for Spark.
"""
