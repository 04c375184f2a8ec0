"""Errors that a node may raise.

    StartRefused        what the disk holds cannot be trusted, or the peers are of a kind with which the node cannot be:
                        refusing is right, silent wrong data is not

An AssertionError (or anything else) out of `step` means that the node itself is broken; its host ends it.
"""


class StartRefused(Exception):
    """Raised before a node serves anybody, or when its peers tell what they are; the message is one sentence that says
    what is wrong and where. The node's host ends it, and prints the message as one line."""
