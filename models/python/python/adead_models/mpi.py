"""Training on several processes over MPI, through the package mpi4py.

    from adead_models.mpi import MpiTransport

    trainer.join(MpiTransport())    # in each process that mpiexec started

MPI only moves bytes: adead adds the gradients, so the weights have the same bits with any number of ranks and any MPI library.
"""

from collections.abc import Iterator
from typing import Any

import numpy

from .cluster._extras import extra

_mpi: Any = extra("mpi4py.MPI", "mpi")

# Old MPI libraries count bytes with 32 bits.
MOST_AT_ONCE = 1 << 30


class MpiTransport:
    """Exchanges the bytes of a training's ranks over an MPI communicator.

    ``communicator`` is one of mpi4py's, by default that of all processes. The transport duplicates it, so its messages meet no
    others. An error of MPI ends all processes, as MPI's default error handler does.
    """

    def __init__(self, communicator: Any = None) -> None:
        self._ranks = (_mpi.COMM_WORLD if communicator is None else communicator).Dup()

    @property
    def rank(self) -> int:
        """The number of this rank in the communicator."""
        return int(self._ranks.Get_rank())

    @property
    def size(self) -> int:
        """The number of the communicator's ranks."""
        return int(self._ranks.Get_size())

    def exchange(self, parts: list[bytes]) -> list[bytes]:
        """Sends each rank its part, and returns what the ranks sent to this one."""
        sent = numpy.array([len(part) for part in parts], numpy.int64)
        sent[self.rank] = 0
        received = numpy.empty_like(sent)
        self._ranks.Alltoall(sent, received)
        found = [bytearray(int(length)) for length in received]
        waiting: list[Any] = []
        for rank in range(self.size):
            if rank == self.rank:
                continue
            waiting += [self._ranks.Irecv([piece, _mpi.BYTE], rank) for piece in pieces(memoryview(found[rank]))]
            waiting += [self._ranks.Isend([piece, _mpi.BYTE], rank) for piece in pieces(memoryview(parts[rank]))]
        _mpi.Request.Waitall(waiting)
        return [bytes(part) for part in found]


def pieces(part: memoryview) -> Iterator[memoryview]:
    """Cuts bytes into what one message may have. The messages of two ranks arrive in the order in which they were sent."""
    return (part[at : at + MOST_AT_ONCE] for at in range(0, len(part), MOST_AT_ONCE))
