"""What a person sees in the terminal: the run while it goes on (`live`), and what came of it (`last_screen`).

Both only show values that they are handed; they read no clock of the run and touch no cluster. `rich` is loaded
when a live view is opened and not before, so that `--help` and `--json` do not pay for it.
"""
