"""Errors that a node may raise.

    StartRefused        the data on disk cannot be trusted, or the disk takes no more, or the peers are of a kind that
                        the node cannot work with: refusing is right, silent wrong data is not
    StartAgain          this life of the node is over, and its data are good

An AssertionError (or anything else) out of `step` means that the node itself is broken; its host ends it.
"""


class StartRefused(Exception):
    """Raised when a node reads its files, when its peers report their kind, or when its disk has failed. The message
    names the problem and its place in one sentence. The node's host ends it, and prints the message as one line."""


class StartAgain(Exception):
    """Raised by a node when its peers go on without this life of it: its memory no longer counts.

    Its host starts it again at once from its files, as a service manager would. The message is one sentence.
    """
