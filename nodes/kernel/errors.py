"""Errors that a node may raise.

    StartRefused        what the disk holds cannot be trusted, or the peers are of a kind with which the node cannot be:
                        refusing is right, silent wrong data is not
    StartAgain          this life of the node is over, and its data are good

An AssertionError (or anything else) out of `step` means that the node itself is broken; its host ends it.
"""


class StartRefused(Exception):
    """Raised before a node serves anybody, or when its peers tell what they are; the message is one sentence that says
    what is wrong and where. The node's host ends it, and prints the message as one line."""


class StartAgain(Exception):
    """Raised by a node whose peers go on without this life of it: nothing that it has in memory counts any more.

    Its host starts it again at once from its files, as a service manager would. The message is one sentence.
    """
