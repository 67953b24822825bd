"""Runs the examples of a package's README.md as a new user would, those marked `<!-- ci: python -->`; `<!-- ci: gpu -->` where there
is a GPU. They run in a folder with `examples`, the project's, and small models: `all-MiniLM-L6-v2` of tests/sentences, `model.gguf` of tests/text.

    python readme.py PACKAGE                  runs them; PACKAGE is the package's folder, such as bindings/python
    python readme.py PACKAGE --write FOLDER   writes them to files, to be type-checked
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import adead

ROOT = pathlib.Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"<!-- ci: (python|gpu) -->\n```python\n(.*?)```", re.S)


def main():
    package = pathlib.Path(sys.argv[1])
    blocks = BLOCK.findall((package / "README.md").read_text(encoding="utf-8"))
    if len(blocks) < 3:
        sys.exit(f"{package}/README.md: its examples are not found")
    if len([line for line in blocks[0][1].splitlines() if line]) > 10:
        sys.exit(f"{package}/README.md: the quickstart has more than ten lines")
    if sys.argv[2:3] == ["--write"]:
        write(blocks, pathlib.Path(sys.argv[3]))
        return
    ran = 0
    with tempfile.TemporaryDirectory() as folder:
        files = write(blocks, pathlib.Path(folder))
        (pathlib.Path(folder) / "examples").symlink_to(ROOT / "examples")
        (pathlib.Path(folder) / "all-MiniLM-L6-v2").symlink_to(ROOT / "tests/sentences/tiny")
        (pathlib.Path(folder) / "model.gguf").symlink_to(ROOT / "tests/text/llama.gguf")
        for (kind, code), file in zip(blocks, files):
            if kind == "gpu":
                try:
                    adead.GPU()
                except adead.BackendUnavailableError as error:
                    print(f"skipped: an example that needs a GPU: {error}")
                    continue
            if subprocess.run([sys.executable, file.name], cwd=folder).returncode:
                sys.exit(f"{package}/README.md: this example failed:\n{code}")
            ran += 1
    print(f"{package}/README.md: {ran} of {len(blocks)} examples ran")


def write(blocks, folder):
    """Writes each example to a file."""
    files = [folder / f"readme_{number}.py" for number in range(len(blocks))]
    for file, (_, code) in zip(files, blocks):
        file.write_text(code, encoding="utf-8")
    return files


if __name__ == "__main__":
    main()
