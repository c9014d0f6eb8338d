"""Frames over pipes: eight bytes of length, then a pickle. Both ends are m3gen, parent and its own child."""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any

MAX_FRAME = 64 << 20  # bytes: a candidate's result is some 100 KB
_HEADER = struct.Struct("!Q")


class FrameError(ValueError):
    """A frame over `MAX_FRAME`, or bytes that are none."""


def pack(value: Any) -> bytes:
    """A frame; `FrameError` when it is too large, and whatever pickle raises for what cannot be pickled."""
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    if len(body) > MAX_FRAME:
        raise FrameError(f"{len(body)} bytes are over the {MAX_FRAME} that a frame may hold")
    return _HEADER.pack(len(body)) + body


def take(buffer: bytearray) -> Any | None:
    """Cut the first whole frame off `buffer`: its value in a one-element tuple, or None if there is none.

    Raises `FrameError` when the length is impossible or the value does not unpickle.
    """
    if len(buffer) < _HEADER.size:
        return None
    (length,) = _HEADER.unpack_from(buffer)
    if length > MAX_FRAME:
        raise FrameError(f"a frame announces {length} bytes, over {MAX_FRAME}")
    end = _HEADER.size + length
    if len(buffer) < end:
        return None
    body = bytes(buffer[_HEADER.size : end])
    del buffer[:end]
    try:
        return (pickle.loads(body),)
    except Exception as error:
        raise FrameError(f"a frame does not unpickle: {error}") from error


def read(descriptor: int, buffer: bytearray) -> Any:
    """The next value from a blocking pipe, in a one-element tuple; None at its end."""
    while (found := take(buffer)) is None:
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            return None
        buffer += chunk
    return found


def write(descriptor: int, frame: bytes) -> None:
    """All of a frame into a blocking pipe."""
    view = memoryview(frame)
    while view:
        view = view[os.write(descriptor, view) :]
