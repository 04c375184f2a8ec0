"""`qsync serve`: results/ in a browser. Nothing under results/ is written, and no file outside of it is read.

| file | what |
|---|---|
| index.py | the runs of results/, kept in memory by the times of their folders |
| lines.py | the lines of a growing record: by number, and only the new ones |
| under_way.py | a run that goes on, from what its record has so far |
| side_by_side.py | two runs, line by line |
| tables.py | the first rows of the tables that `qsync analyze` wrote |
| sheets.py, campaign_sheets.py | values → pages |
| app.py | addresses → pages and files; which requests are refused |
"""
