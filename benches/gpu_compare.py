#!/usr/bin/env python3
"""Compares results of `gpu-bench` and `gpu_peers.py` from one machine, as Markdown.

    python3 benches/gpu_compare.py adead.json torch.json
    python3 benches/gpu_compare.py adead.json torch.json --update-docs   # the GPU's part of docs/performance-log.md
"""

import argparse
import json
import math
import sys
from pathlib import Path

from report import LEVEL, bullets, markdown, number, update

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- benches/gpu_compare.py {}: begin -->", "<!-- benches/gpu_compare.py {}: end -->"  # of a backend
SCHEMA = 1
GROUPS = {
    "matmul": ("Matrix products (M×K×N)", "TFLOP/s", "flops", 1e12),
    "fixed": ("Matrix products in exact integers, beside fp32 (M×K×N)", "TFLOP/s", "flops", 1e12),
    "attention": ("Attention (batch×heads×length×width)", "TFLOP/s", "flops", 1e12),
    "mlp": ("Feed-forward blocks (rows×width×hidden×width)", "TFLOP/s", "flops", 1e12),
    "memory": ("Over memory (rows×columns)", "GB/s, read and written", "bytes", 1e9),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("adead", type=Path, help="results of gpu-bench")
    parser.add_argument("peer", type=Path, nargs="?", help="results of gpu_peers.py, of the same machine")
    parser.add_argument("--facts", type=Path, help="a report.json of ci/gpu-pack's, for the date and the commit")
    parser.add_argument("--out", type=Path, help="a file for the Markdown")
    parser.add_argument("--update-docs", action="store_true", help="put it into docs/performance-log.md")
    return parser.parse_args()


def load(path):
    results = json.loads(path.read_text())
    if results.get("schema") != SCHEMA:
        sys.exit(f"{path}: its schema is {results.get('schema')}, not {SCHEMA}")
    return results


def seconds(entry, kind):
    """Returns a median, or None."""
    times = (entry or {}).get("seconds", {})
    return times[kind]["median"] if kind in times else None


def cell(value):
    return "" if value is None else number(value)


def ratio(mine, theirs):
    """Returns how many times as fast adead is."""
    return None if mine is None or theirs is None else theirs / mine


def two_digits(value):
    return "" if value is None else f"{value:.2f}"


def rows(adead, peer):
    """Returns pairs of the same item; the second is None if the peer lacks it."""
    theirs = {entry["name"]: entry for entry in (peer or {}).get("items", [])}
    return [(entry, theirs.get(entry["name"])) for entry in adead["items"]]


def operations(pairs, group, peer):
    """Returns the table of a group: rates by the device's clock, hot and cold, and the time of one call."""
    _, _, work, unit = GROUPS[group]
    head = ["", "adead"] + (["PyTorch", "÷"] if peer else []) + ["cold: adead"] + (["PyTorch", "÷"] if peer else [])
    head += ["one call: adead, µs"] + (["PyTorch, µs", "÷"] if peer else []) + ["CPU's bits"]
    cells = [head]
    for mine, theirs in pairs:
        if mine["group"] != group:
            continue
        name = mine["name"]
        row = [name.split(" ", 1)[1] if group != "memory" else name]
        if "seconds" not in mine:
            why = "not run: " + (mine.get("skipped") or mine.get("error") or "")
            cells.append([row[0], why] + [""] * (len(head) - 2))
            continue
        for kind in ("hot", "cold"):
            times = seconds(mine, kind), seconds(theirs, kind)
            rates = [None if time is None else mine[work] / time / unit for time in times]
            row += [cell(rates[0])] + ([cell(rates[1]), two_digits(ratio(*times))] if peer else [])
        times = seconds(mine, "completion"), seconds(theirs, "completion")
        micro = [None if time is None else time * 1e6 for time in times]
        row += [cell(micro[0])] + ([cell(micro[1]), two_digits(ratio(*times))] if peer else [])
        row.append({"equal": "yes", "different": "**no**"}.get(mine.get("cpu"), "–"))
        cells.append(row)
    return markdown(cells) if len(cells) > 1 else ""


def latency(pairs, peer):
    kinds = {"completion": "until done", "host": "host only", "enqueued": "host, many in a row"}
    head = [""] + [f"{who}, {kind}" for who in ("adead", "PyTorch")[: 2 if peer else 1] for kind in kinds.values()]
    cells = [head]
    for mine, theirs in pairs:
        if mine["group"] == "latency" and "seconds" in mine:
            row = [mine["name"]]
            for entry in (mine, theirs) if peer else (mine,):
                for kind in kinds:
                    time = seconds(entry, kind)
                    row.append("" if time is None else f"{time * 1e6:.1f}")
            cells.append(row)
    return markdown(cells) if len(cells) > 1 else ""


def transfer(pairs, peer):
    head = ["", "adead"] + (["PyTorch", "÷", "PyTorch, pinned"] if peer else [])
    cells = [head]
    for mine, theirs in pairs:
        if mine["group"] == "transfer" and "seconds" in mine:
            kind = "hot" if "hot" in mine["seconds"] else "completion"
            times = [seconds(mine, kind), seconds(theirs, kind), seconds(theirs, "pinned")]
            rates = [None if time is None else mine["bytes"] / time / 1e9 for time in times]
            row = [mine["name"], cell(rates[0])]
            cells.append(row + ([cell(rates[1]), two_digits(ratio(times[0], times[1])), cell(rates[2])] if peer else []))
    return markdown(cells) if len(cells) > 1 else ""


def verdict(pairs):
    """Says where adead is ahead, level and behind, by the device's clock with warm caches."""
    compared = []
    for mine, theirs in pairs:
        found = ratio(seconds(mine, "hot"), seconds(theirs, "hot"))
        if mine["group"] in GROUPS and found is not None:
            compared.append((mine["group"], mine["name"], found))
    compared.sort(key=lambda row: -row[2])
    if not compared:
        return []

    def some(kept):
        return ", ".join(f"{name} {found:.2f}" for _, name, found in kept) or "none"

    means = []
    for group in GROUPS:
        ratios = [found for of, _, found in compared if of == group]
        if ratios:
            means.append(f"{group} {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    ahead = [row for row in compared if row[2] > 1 + LEVEL]
    behind = [row for row in compared if row[2] < 1 - LEVEL]
    level = [row for row in compared if row not in ahead and row not in behind]
    return [
        f"- **Geometric mean of PyTorch's time over adead's:** {', '.join(means)}.",
        f"- **Ahead** ({len(ahead)}): {some(ahead)}.",
        f"- **Level**, within {LEVEL:.0%} ({len(level)}): {some(level)}.",
        f"- **Behind** ({len(behind)}), the furthest first: {some(reversed(behind))}.",
    ]


def about(adead, peer, facts):
    """Describes the machine and the versions, and says whether the computations agree."""
    device = adead["device"]
    memory = f"{device['memory'] / 2**30:.0f} GiB"
    lines = [f"- **GPU:** {device['name']} ({device['kind']}), {memory}; {device['driver']}; {device['arch']}."]
    versions = [f"adead {adead['version']}"]
    if peer:
        theirs = peer["device"]
        versions.append(f"PyTorch {peer['version']} with CUDA {theirs.get('cuda')}")
        worst = max((entry.get("difference") or 0.0 for entry in peer["items"]), default=0.0)
    lines.append(f"- **Versions:** {'; '.join(versions)}.")
    if facts:
        lines.append(f"- **Run:** {facts['date']}, commit {facts['commit']}.")
    compared = [entry for entry in adead["items"] if entry.get("cpu") in ("equal", "different")]
    equal = sum(entry["cpu"] == "equal" for entry in compared)
    lines.append(f"- **Bits:** {equal} of {len(compared)} results that the CPU computed too are the same bit for bit.")
    if peer:
        lines.append(f"- **Same computation:** no sampled result differs from PyTorch's by more than {worst:.1e} of its "
                     "largest value.")  # fmt: skip
    return lines


def render(adead, peer, facts):
    """Writes everything as Markdown."""
    pairs = rows(adead, peer)
    parts = [bullets(about(adead, peer, facts) + verdict(pairs))]
    for group, (heading, unit, _, _) in GROUPS.items():
        table = operations(pairs, group, peer)
        if table:
            parts.append(f"**{heading}**, {unit}\n\n{table}")
    table = latency(pairs, peer)
    if table:
        parts.append(f"**Small work**, µs\n\n{table}")
    table = transfer(pairs, peer)
    if table:
        parts.append(f"**Copies**, GB/s\n\n{table}")
    return "\n\n".join(parts) + "\n"


def main():
    args = options()
    adead = load(args.adead)
    peer = load(args.peer) if args.peer else None
    facts = json.loads(args.facts.read_text()) if args.facts else None
    text = render(adead, peer, facts)
    if args.out:
        args.out.write_text(text)
    if args.update_docs:
        import plots  # not in the bundle for GPU machines, which has no documents to update

        backend = adead["device"]["id"].split(":")[0]
        update(DOCS / "performance-log.md", text, BEGIN.format(backend), END.format(backend))
        plots.write()
    print(text)


if __name__ == "__main__":
    main()
