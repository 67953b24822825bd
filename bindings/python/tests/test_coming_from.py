"""docs/coming-from.md names calls of other libraries and adead's. Each of adead's names must exist."""

import pathlib
import re

import adead
import adead.nn

ROOT = pathlib.Path(__file__).resolve().parents[3]
OBJECTS = {
    "adead": adead,
    "buffer": adead.Buffer,
    "ctx": adead.Context,
    "gpu": adead.GPU,
    "later": adead.Timestamp,
    "pipeline": adead.Pipeline,
    "stream": adead.Stream,
    "x": adead.Tensor,
}


def cells(heading):
    """Returns the cells below a heading of a column."""
    found, column = [], None
    for line in (ROOT / "docs/coming-from.md").read_text(encoding="utf-8").splitlines():
        row = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if heading in row:
            column = row.index(heading)
        elif not row:
            column = None
        elif column is not None and not row[0].startswith("---"):
            found.append(row[column])
    assert found, heading
    return found


def test_python():
    count = 0
    for cell in cells("adead in Python"):
        for name, attributes in re.findall(rf"(?<![\w.])({'|'.join(OBJECTS)})((?:\.[a-zA-Z_]\w*)+)", cell):
            value = OBJECTS[name]
            for attribute in attributes.split(".")[1:]:
                assert hasattr(value, attribute), cell
                value = getattr(value, attribute)
            count += 1
    assert count > 70


def test_c():
    header = (ROOT / "include/adead.h").read_text(encoding="utf-8")
    names = re.findall(r"\badead_\w+|\bADEAD_\w+", " ".join(cells("adead in C")))
    assert len(names) > 25
    for name in names:
        assert re.search(rf"\b{name}\b", header), name


def test_cpp():
    headers = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "include/adead").glob("*.hpp"))
    names = re.findall(r"(?:::|ctx\.)([a-z_]+)\b", " ".join(cells("adead in C++")))
    assert len(names) > 15
    for name in names:
        assert re.search(rf"[> ]{name}\(", headers), name
