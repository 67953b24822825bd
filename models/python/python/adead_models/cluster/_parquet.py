"""Parquet files: rows of an input, and a shard's output."""

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import adead

from ._extras import extra
from ._job import Shard
from ._results import Result


def _open(path: Path) -> Any:
    pa, parquet = extra("pyarrow", "cluster"), extra("pyarrow.parquet", "cluster")
    try:
        return parquet.ParquetFile(path, page_checksum_verification=True)
    except pa.ArrowInvalid as error:
        raise adead.InvalidArgumentError(f"{path} is not a Parquet file: {error}") from error
    except OSError as error:
        raise adead.IoError(f"{path}: {error}") from error


def count_rows(path: Path, columns: Sequence[str], texts: str) -> int:
    """Returns the number of rows of an input file. Checks that it has the columns and that ``texts`` has strings."""
    pa = extra("pyarrow", "cluster")
    with _open(path) as file:
        schema = file.schema_arrow
        for name in columns:
            if name not in schema.names:
                raise adead.InvalidArgumentError(f"{path} has no column {name!r}; it has {', '.join(map(repr, schema.names))}")
        found = schema.field(texts).type
        if pa.types.is_dictionary(found):
            found = found.value_type
        if not any(is_text(found) for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
            raise adead.InvalidArgumentError(f"{path}: column {texts!r} has elements of {found}; it must have strings")
        rows: int = file.metadata.num_rows
        return rows


def read_rows(path: Path, shard: Shard, columns: Sequence[str]) -> Any:
    """Reads columns of a shard's rows, as a table. Reads only the row groups that have some of them."""
    pa = extra("pyarrow", "cluster")
    stop = shard.start + shard.rows
    with _open(path) as file:
        if file.metadata.num_rows < stop:
            raise adead.InvalidArgumentError(f"{shard}: {path} has only {file.metadata.num_rows} rows")
        groups: list[int] = []
        first, before = None, 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if before < stop and before + rows > shard.start:
                groups.append(group)
                first = before if first is None else first
            before += rows
        try:
            table = file.read_row_groups(groups, columns=list(dict.fromkeys(columns)))
        except (pa.ArrowException, OSError) as error:
            raise adead.IoError(f"{shard}: {path} can't be read: {error}") from error
        return table.slice(shard.start - (first or 0), shard.rows)


def texts_of(table: Any, shard: Shard, column: str) -> list[str]:
    """Returns the texts of a shard's rows."""
    texts: list[str] = table.column(column).to_pylist()
    for number, text in enumerate(texts):
        # A value may be null.
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise adead.InvalidArgumentError(
                f"row {shard.start + number} of {shard.name} has no text in column {column!r}: remove such rows, or fill them"
            )
    return texts


def output_name(shard: Shard) -> str:
    """Returns the name of an unfinished output file; no two writers have the same."""
    return f".{shard.output}.{os.getpid()}-{secrets.token_hex(4)}.tmp"


def remove_unfinished(folder: Path) -> int:
    """Removes output files that lost workers left unfinished, and returns their number."""
    left = list(folder.glob(".part-*.tmp"))
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def write_output(path: Path, shard: Shard, result: Result, kept: Any) -> None:
    """Writes an output file and waits for the disk: the number of each row in the job, kept columns, results."""
    pa, parquet = extra("pyarrow", "cluster"), extra("pyarrow.parquet", "cluster")
    columns = {"row": pa.array(range(shard.row, shard.row + shard.rows), pa.int64())}
    columns |= {name: kept.column(name) for name in kept.column_names}
    columns |= result.columns()
    try:
        with path.open("wb") as file:
            parquet.write_table(pa.table(columns), file, compression="zstd", write_page_checksum=True)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise adead.IoError(f"{path}: {error}") from error


def read_output(path: Path, columns: Sequence[str]) -> Any:
    """Reads columns of an output file, as a table."""
    pa = extra("pyarrow", "cluster")
    with _open(path) as file:
        missing = [name for name in columns if name not in file.schema_arrow.names]
        if missing:
            raise adead.InvalidArgumentError(f"{path} has no column {missing[0]!r}")
        try:
            return file.read(columns=list(columns))
        except (pa.ArrowException, OSError) as error:
            raise adead.IoError(f"{path} can't be read: {error}") from error
