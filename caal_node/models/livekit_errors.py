"""A model's failure as one of LiveKit's errors, so that its retries and error events work.

The `CaalError` stays on as the cause. `spoken_key` finds it again when something has to be said.
"""

from __future__ import annotations

from livekit.agents import APIConnectionError, APIError, APIStatusError, APITimeoutError

from caal_node.core.errors import CaalError, ModelReplyError, ModelTimeout, ModelUnreachable


def as_api_error(error: CaalError) -> APIError:
    """Return LiveKit's error for `error`, which says whether to ask once more."""
    if isinstance(error, ModelTimeout):
        # A model that took two minutes will not be quicker the second time round.
        return APITimeoutError(str(error), retryable=False)
    if isinstance(error, ModelUnreachable):
        return APIConnectionError(str(error), retryable=True)
    if isinstance(error, ModelReplyError) and error.status is not None:
        return APIStatusError(str(error), status_code=error.status, body=None, retryable=False)
    # The retry policy has asked once more and by every other strategy by then.
    return APIError(str(error), body=None, retryable=False)


def spoken_key(error: BaseException | None) -> str:
    """Return the key of what to say about `error`, by the first CaalError among its causes."""
    while error is not None:
        if isinstance(error, CaalError):
            return error.spoken
        error = error.__cause__
    return CaalError.spoken
