"""Embeds and generates over Parquet files, on this machine or a cluster, with the same hash on any machines.

``embed`` and ``generate`` cut the inputs into shards, place them on workers, and write an output file for each shard and a manifest
with its hash. ``check`` computes shards again and compares. The guide: https://adead.github.io/adead/clusters.html.
The command is ``python -m adead_models.cluster``. Needs pyarrow: ``pip install adead-models[cluster]``.
"""

from ._drive import Repeat as Repeat
from ._drive import WorkerLostError as WorkerLostError
from ._engine import Engine as Engine
from ._job import Input as Input
from ._job import Job as Job
from ._job import Shard as Shard
from ._local import LocalEngine as LocalEngine
from ._manifest import Entry as Entry
from ._manifest import read_manifest as read_manifest
from ._progress import Status as Status
from ._run import CheckError as CheckError
from ._run import CheckReport as CheckReport
from ._run import Report as Report
from ._run import check as check
from ._run import embed as embed
from ._run import generate as generate

__all__ = [
    "CheckError",
    "CheckReport",
    "Engine",
    "Entry",
    "Input",
    "Job",
    "LocalEngine",
    "Repeat",
    "Report",
    "Shard",
    "Status",
    "WorkerLostError",
    "check",
    "embed",
    "generate",
    "read_manifest",
]
