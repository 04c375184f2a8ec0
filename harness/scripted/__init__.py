"""A peer that follows a script: a member of a real cluster whose every acknowledgement is ours to say.

Faults drawn at random find *that* something is wrong; with a peer that acknowledges, and passes rows on, when it is
told to, the same is seen every time, within a second or two, and with nothing left to chance.

| file | what |
|---|---|
| replica.py | joins a master, follows it, acknowledges or holds |
| source.py | is followed: passes on what the replica has heard, or only a part of it |
"""
