"""Other people's kernels through m3gen's door: described in a file, compiled, run and predicted as m3gen's own are."""

from m3gen.peers.peer import Peer
from m3gen.peers.reading import read

__all__ = ["Peer", "read"]
