"""A disk under a node, made from outside: a FUSE file system of ours over the node's own folder.

For stores that are not ours, which write through no disk layer that could be told what goes wrong; and for nodes of
ours (`--disk mounted`), to see what lies below theirs. Nothing but /dev/fuse and root is needed: the kernel's protocol
is spoken here, without a library.

| file | what |
|---|---|
| wire.py | what the kernel asks and is answered, as bytes |
| undo.py | what was written and not synced: how it is taken back, or in part, when the power goes |
| volume.py | the files: passed through to the folder below, with a line of `undo` for each change |
| server.py | one process a node: mounts, answers the kernel, takes orders of the harness on stdin |
| disks.py | the harness's end: starts them, and is their `harness.cluster.storage.Storage` |
| mounts.py | whose a mount is, what dead harnesses left, whether this machine can do it |

The mount covers the folder of the node itself, so paths stay what they are, and when it is gone the files lie where
they always do. A kill of the node touches none of this. When the harness dies the process sees its stdin end, unmounts
and ends; a mount whose process was killed too is removed by the next run or by `qsync doctor --clean`.

What a power loss keeps: what was synced, whatever has been there for longer than a second (as an operating system
writes back what nobody synced), and of the rest what chance leaves: nothing, a beginning, or some sectors of it and
zeros where others would be. Names are kept in the order in which they were made, changed and removed, up to some point;
a sync of any file makes all of those before it last, as the journals of ext4 and XFS do. With `strict`, only a sync of
the folder does, which is all that POSIX says.
"""
