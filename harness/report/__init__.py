"""The page that people open when a run has ended: one offline HTML file, made of what lies in the run's folder.

`write(run_folder)` writes `report.html` there and returns its path. It reads nothing else, fetches nothing, and
opens on any half-written folder: what is missing or torn is said on the page.

material        what the folder holds, in bounded memory
node_logs       the part of the nodes' logs that matters
fault_bands     faults as stretches of time
node_states     what each node was at each moment
operation_rows, operation_words   the bars of a witness, and what is written beside them
witness_timeline, load_chart      the two drawings, over `svg`
first_screen    verdict, what ran, why
tables          checks, faults, nodes, operations
page            all of it put together with page.html, page.css and page.js
"""

from harness.report.page import html, write

__all__ = ["html", "write"]
