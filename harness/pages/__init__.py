"""The output for people: the page of a run, other files about one, and the terminal.

`write(run_folder)` writes `report.html` there and returns its path: one offline HTML file. It reads nothing else,
fetches nothing, and works for any half-written folder: the page names missing and torn files.

material        the content of the folder, in bounded memory; `json_door` makes a value of the wanted type of any JSON
node_logs       the part of the nodes' logs that matters
fault_bands     faults as stretches of time
node_states     the state of each node at each moment
operation_rows, operation_words   the bars of a witness, and their labels
witness_timeline, load_chart, cause_and_effect   drawings over time (`time_lanes`, over `svg`)
cycle_drawing, space_time, queues, queue_lanes, queue_boxes   other drawings: cycles, messages, queues of nodes
first_screen    the verdict, the run, the reasons
tables, covered, used, cut_table, owner_changes, known_finds   tables of the page
run_columns, kept_operations, process_rows, packing, whole_timeline   the data of the canvas that timeline.js draws
orders          the longest orders of a violation, and the values its reads could have returned
witness_list    a witness for narrow screens
page            all of it put together with the templates, the style sheets and the scripts
terminal/       the run in progress, and its last screen
file_page, graph, shiviz   of one history: its page, the circle of an anomaly, its messages for ShiViz
tables_page     tables over many runs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkers.on_use import on_use

if TYPE_CHECKING:
    from harness.pages.page import html, write

__getattr__ = on_use(__name__, dict.fromkeys(("html", "write"), "harness.pages.page"))

__all__ = ["html", "write"]
