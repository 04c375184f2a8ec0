"""One run, from its plan to its verdict.

| file | what |
|---|---|
| draw.py | plan → its faults and operations, drawn from its seed |
| assemble.py | the names in a plan → system, workload and cluster, or why they do not fit |
| execute.py | a folder and a clock for the conductor: asyncio's, or the simulator's |
| conductor.py | one run: start, load, settle, final reads, stop |
| nemesis.py | begins and heals its faults; present.py has the names of the plan, as things are now |
| monitor.py | asks the nodes for their state; failover.py promotes nodes from outside |
| administration/ | members, options, restarts and upgrades, which an operator changes |
| machine.py | what this machine cannot do: left out, or refused |
| watch.py, compiling.py | beside a run: judges finished keys; compiles what the verdict needs |
| second_clusters.py | behind a run: clusters that begin from its cuts |
| recorder.py, course.py | what all of these write down and show; whether they go on |
| finish.py | the record → verdict, page and exit code |
"""
