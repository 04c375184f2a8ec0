"""From what came back (or did not) to how the operation ended, for answers that are the same in every workload."""

from __future__ import annotations

from harness.clients.completion import Completion
from harness.clients.errors import meaning_of
from harness.protocols import Lost, NotSent, Replied, Reply
from nodes.iproto.messages import Refusal, Response


def refusal_completion(response: Response, *, is_read: bool) -> Completion:
    """An error of the store: by its code."""
    assert isinstance(response, Refusal), response
    meaning, name = meaning_of(response.code)
    return Completion("fail" if is_read else meaning, None, f"{name} ({response.code})")


def failure_of(reply: Reply, *, is_read: bool) -> Completion:
    """No answer: nothing was sent, or nobody knows."""
    match reply:
        case NotSent(reason):
            return Completion("fail", None, reason)
        case Lost(reason):
            return Completion("fail" if is_read else "info", None, reason)
        case Replied():
            raise AssertionError(reply)
