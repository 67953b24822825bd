"""Draws GFLOP/s of square matrix products against their size, as an SVG without external resources."""

import math
from html import escape

import report

COLOURS = {"adead": "#d62728", "baseline": "#f2a2a2", "openblas": "#1f77b4", "mkl": "#2ca02c", "blis": "#9467bd",
           "numpy": "#17a2b8", "torch": "#e08214", "onnxruntime": "#7f7f7f"}  # fmt: skip
WIDTH, HEIGHT = 560, 380  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 40, 48


def step(top):
    """Returns a round step, for about six lines up to `top`."""
    rough = top / 6
    power = 10 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def squares(rows):
    """Returns the size and row of each square product."""
    for row in rows:
        sides = row["size"].split("x")
        if row["group"] == "matmul" and len(set(sides)) == 1:
            yield int(sides[0]), row


def text(x, y, content, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{escape(content)}</text>'


def panel(threads, points, names, offset):
    """Draws the axes and lines for one number of threads."""
    sizes = [size for size, _ in points]
    top = max(report.rate(row, name) for _, row in points for name in names if name in row["seconds"])
    every = step(top)
    top = math.ceil(top / every) * every
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(size):
        return offset + LEFT + (math.log2(size) - low) / max(high - low, 1e-9) * inner_width

    def y(value):
        return TOP + (1 - value / top) * inner_height

    right = offset + LEFT + inner_width
    heading = f"{threads} thread{'s' if threads != '1' else ''}"
    parts = [text((x(min(sizes)) + right) / 2, 22, heading, extra=' font-weight="bold"')]
    for i in range(round(top / every) + 1):
        at = y(i * every)
        parts.append(f'<line x1="{offset + LEFT}" y1="{at:.1f}" x2="{right}" y2="{at:.1f}" stroke="#ddd"/>')
        parts.append(text(offset + LEFT - 6, at + 4, f"{i * every:g}", "end"))
    for size in sizes:
        at, bottom = x(size), TOP + inner_height
        parts.append(f'<line x1="{at:.1f}" y1="{bottom}" x2="{at:.1f}" y2="{bottom + 4}" stroke="#333"/>')
        if math.log2(size).is_integer():
            parts.append(text(at, bottom + 17, str(size)))
    parts.append(text((offset + LEFT + right) / 2, HEIGHT - 10, "n, of n×n by n×n"))
    middle = TOP + inner_height / 2
    parts.append(text(offset + 14, middle, "GFLOP/s", extra=f' transform="rotate(-90 {offset + 14} {middle})"'))
    for name in reversed(names):  # the first one is drawn over the others
        line = [(x(size), y(report.rate(row, name))) for size, row in points if name in row["seconds"]]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in line)
        thick = 3 if name == "adead" else 1.6
        parts.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="{thick}"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{thick}" fill="{COLOURS[name]}"/>' for px, py in line]
    return parts


def matmul(results):
    """Draws the whole picture: a panel for each number of threads, and a legend."""
    panels = {threads: list(squares(rows)) for threads, rows in results["threads"].items()}
    panels = {threads: points for threads, points in panels.items() if points}
    names = [n for n in COLOURS if any(n in row["seconds"] for points in panels.values() for _, row in points)]
    width, height = max(1, len(panels)) * WIDTH, HEIGHT + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="#333">',
        "<title>GFLOP/s of square f32 matrix products against their size</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for i, (threads, points) in enumerate(panels.items()):
        parts += panel(threads, points, names, i * WIDTH)
    at = LEFT
    for name in names:
        stroke = f'stroke="{COLOURS[name]}" stroke-width="3"'
        parts.append(f'<line x1="{at}" y1="{HEIGHT + 14}" x2="{at + 22}" y2="{HEIGHT + 14}" {stroke}/>')
        parts.append(text(at + 28, HEIGHT + 18, report.title(name), "start"))
        at += 44 + 8 * len(report.title(name))
    return "\n".join([*parts, "</svg>"]) + "\n"
