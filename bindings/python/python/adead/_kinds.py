"""Types of arguments, which only type checkers read."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ._adead import Tensor

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._adead import _AnyDType  # pyright: ignore[reportPrivateUsage]

    AnyDType: TypeAlias = _AnyDType
else:
    AnyDType = Buffer = Any


class HasDlpack(Protocol):
    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


Number: TypeAlias = float | int
Nested: TypeAlias = Sequence[Any]
Array: TypeAlias = Tensor | Buffer | HasDlpack
Values: TypeAlias = Tensor | Buffer | HasDlpack | float | int | Nested
Shape: TypeAlias = int | Sequence[int]
Axes: TypeAlias = int | tuple[int, ...] | list[int] | None
