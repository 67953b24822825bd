"""Runs the examples of README.md and docs/sentences.md, those marked `<!-- ci: python -->`, as a new user would, from a folder
where all-MiniLM-L6-v2 is the small model of tests/sentences.

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
    guides = [(ROOT / guide).read_text(encoding="utf-8") for guide in ("sentences/python/README.md", "docs/sentences.md")]
    of_readme, of_docs = map(BLOCK.findall, guides)
    if len(of_readme) < 3 or not of_docs:
        sys.exit("README.md, docs/sentences.md: their examples are not found")
    if len([line for line in of_readme[0].splitlines() if line]) > 10:
        sys.exit("README.md: the quickstart has more than ten lines")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(sys.argv[2] if sys.argv[1:2] == ["--write"] else folder)
        for number, code in enumerate(of_readme + of_docs):
            (folder / f"example_{number}.py").write_text(code, encoding="utf-8")
        if sys.argv[1:2] == ["--write"]:
            return
        (folder / "all-MiniLM-L6-v2").symlink_to(ROOT / "tests/sentences/tiny")
        for number, code in enumerate(of_readme + of_docs):
            if subprocess.run([sys.executable, f"example_{number}.py"], cwd=folder).returncode:
                sys.exit(f"this example failed:\n{code}")
    print(f"{len(of_readme + of_docs)} examples ran")


if __name__ == "__main__":
    main()
