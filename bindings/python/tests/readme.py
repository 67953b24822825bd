"""Runs README.md's examples as a new user would, those marked `<!-- ci: python -->`; `<!-- ci: gpu -->` where there is a GPU.

    python readme.py                  runs them
    python readme.py --write FOLDER   writes them to files, to be type-checked
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import adead

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"<!-- ci: (\w+) -->\n```python\n(.*?)```", re.S)


def main():
    blocks = BLOCK.findall((ROOT / "bindings/python/README.md").read_text(encoding="utf-8"))
    if len(blocks) < 3:
        sys.exit("README.md: its examples are not found")
    quickstart = blocks[0][1].strip().splitlines()
    if len([line for line in quickstart if line]) > 10:
        sys.exit("README.md: the quickstart has more than ten lines")
    if sys.argv[1:2] == ["--write"]:
        for number, (_, code) in enumerate(blocks):
            (pathlib.Path(sys.argv[2]) / f"readme_{number}.py").write_text(code, encoding="utf-8")
        return
    ran = 0
    for kind, code in blocks:
        if kind == "gpu":
            try:
                adead.GPU()
            except adead.BackendUnavailableError as error:
                print(f"skipped: an example that needs a GPU: {error}")
                continue
        with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:
            file.write(code)
            file.flush()
            # From the project's root, where examples/ is.
            done = subprocess.run([sys.executable, file.name], cwd=ROOT, env=os.environ)
        if done.returncode:
            sys.exit(f"README.md: this example failed:\n{code}")
        ran += 1
    print(f"README.md: {ran} of {len(blocks)} examples ran")


if __name__ == "__main__":
    main()
