"""Builds the wheel: cargo makes the library, which goes in beside the Python files."""

import json
import platform
import re
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT = Path(__file__).resolve().parents[2]


class Metadata(MetadataHookInterface):
    def update(self, metadata):
        metadata["dependencies"] = [f"adead=={metadata['version']}", "numpy>=1.26"]


class Build(BuildHookInterface):
    def initialize(self, version, build_data):
        self.folder = tempfile.TemporaryDirectory()
        library = stripped(built(), Path(self.folder.name))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(library)}"
        build_data["force_include"][str(library)] = f"adead_models/{library.name}"

    def finalize(self, version, build_data, artifact_path):
        self.folder.cleanup()


def built():
    """The library, from cargo; nothing is built again that is there."""
    command = ["cargo", "build", "--release", "--locked", "-p", "adead-models-c", "--message-format=json-render-diagnostics"]
    messages = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for message in map(json.loads, messages.splitlines()):
        # A dependency may be a library for C too.
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "adead_models" and "cdylib" in message["target"]["kind"]:
            return Path(message["filenames"][0])
    raise RuntimeError("cargo built no library")


def stripped(library, folder):
    copy = folder / library.name
    shutil.copy(library, copy)
    if shutil.which("strip"):
        subprocess.run(["strip", "-x" if platform.system() == "Darwin" else "--strip-unneeded", copy], check=True)
    return copy


def platform_tag(library):
    """The oldest manylinux that has the versions of glibc's functions that the library asks for (PEP 600); it needs no other
    library. Elsewhere the platform of this Python."""
    versions = [tuple(map(int, found)) for found in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", library.read_bytes())]
    if not versions:
        return re.sub(r"[-.]", "_", sysconfig.get_platform())
    major, minor = max(versions)
    return f"manylinux_{major}_{minor}_{platform.machine()}"
