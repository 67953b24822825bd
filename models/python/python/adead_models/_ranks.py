"""What moves the bytes of a training's ranks, where a program does that itself."""

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_void_p
from typing import Protocol

import adead

from ._library import check, function
from ._train_library import Raised


class Transport(Protocol):
    """Moves bytes between the ranks of a training. ``adead_models.mpi.MpiTransport`` is one; ``Trainer.join`` takes any."""

    @property
    def rank(self) -> int:
        """The number of this rank, counted from 0."""
        ...

    @property
    def size(self) -> int:
        """The number of ranks."""
        ...

    def exchange(self, parts: list[bytes]) -> Sequence[bytes]:
        """Sends each rank r the bytes ``parts[r]`` and returns the bytes that each rank sent to this one.

        There is nothing for this rank itself, and its own element of the result is ignored. All ranks call it equally often. An
        exception ends the trainer's call, and the ranks can't be used any longer.
        """
        ...


Exchange = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p), POINTER(c_size_t), c_void_p)


class RawTransport(ctypes.Structure):
    """adead_transport."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("rank", c_size_t),
        ("size", c_size_t),
        ("user", c_void_p),
        ("exchange", Exchange),
    ]


join_through = function("adead_trainer_join_through", c_void_p, POINTER(RawTransport))
mailbox_put = function("adead_mailbox_put", c_void_p, c_size_t, c_char_p, c_size_t)


class Ranks:
    """A transport as the library takes it. It must live as long as the trainer that has it."""

    def __init__(self, transport: Transport) -> None:
        rank, size = transport.rank, transport.size
        if not 0 <= rank < size:
            raise adead.InvalidArgumentError(f"rank {rank} of {size} ranks: ranks are counted from 0")
        self.raised = raised = Raised()

        def run(parts: Sequence[int | None], lengths: Sequence[int], mailbox: int) -> None:
            found = transport.exchange([ctypes.string_at(parts[r] or 0, lengths[r]) if lengths[r] else b"" for r in range(size)])
            if len(found) != size:
                raise adead.InvalidArgumentError(f"exchange returned the bytes of {len(found)} ranks; there are {size}")
            for other, received in enumerate(found):
                if other != rank:
                    received = bytes(received)
                    check(mailbox_put(mailbox, other, received, len(received)))

        def exchange(_user: object, parts: Sequence[int | None], lengths: Sequence[int], mailbox: int) -> int:
            return raised.call(lambda: run(parts, lengths, mailbox))

        self.raw = RawTransport(ctypes.sizeof(RawTransport), rank, size, None, Exchange(exchange))

    def check(self, status: int) -> None:
        """Raises what the transport has raised during a call, or the call's own error."""
        error, self.raised.error = self.raised.error, None
        if error is not None:
            raise error
        check(status)
