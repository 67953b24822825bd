"""The command ``python -m adead_models.cluster``."""

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import adead

from .._generator import Options
from .._library import PRECISIONS
from ._drive import WorkerLostError
from ._engine import Engine
from ._extras import extra
from ._local import LocalEngine
from ._progress import Terminal, logger
from ._run import CheckError, Report, check, embed, generate

_CLUSTERS = """clusters:
  local               processes of this machine, the default
  ray://HOST:PORT     a Ray cluster, by its Ray Client server (port 10001 if Ray chose it)
  ray://auto          the Ray cluster of this machine
  ray://local         a Ray cluster that is started here, and ended
  dask://HOST:PORT    a Dask cluster, by its scheduler
  dask://local        a Dask cluster of processes that is started here, and ended

All workers must see --in, --out and --model by the same paths. A run that was interrupted goes on when it is called again.
"""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    command = argparse.ArgumentParser(
        prog="python -m adead_models.cluster",
        description="Embeds or generates over Parquet files on a cluster, or checks what was computed.",
        epilog=_CLUSTERS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = command.add_subparsers(dest="kind", required=True, metavar="embed|generate|check")
    embedding = kinds.add_parser("embed", help="embed sentences", **_AS_COMMAND)
    _common(embedding, "folder of the sentence encoder")
    _cut(embedding, 16384)
    embedding.add_argument("--precision", choices=PRECISIONS, default="f32", help="how matrix products are computed (default: f32)")
    generating = kinds.add_parser("generate", help="generate texts that follow prompts", **_AS_COMMAND)
    _common(generating, "GGUF file of the language model")
    _cut(generating, 256)
    for name, kind in _OPTIONS.items():
        flag = f"--{name.replace('_', '-')}"
        if kind is bool:
            generating.add_argument(flag, action="store_true", default=None)
        elif name == "stop":
            generating.add_argument(flag, action="append", metavar="TEXT", help="text that ends an answer; may be repeated")
        elif name == "json_schema":
            generating.add_argument(flag, metavar="SCHEMA", help="JSON schema: the answers are JSON that it allows")
        else:
            generating.add_argument(flag, type=kind, metavar="N")
    checking = kinds.add_parser("check", help="compute shards again and compare", **_AS_COMMAND)
    _common(checking, "folder or file of the model")
    checking.add_argument("--shards", metavar="N,N,…", type=_numbers, help="shards to check (default: all)")
    return command


_AS_COMMAND: dict[str, Any] = {"epilog": _CLUSTERS, "formatter_class": argparse.RawDescriptionHelpFormatter}
_OPTIONS: dict[str, type] = {
    "max_tokens": int,
    "stop": str,
    "ignore_end": bool,
    "json_schema": str,
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "min_p": float,
    "repeat_penalty": float,
    "repeat_last": int,
    "seed": int,
    "sequence": int,
}


def _common(command: argparse.ArgumentParser, model: str) -> None:
    command.add_argument("--model", required=True, type=Path, metavar="PATH", help=model)
    inputs = "Parquet files, or folders of them"
    command.add_argument("--in", required=True, dest="inputs", nargs="+", type=Path, metavar="PATH", help=inputs)
    command.add_argument("--out", required=True, type=Path, metavar="FOLDER", help="folder of outputs and of the manifest")
    command.add_argument("--cluster", default="local", metavar="URL", help="where it is computed: see below (default: local)")
    command.add_argument("--workers", type=_at_least_1, metavar="N", help="number of workers (default: 1; dask: all of the cluster)")
    command.add_argument("--threads", type=_at_least_1, metavar="N", help="threads of a worker (default: its share of the processors)")
    command.add_argument("--gpus", type=float, default=0, metavar="N", help="GPUs of a worker, which Ray reserves (default: 0)")
    command.add_argument("--device", metavar="NAME", help="device of a worker, such as cuda (default: adead's)")
    command.add_argument("--retries", type=int, default=3, metavar="N", help="how often a shard may be lost with its worker (default: 3)")
    command.add_argument("--json", action="store_true", help="print the report as JSON")


def _cut(command: argparse.ArgumentParser, rows: int) -> None:
    command.add_argument("--column", default="text", metavar="NAME", help="column of texts (default: text)")
    command.add_argument("--keep", action="append", default=[], metavar="NAME", help="column that outputs have too; may be repeated")
    command.add_argument("--rows-per-shard", type=_at_least_1, default=rows, metavar="N", help=f"rows of a shard (default: {rows})")


def _at_least_1(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _numbers(text: str) -> list[int]:
    if not all(part.isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers such as 0,3,7")
    return [int(part) for part in text.split(",")]


def connect(init: Callable[..., object], address: str, seconds: float = 300, pause: float = 1) -> None:
    """Connects to a Ray cluster. Ray starts a server for every client, and gives up after half a minute. A cluster that has just
    started or is busy may take longer, so the connection is tried again for ``seconds``.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            init(address, log_to_driver=False)
            return
        except ConnectionAbortedError:
            left = end - time.monotonic()
            if left <= 0:
                raise
            logger.warning("the Ray cluster at %s started no server for this client; asking again for %d s", address, left)
            time.sleep(pause)


@contextlib.contextmanager
def engine_of(cluster: str, workers: int | None, threads: int | None, gpus: float) -> Generator[Engine]:
    """Connects to a cluster, or starts one, and disconnects or stops it at the end."""
    kind, _, place = cluster.partition("://")
    if cluster == "local":
        yield LocalEngine(workers or 1, threads)
    elif kind == "ray" and place:
        ray, module = extra("ray", "ray"), extra("adead_models.ray", "ray")
        if place == "local":
            ray.init("local", num_cpus=(workers or 1) * (threads or 1), include_dashboard=False, log_to_driver=False)
        else:
            connect(ray.init, place if place == "auto" else cluster)
        try:
            yield module.RayEngine(workers or 1, threads or 1, gpus)
        finally:
            ray.shutdown()
    elif kind == "dask" and place:
        distributed, module = extra("distributed", "dask"), extra("adead_models.dask", "dask")
        with contextlib.ExitStack() as stack:
            address = f"tcp://{place}"
            if place == "local":
                address = stack.enter_context(
                    distributed.LocalCluster(workers or 1, threads_per_worker=threads or 1, dashboard_address=None)
                )
            client = stack.enter_context(distributed.Client(address))
            yield module.DaskEngine(client, workers, threads, {"GPU": gpus} if gpus else None)
    else:
        raise adead.InvalidArgumentError(
            f"cluster is {cluster!r}; it must be local, ray://HOST:PORT, ray://auto, ray://local, dask://HOST:PORT or dask://local"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0, or 1 with the reason on stderr."""
    args = parser().parse_args(arguments)
    terminal = Terminal(sys.stderr)
    logger.addHandler(terminal)
    logger.propagate = False
    try:
        with engine_of(args.cluster, args.workers, args.threads, args.gpus) as engine:
            lines, report = _run(args, engine, terminal)
    except (adead.Error, CheckError, WorkerLostError, ImportError, ConnectionError, OSError, RuntimeError) as error:
        terminal.close()
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        terminal.close()
        print("interrupted: the same command goes on", file=sys.stderr)
        return 130
    finally:
        logger.removeHandler(terminal)
        logger.propagate = True
    terminal.close()
    print(json.dumps(report) if args.json else "\n".join(lines))
    return 0


def _run(args: argparse.Namespace, engine: Engine, terminal: Terminal) -> tuple[list[str], dict[str, Any]]:
    common: dict[str, Any] = {
        "model": args.model,
        "engine": engine,
        "device": args.device,
        "retries": args.retries,
        "progress": terminal,
    }
    if args.kind == "check":
        checked = check(args.inputs, args.out, shards=args.shards, **common)
        return [f"{len(checked.checked)} shards with {checked.rows} rows have the manifest's hashes"], asdict(checked)
    common |= {"column": args.column, "keep": args.keep, "rows_per_shard": args.rows_per_shard}
    if args.kind == "embed":
        report = embed(args.inputs, args.out, precision=args.precision, **common)
    else:
        options: Any = {name: getattr(args, name) for name in Options.__annotations__ if getattr(args, name) is not None}
        report = generate(args.inputs, args.out, **options, **common)
    return _lines(report, args.out), asdict(report)


def _lines(report: Report, out: Path) -> list[str]:
    lines = [f"{report.rows} rows in {report.shards} shards: {len(report.computed)} computed, {len(report.skipped)} were finished"]
    if report.repeated:
        lines.append(f"repeated, as workers were lost: shards {', '.join(str(each.shard) for each in report.repeated)}")
    if report.truncated:
        lines.append(f"{report.truncated} sentences had more tokens than the model takes, and were truncated")
    return [*lines, f"sha256 {report.sha256} -> {out}"]
