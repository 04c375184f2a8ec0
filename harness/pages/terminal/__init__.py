"""The output in the terminal: the run in progress (`live`), and its result (`last_screen`).

Both only show values that they receive; they read no clock of the run and touch no cluster. `rich` is loaded
when a live view is opened and not before, so that `--help` and `--json` do not pay for it.
"""
