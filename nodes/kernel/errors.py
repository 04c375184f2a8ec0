"""What a node may raise.

    StartRefused        what the disk holds cannot be trusted: refusing is right, silent wrong data is not

An AssertionError (or anything else) out of `step` means that the node itself is broken; its host ends it.
"""


class StartRefused(Exception):
    """Raised before a node serves anybody; the message is one sentence that says what is wrong and where."""
