"""A disk under a node, made from outside: a FUSE file system of ours over the node's own folder.

For external stores, because their disk layer takes no orders; and for nodes of ours (`--disk mounted`), to test
the layers below their own disk layer. Only /dev/fuse and root are needed: this package speaks the kernel's protocol
without a library.

| file | what |
|---|---|
| wire.py | the kernel's requests and our answers, as bytes |
| undo.py | writes that were not synced: how they are taken back, or in part, when the power goes |
| volume.py | the files: passed through to the folder below, with a line of `undo` for each change |
| server.py | one process a node: mounts, answers the kernel, takes orders of the harness on stdin |
| disks.py | the harness's end: starts them, and is their `harness.faults.hands.Storage` |
| mounts.py | which harness made a mount, which mounts dead harnesses left, whether this machine can do it |

The mount covers the folder of the node itself, so paths stay what they are, and when it is gone the files lie where
they always do. A kill of the node touches none of this. When the harness dies, the process reads the end of its stdin,
unmounts and exits. If the process was killed too, the next run or `qsync doctor --clean` removes its mount.

A power loss keeps all that was synced, and all that has been there for longer than a second (as an operating system
writes back unsynced data by itself). Of the rest chance decides: nothing stays, or a beginning, or some sectors of it
with zeros in place of the missing ones. Names are kept in the order in which they were made, changed and removed, up
to some point; a sync of any file makes all of those before it last, as the journals of ext4 and XFS do. With `strict`,
only a sync of the folder does, which is all that POSIX says.
"""
