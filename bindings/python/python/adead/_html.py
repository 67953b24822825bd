"""Tensors in notebooks."""

from ._adead import Tensor
from ._common import tensor

# The most rows and columns that a table shows.
MOST = 20


def repr_html(x: Tensor, /) -> str:
    """Returns a table for a vector or a matrix, and text for other tensors. Of long axes only the ends are shown."""
    x = tensor(x)
    shape = " × ".join(map(str, x.shape)) or "scalar"
    head = f"<div><small>adead.Tensor, {x.dtype}, {shape}, on {', '.join(x.places)}</small></div>"
    if x.ndim not in (1, 2) or not x.size:
        text = repr(x).replace("&", "&amp;").replace("<", "&lt;")
        return f"{head}<pre>{text}</pre>"
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    lines: list[str] = []
    for row in _ends(rows.shape[0]):
        if row is None:
            lines.append("<tr><td>⋮</td></tr>")
            continue
        line = rows[row]
        cells = ("⋯" if col is None else _text(line[col].item()) for col in _ends(rows.shape[1]))
        lines.append("<tr>" + "".join(f'<td style="text-align:right">{cell}</td>' for cell in cells) + "</tr>")
    return f"{head}<table>{''.join(lines)}</table>"


def _ends(size: int) -> list[int | None]:
    """Returns the indices of an axis to show; None stands for omitted ones."""
    if size <= MOST:
        return list(range(size))
    half = MOST // 2
    return [*range(half), None, *range(size - half, size)]


def _text(value: float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
