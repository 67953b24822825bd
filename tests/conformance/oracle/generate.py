"""Writes tests/conformance/cases/*.txt and gradients.txt; with --check, compares them with what would be written and changes nothing."""

import argparse
import sys
import time
from pathlib import Path

import cases_attention
import cases_blocks
import cases_compare
import cases_elementwise
import cases_fixed
import cases_integers
import cases_matmul
import cases_moves
import cases_pipeline
import cases_reduce
import cases_rows
import gradients
from suite import Suite

CASES = Path(__file__).resolve().parent.parent / "cases"
GRADIENTS = CASES.parent / "gradients.txt"


def build():
    suite = Suite()
    for module in (cases_matmul, cases_fixed, cases_blocks, cases_elementwise, cases_integers, cases_reduce, cases_attention, cases_moves,
                   cases_compare, cases_rows, cases_pipeline):
        module.build(suite)
    return suite


def differences(texts):
    """Names of files that are missing, stale or surplus."""
    committed = {path.name: path for path in CASES.glob("*.txt")}
    stale = [name for name, text in texts.items()
             if name not in committed or committed[name].read_bytes() != text.encode("ascii")]
    return stale + [name for name in committed if name not in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 naming the files that differ")
    check = parser.parse_args().check
    started = time.monotonic()
    suite = build()
    texts = suite.texts()
    different = differences(texts)
    if not check:
        for name in different:
            path = CASES / name
            if name in texts:
                path.write_bytes(texts[name].encode("ascii"))
            else:
                path.unlink()
    for name in different:
        print(f"{'DIFFERS' if check else 'wrote'} {name}")
    counts = suite.counts
    of_gradients = gradients.text(Suite()).encode("ascii")
    if not GRADIENTS.exists() or GRADIENTS.read_bytes() != of_gradients:
        different.append(GRADIENTS.name)
        print(f"{'DIFFERS' if check else 'wrote'} {GRADIENTS.name}")
        if not check:
            GRADIENTS.write_bytes(of_gradients)
    size = sum(map(len, texts.values()))
    print(f"{counts['cases']} cases ({counts['errors']} errors, {counts['exact']} computed twice) in {len(texts)} files, "
          f"{size} bytes, {time.monotonic() - started:.1f} s, {len(different)} files differ")
    return 1 if check and different else 0


if __name__ == "__main__":
    sys.exit(main())
