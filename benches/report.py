"""Writes results as text: the machine, tables, and conclusions."""

import datetime
import glob
import math
import os
import platform
import re
import subprocess
import textwrap
from pathlib import Path

ORDER = ["adead", "baseline", "openblas", "mkl", "blis", "numpy", "torch", "onnxruntime", "memcpy"]
TITLES = {"baseline": "adead, baseline", "openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS", "numpy": "NumPy",
          "torch": "PyTorch", "onnxruntime": "ONNX Runtime"}  # fmt: skip
GROUPS = {
    "matmul": ("Matrix products (M×K×N)", "GFLOP/s"),
    "fixed": ("Matrix products in exact integers, the peers' in fp32 (M×K×N)", "GFLOP/s"),
    "attention": ("Attention (heads×length×width)", "GFLOP/s"),
    "memory": ("Over memory", "GB/s, read and written"),
    "call": ("The cost of a call: matmul 4x4x4, and elementwise operations on 16 values", "ns"),
}
LEVEL = 0.05  # ratios this close to 1 are called level
BUSY = 0.1  # cores that others may use before an item counts as disturbed
BEGIN, END = "<!-- benches/compare.py: begin -->", "<!-- benches/compare.py: end -->"


def title(name):
    return TITLES.get(name, name)


def first(pattern, text, default="?"):
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else default


def read(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def machine(root):
    """Describes the machine of the numbers."""
    cpu = read("/proc/cpuinfo")
    flags = first(r"^flags\s*: (.*)$", cpu, "").split()
    extensions = [flag for flag in ("sse2", "avx2", "fma", "avx512f", "avx512vl", "amx_tile") if flag in flags]
    caches = []
    for cache in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        if read(f"{cache}/type") != "Instruction":
            caches.append(f"L{read(f'{cache}/level')} {read(f'{cache}/size')}")

    def git(*args):
        return subprocess.run(["git", *args], cwd=root, capture_output=True, text=True).stdout.strip()

    commit = "not known"  # for a library that was built earlier
    if root:
        changed = git("status", "--porcelain", "--untracked-files=no")
        commit = git("rev-parse", "--short", "HEAD") + (" with changes" if changed else "")

    return {
        "cpu": first(r"^model name\s*: (.*)$", cpu, platform.machine()),
        "model": f"family {first(r'^cpu family.*: (.*)$', cpu)}, model {first(r'^model.*: ([0-9]+)$', cpu)}",
        "hypervisor": "hypervisor" in flags,
        "cores": len(os.sched_getaffinity(0)),
        "extensions": " ".join(extensions),
        "caches": ", ".join(caches),
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "load_before": os.getloadavg()[0],
    }


def rate(row, name):
    """Returns a library's number in the unit of the row's group."""
    seconds = row["seconds"][name][0]
    return seconds * 1e9 if row["group"] == "call" else row["work"] / seconds / 1e9


def number(value):
    """Formats three significant digits, or all digits before the point."""
    if value >= 99.5:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def line(row):
    """Formats one row for the terminal."""
    parts = [f"{title(name)} {number(rate(row, name))}" for name in ORDER if name in row["seconds"]]
    extra = f"; {row['ratio'][0]:.2f} of {title(row['best'])}" if "ratio" in row else ""
    extra += f"; {row['over_baseline'][0]:.3f} of baseline" if "over_baseline" in row else ""
    extra += f"; others used {row['others']:.1f} cores" if row["others"] > BUSY else ""
    worst = max(row["difference"].values(), default=0)
    return f"{row['name']}: {', '.join(parts)}{extra}; differ by {worst:.0e}"


def markdown(rows):
    """Formats cells as a Markdown table, with the first column to the left."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" + "|--:" * (len(rows[0]) - 1) + "|", *lines[1:]])


def bullets(lines):
    """Formats a list, with lines no longer than the rest of the page."""
    return "\n".join(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False) for line in lines)


def table(rows):
    """Formats the rows of a group."""
    present = [name for name in ORDER if any(name in row["seconds"] for row in rows)]
    over = any("over_baseline" in row for row in rows)
    head = ["", *map(title, present), "÷ best peer", "half of the rounds"] + (["÷ baseline"] if over else [])
    cells = [head]
    for row in rows:
        fastest = row.get("best")
        name = row["size"] if row["group"] == row["op"] else row["name"]
        line = [f"{name} †" if row["others"] > BUSY else name]
        for peer in present:
            text = number(rate(row, peer)) if peer in row["seconds"] else ""
            line.append(f"**{text}**" if peer == fastest else text)
        middle, low, high = row.get("ratio", [math.nan] * 3)
        line += [f"{middle:.2f}", f"{low:.2f}–{high:.2f}"] if "ratio" in row else ["", ""]
        if over:
            line.append(f"{row['over_baseline'][0]:.3f}" if "over_baseline" in row else "")
        cells.append(line)
    return markdown(cells)


def verdict(rows):
    """Says where adead is ahead, level and behind, from the numbers of the tables."""
    compared = [row for row in rows if "ratio" in row]
    rows = [row for row in compared if row["others"] <= BUSY]
    rows.sort(key=lambda row: -row["ratio"][0])
    left_out = len(compared) - len(rows)

    def some(kept):
        return ", ".join(f"{row['name']} {row['ratio'][0]:.2f}" for row in kept) or "none"

    ahead = [row for row in rows if row["ratio"][0] > 1 + LEVEL]
    behind = [row for row in rows if row["ratio"][0] < 1 - LEVEL]
    level = [row for row in rows if row not in ahead and row not in behind]
    means = []
    for group in GROUPS:
        ratios = [row["ratio"][0] for row in rows if row["group"] == group]
        if ratios:
            means.append(f"{group} {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return bullets(
        [
            f"- **Geometric mean of the ratio to the best peer:** {', '.join(means) or 'none'}"
            + (f"; {left_out} disturbed items are counted neither here nor below." if left_out else "."),
            f"- **Ahead** ({len(ahead)}): {some(ahead)}.",
            f"- **Level**, within {LEVEL:.0%} ({len(level)}): {some(level)}.",
            f"- **Behind** ({len(behind)}), the furthest first: {some(reversed(behind))}.",
        ]
    )


def about(results):
    """Describes the machine and the versions."""
    it = results["machine"]
    virtual = ", virtual" if it["hypervisor"] else ""
    versions = [f"{title(name)} {results['versions'][name]}" for name in ORDER if name in results["versions"]]
    rows = [row for rows in results["threads"].values() for row in rows]
    worst = max((value for row in rows for value in row["difference"].values()), default=0)
    load = f"{it['load_before']:.1f} before, {it['load_after']:.1f} after"
    disturbed = sum(row["others"] > BUSY for row in rows)
    return bullets(
        [
            f"- **Machine:** {it['cpu']} ({it['model']}{virtual}), {it['cores']} cores; {it['extensions']}; "
            f"{it['caches']}; {it['kernel']}; {it['libc']}; Python {it['python']}.",
            f"- **Libraries:** {'; '.join(versions)}.",
            f"- **Run:** {it['date']}, commit {it['commit']}, {results['rounds']} rounds; load of the machine {load}.",
            f"- **Disturbed:** {disturbed} of {len(rows)} items, marked †: other work used more than {BUSY} cores "
            "in every attempt.",
            f"- **Same computation:** no result differs from adead's by more than {worst:.1e} of its largest value.",
        ]
    )


def render(results):
    """Writes everything as Markdown."""
    parts = [about(results)]
    for threads, rows in results["threads"].items():
        parts.append(f"### {threads} thread{'s' if threads != '1' else ''}\n\n{verdict(rows)}")
        for group, (heading, unit) in GROUPS.items():
            kept = [row for row in rows if row["group"] == group]
            if group == "call":
                kept = [dict(row, group="call") for row in rows if row["name"] == "matmul 4x4x4"] + kept
            if kept:
                parts.append(f"**{heading}**, {unit}\n\n{table(kept)}")
    return "\n\n".join(parts) + "\n"


def update(document, text, begin=BEGIN, end=END):
    """Replaces the marked section of a document."""
    before, rest = document.read_text().split(begin)
    _, after = rest.split(end)
    document.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
