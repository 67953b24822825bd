"""Runs README.md's examples, those marked `<!-- ci: python -->`, as a new user would, from a folder where all-MiniLM-L6-v2 is
the small model of tests/sentences.

    python readme.py                  runs them
    python readme.py --write FOLDER   writes them to files, to be type-checked
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"<!-- ci: python -->\n```python\n(.*?)```", re.S)


def main():
    blocks = BLOCK.findall((ROOT / "sentences/python/README.md").read_text(encoding="utf-8"))
    if len(blocks) < 3:
        sys.exit("README.md: its examples are not found")
    if len([line for line in blocks[0].splitlines() if line]) > 10:
        sys.exit("README.md: the quickstart has more than ten lines")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(sys.argv[2] if sys.argv[1:2] == ["--write"] else folder)
        for number, code in enumerate(blocks):
            (folder / f"readme_{number}.py").write_text(code, encoding="utf-8")
        if sys.argv[1:2] == ["--write"]:
            return
        (folder / "all-MiniLM-L6-v2").symlink_to(ROOT / "tests/sentences/tiny")
        for number, code in enumerate(blocks):
            if subprocess.run([sys.executable, f"readme_{number}.py"], cwd=folder).returncode:
                sys.exit(f"README.md: this example failed:\n{code}")
    print(f"README.md: {len(blocks)} examples ran")


if __name__ == "__main__":
    main()
