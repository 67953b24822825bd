#!/usr/bin/env python3
"""Draws the plots of docs/performance.md from the tables of docs/performance-log.md, and the README's picture, as SVGs without external
resources.

    python3 benches/plots.py           writes docs/plots/*.svg
    python3 benches/plots.py --check   fails if a file differs, or if performance.md has a number that the log does not have

Each SVG has its own background and a dark form, so it can be read on light and dark pages.
"""

import math
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG, SUMMARY, FOLDER = ROOT / "docs/performance-log.md", ROOT / "docs/performance.md", ROOT / "docs/plots"
WIDTH = 520
# Class, then the colour on light and on dark pages.
COLOURS = {
    "page": ("#ffffff", "#161b22"),
    "ink": ("#24292f", "#e6edf3"),
    "soft": ("#57606a", "#9da7b3"),
    "grid": ("#d8dee4", "#30363d"),
    "adead": ("#c62828", "#ff7b72"),
    "openblas": ("#1f6feb", "#79b8ff"),
    "mkl": ("#1a7f37", "#56d364"),
    "blis": ("#8250df", "#d2a8ff"),
    "numpy": ("#0e7490", "#39c5cf"),
    "pytorch": ("#b35900", "#ffa657"),
    "onnx-runtime": ("#6e7781", "#8b949e"),
}
ADEAD = "adead"


def style():
    def rules(dark):
        return "".join(f".{name}{{--c:{pair[dark]}}}" for name, pair in COLOURS.items())

    return f"<style>{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}.f{{fill:var(--c)}}.s{{stroke:var(--c);fill:none}}</style>"


def text(x, y, content, colour="ink", anchor="start", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="f {colour}" text-anchor="{anchor}"{extra}>{escape(content)}</text>'


def line(x1, y1, x2, y2, colour="grid", width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="s {colour}" stroke-width="{width:g}"/>'


def svg(title, height, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" '
        'font-family="system-ui,sans-serif" font-size="13" role="img">'
    )
    background = f'<rect width="{WIDTH}" height="{height:.0f}" rx="8" class="f page"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", style(), background, *parts, "</svg>"]) + "\n"


# The log's tables.


def section(log, heading):
    """Returns the text below a heading, up to the next heading."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,}} |\Z)", log, re.M | re.S)
    if not found:
        sys.exit(f"{LOG.name} has no heading '{heading}'")
    return found[2]


def tables(part):
    """Returns the tables of a text as lists of rows; the first row has the names of columns."""
    found = re.findall(r"(?:^\|.*\n?)+", part, re.M)
    rows = [[[cell.strip() for cell in row.strip("|").split("|")] for row in table.strip().split("\n")] for table in found]
    return [[table[0], *table[2:]] for table in rows]


def number(cell):
    """Returns the last number of a cell; None if it has none."""
    found = re.findall(r"\d[\d,]*\.?\d*", cell.replace("*", ""))
    return float(found[-1].replace(",", "")) if found else None


def named(part, name):
    """Returns the table below the line that begins with a name in bold."""
    below = part.split(f"**{name}", 1)
    if len(below) != 2:
        sys.exit(f"{LOG.name}: no table '{name}'")
    return tables(below[1])[0]


def means(part):
    """Returns the geometric mean of each group."""
    bullet = re.search(r"\*\*Geometric mean.*?:\*\*(.*?)[;.](?:\s|$)", part, re.S)
    return {name: float(value) for name, value in re.findall(r"(\w+)\s+([\d.]+\d)", bullet[1])}


# The plots.


def ratios(title, groups, low, high, below, above):
    """Draws rows of ratios on a logarithmic axis: groups are (name, [(label, [ratio, …], text on the right)])."""
    left, right, y = 182, WIDTH - 84, 30
    span = math.log(high) - math.log(low)

    def x(ratio):
        return left + (math.log(min(max(ratio, low), high)) - math.log(low)) / span * (right - left)

    rows = sum(len(rows) for _, rows in groups)
    height = 60 + 26 * rows + 30 * len(groups) + 26
    bottom = height - 38
    parts = [text(x(1) - 10, y, f"← {below}", "soft", "end"), text(x(1) + 10, y, f"{above} →", "soft")]
    for tick in (0.2, 0.5, 1, 2, 5, 10, 20) if high / low > 20 else (0.3, 0.5, 1, 2, 3, 5):
        if low <= tick <= high:
            parts.append(line(x(tick), 42, x(tick), bottom, "ink" if tick == 1 else "grid", 1.4 if tick == 1 else 1))
            parts.append(text(x(tick), bottom + 18, f"{tick:g}×", "soft", "middle"))
    y = 44
    for name, entries in groups:
        y += 24
        parts.append(f'<rect x="14" y="{y - 13}" width="{7.6 * len(name):.0f}" height="17" class="f page"/>')
        parts.append(text(14, y, name, extra=' font-weight="600"'))
        y += 6
        for label, values, note in entries:
            y += 26
            parts.append(text(14, y - 5, label, "soft"))
            middle = y - 9
            if len(values) == 1:
                from_x, to_x = sorted((x(1), x(values[0])))
                width = max(to_x - from_x, 1)
                parts.append(f'<rect x="{from_x:.1f}" y="{middle - 7:.1f}" width="{width:.1f}" height="14" class="f adead"/>')
            for value in values if len(values) > 1 else ():
                parts.append(f'<circle cx="{x(value):.1f}" cy="{middle:.1f}" r="4" class="f adead" fill-opacity="0.45"/>')
            if len(values) > 1:
                at = x(number(note))
                parts.append(line(at, middle - 9, at, middle + 9, "ink", 3))
            parts.append(text(WIDTH - 14, y - 5, note, "ink", "end", ' font-weight="600"'))
    return svg(title, height, parts)


def standing(log):
    """Every item of the CPU's and the GPU's tables as a dot."""
    groups, names = [], {"matmul": "matrix products", "attention": "attention", "mlp": "feed-forward", "memory": "over memory"}
    tables_of = {"matmul": "Matrix products", "attention": "Attention", "memory": "Over memory", "mlp": "Feed-forward", "call": "The cost of a call"}
    names["call"] = "cost of a call"
    for name, heading, column, kinds in (
        ("CPU, 1 thread, beside the best of six", "1 thread", "÷ best peer", ("matmul", "attention", "memory", "call")),
        ("CPU, 2 threads", "2 threads", "÷ best peer", ("matmul", "attention", "memory", "call")),
        ("H200 through CUDA, beside PyTorch", "Through CUDA", "÷", ("matmul", "attention", "mlp", "memory")),
        ("H200 through Vulkan, beside PyTorch", "Through Vulkan", "÷", ("matmul", "attention", "mlp", "memory")),
    ):
        part, rows = section(log, heading), []
        mean = means(part)
        for kind in kinds:
            head, *items = named(part, tables_of[kind])
            at = head.index(column)
            # The call's table repeats a product, which is counted with the products.
            counted = [item for item in items if "†" not in item[0] and not (kind == "call" and item[0].startswith("matmul"))]
            values = [number(item[at]) for item in counted]
            rows.append((names[kind], values, f"{mean[kind]:.2f}×"))
        groups.append((name, rows))
    return ratios("Speed of adead divided by the speed of its peer", groups, 0.2, 20, "peer is faster", "adead is faster")


def bars(labels, rows):
    """Returns a row of a plot for each row of a table whose last column is a ratio."""
    assert len(labels) == len(rows)
    return [(label, [number(row[-1])], f"{number(row[-1]):.2f}×") for label, row in zip(labels, rows)]


def models(log):
    """Models beside the programs that run them elsewhere."""
    groups = []
    _, *rows = tables(section(log, "Sentence embeddings"))[0]
    labels = ["128 tokens, in batches", "128 tokens, one by one", "all lengths, in batches", "all lengths, one by one"]
    groups.append(("Sentence embeddings on an H200, beside PyTorch", bars(labels, rows)))
    _, *rows = tables(section(log, "Text generation"))[0]
    groups.append(("Text generation on an H100, beside PyTorch", bars([row[0] for row in rows], rows)))
    rows = []
    head, *items = next(table for table in tables(section(log, "Text generation")) if "1 thread" in table[0])
    for item in items:
        for count, cell in zip(head[1:], item[1:]):
            rows.append((f"{item[0].split(',')[0]}, {count}", [number(cell)], f"{number(cell):.2f}×"))
    groups.append(("Text generation on two cores, beside llama.cpp", rows))
    return ratios("Speed of adead with models divided by the speed of its peer", groups, 0.3, 5, "peer is faster", "adead is faster")


def overlap(log):
    """Batches whose copies overlap computation."""
    _, *rows = tables(section(log, "Overlap"))[0]
    left, right, y, parts = 160, WIDTH - 76, 14, []
    top = 3.0

    def x(value):
        return left + value / top * (right - left)

    height = 26 * len(rows) + 50
    for tick in range(4):
        parts += [line(x(tick), 14, x(tick), height - 32), text(x(tick), height - 14, f"{tick}×", "soft", "middle")]
    for row in rows:
        y += 26
        value = float(row[2].split()[0])
        parts.append(text(14, y - 5, re.sub(r" \(.*\)|, three under way", "", row[0]), "soft"))
        parts.append(f'<rect x="{left}" y="{y - 16:.1f}" width="{x(value) - left:.1f}" height="14" class="f {"soft" if value == 1 else "adead"}"/>')
        parts.append(text(WIDTH - 14, y - 5, f"{value:g}×", "ink", "end", ' font-weight="600"'))
    return svg("Rate of batches compared with one stage after the other", height, parts)


def matmul(log):
    """GFLOP/s of square products against their size, for each number of threads in a text with the CPU's tables."""
    panels = []
    for threads in re.findall(r"^### (\d+ threads?)\n", log, re.M):
        part = section(log, threads)
        if "**Matrix products (M" not in part:
            continue
        head, *rows = named(part, "Matrix products (M")
        columns = {name: at for at, name in enumerate(head) if name and name[0] not in "÷h" and name != "adead, baseline"}
        squares = [row for row in rows if len(set(row[0].split(" †")[0].split("x"))) == 1]
        lines = {name: [(int(row[0].split("x")[0]), number(row[at])) for row in squares if row[at]] for name, at in columns.items()}
        lines = {name: points for name, points in lines.items() if points}
        if lines:
            panels.append((threads, lines))
    parts, y0 = [], 0
    for threads, lines in panels:
        parts += panel(threads, lines, y0)
        y0 += 300
    names = list(dict.fromkeys(name for _, lines in panels for name in lines))
    for i, name in enumerate(names):
        x, y = 56 + i % 3 * 150, y0 + 18 + i // 3 * 24
        parts += [line(x, y - 4, x + 22, y - 4, key(name), 4 if name == ADEAD else 2), text(x + 28, y, name)]
    return svg("GFLOP/s of square f32 matrix products against their size", y0 + 12 + 24 * math.ceil(len(names) / 3), parts)


def key(name):
    return name.lower().replace(" ", "-")


def panel(threads, lines, y0):
    """Draws the axes and lines for one number of threads."""
    left, right, top, bottom = 56, WIDTH - 20, y0 + 40, y0 + 250
    sizes = sorted({size for points in lines.values() for size, _ in points})
    most = max(rate for points in lines.values() for _, rate in points)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if most / step <= 6)
    limit = math.ceil(most / step) * step
    low, high = math.log2(sizes[0]), math.log2(max(sizes[-1], sizes[0] * 2))

    def x(size):
        return left + (math.log2(size) - low) / (high - low) * (right - left)

    def y(rate):
        return bottom - rate / limit * (bottom - top)

    parts = [text(left, y0 + 24, f"{threads}, GFLOP/s", extra=' font-weight="600"')]
    for value in range(0, limit + 1, step):
        parts += [line(left, y(value), right, y(value)), text(left - 8, y(value) + 4, str(value), "soft", "end")]
    for size in sizes:
        if math.log2(size).is_integer():
            parts.append(text(x(size), bottom + 18, str(size), "soft", "middle"))
    parts.append(text((left + right) / 2, bottom + 38, "n, of n×n by n×n", "soft", "middle"))
    for name in sorted(lines, key=lambda name: name == ADEAD):  # adead is drawn over the others
        points = " ".join(f"{x(size):.1f},{y(rate):.1f}" for size, rate in lines[name])
        parts.append(f'<polyline points="{points}" class="s {key(name)}" stroke-width="{3.5 if name == ADEAD else 1.7}"/>')
    return parts


def one_hash(_):
    """The README's picture: several devices, one hash."""
    devices = ["CPU, 1 thread, SSE2", "CPU, 16 threads, AVX-512", "Arm CPU, NEON", "NVIDIA GPU, CUDA", "other GPUs, Vulkan", "CPU and GPUs together"]
    # same_bits prints it in every language; ci/release-check compares README.md's table with it.
    readme = re.search(r"<!-- ci/release-check: begin -->.*?`([0-9a-f]{16})`", (ROOT / "README.md").read_text(), re.S)
    step, top = 38, 20
    height = top * 2 + step * len(devices)
    middle = height / 2
    parts = []

    def box(x, y, width, tall, colour, fill="page"):
        parts.append(f'<rect x="{x}" y="{y:.1f}" width="{width}" height="{tall}" rx="6" class="f {fill}"/>')
        parts.append(f'<rect x="{x}" y="{y:.1f}" width="{width}" height="{tall}" rx="6" class="s {colour}" stroke-width="1.5"/>')

    for i, device in enumerate(devices):
        y = top + step * (i + 0.5)
        parts.append(f'<path d="M104 {middle:.1f}C124 {middle:.1f} 124 {y:.1f} 144 {y:.1f}" class="s soft" stroke-width="1.3"/>')
        parts.append(f'<path d="M324 {y:.1f}C346 {y:.1f} 342 {middle:.1f} 364 {middle:.1f}" class="s adead" stroke-width="1.6"/>')
    box(14, middle - 34, 90, 68, "soft")
    parts.append(text(59, middle - 11, "one", "soft", "middle"))
    parts.append(text(59, middle + 7, "program,", "soft", "middle"))
    parts.append(text(59, middle + 25, "6 languages", "soft", "middle"))
    for i, device in enumerate(devices):
        y = top + step * (i + 0.5)
        box(144, y - 14, 180, 28, "grid")
        parts.append(text(234, y + 4.5, device, "ink", "middle"))
    box(364, middle - 34, 142, 68, "adead")
    parts.append(text(435, middle - 8, "one hash", "soft", "middle"))
    parts.append(text(435, middle + 16, readme[1], "ink", "middle", ' font-family="ui-monospace,monospace" font-weight="600"'))
    return svg("One program on several devices gives one hash", height, parts)


PLOTS = {"one-hash": one_hash, "standing": standing, "matmul": matmul, "models": models, "overlap": overlap}


def draw():
    log = LOG.read_text()
    return {FOLDER / f"{name}.svg": plot(log) for name, plot in PLOTS.items()}


def write():
    FOLDER.mkdir(exist_ok=True)
    for path, content in draw().items():
        path.write_text(content)


def numbers(document):
    """Returns the numbers of a document as they are written, without links and commands."""
    document = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", " ", document, flags=re.S)
    return set(re.findall(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", document))


def check():
    for path, expected in draw().items():
        if not path.exists() or path.read_text() != expected:
            sys.exit(f"{path.relative_to(ROOT)} is not what its tables give: python3 benches/plots.py")
    strange = numbers(SUMMARY.read_text()) - numbers(LOG.read_text())
    if strange:
        sys.exit(f"{SUMMARY.relative_to(ROOT)} has numbers that {LOG.name} does not have: {', '.join(sorted(strange))}")
    print(f"{len(PLOTS)} pictures are what the tables give; {SUMMARY.name} has the numbers of {LOG.name}")


def main():
    if sys.argv[1:] == ["--check"]:
        check()
    elif len(sys.argv) > 1:
        sys.exit(__doc__)
    else:
        write()


if __name__ == "__main__":
    main()
