"""Reads histories that other tools have written, and writes ours for other tools.

`read(path)` finds out by its content what a file is and gives a `History`, or one `HistoryError` that says what
was expected:

| file | read by |
|---|---|
| history.jsonl, history.parquet of this project | `history.jsonl`, `history.parquet` |
| Jepsen's and Maelstrom's history.edn, Knossos' and Elle's EDN | `edn`, `operation_maps` |
| Porcupine's key-value files (an EDN map a line, with :key) | the same |
| elle-cli's JSON (an array, or an object a line) | `json_maps`, `operation_maps` |
| a report of etcd's robustness tests (a folder), its operations.json and watch.json | `folders`, `porcupine_json` |
| text of Plume, PolySI, AWDIT, dbcop | `isolation_text`, `sessions` |
| dbcop's JSON and history.bincode | `dbcop` |
| Cobra's logs (a folder) | `folders`, `cobra` |
| Porcupine's operations in JSON | `porcupine_json` |
| Jepsen's jepsen.log and history.txt | `jepsen_text` |
| Jepsen's test.jepsen and test.fressian | `jepsen_store`, `fressian`, `fressian_tags` |

`jepsen_edn.write(history)` gives the text that Knossos and Elle read.
"""

from checkers.history.foreign.folders import reader_of
from checkers.history.foreign.recognized import beginning, given, parse, read

__all__ = ["beginning", "given", "parse", "read", "reader_of"]
