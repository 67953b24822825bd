"""Describes the machine, and finds the environment in which a Vulkan program finds its driver."""

import ctypes
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

# Where loaders look for drivers, besides the folders that the environment names.
STANDARD = ["/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"]
# Where container images put NVIDIA's driver.
ELSEWHERE = ["/usr/local/nvidia", "/usr/local/cuda", "/usr/lib/nvidia*", "/usr/lib64/nvidia*", "/opt/nvidia", "/run/opengl-driver"]
LIBRARIES = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
             "/usr/lib/aarch64-linux-gnu", "/run/opengl-driver/lib"]  # fmt: skip
# sys.executable is empty without a PATH.
PYTHON = sys.executable or os.readlink("/proc/self/exe")


def loads(library, environment):
    """Returns whether a process with that environment can load the library."""
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    return subprocess.run([PYTHON, "-c", code, library], env=environment, capture_output=True).returncode == 0


def extended(environment, *folders):
    """Returns the environment with folders put first in the library path."""
    if not folders:
        return environment
    kept = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return environment | {"LD_LIBRARY_PATH": ":".join([*map(str, folders), *kept])}


def manifests(folders):
    return sorted(name for folder in folders for name in glob.glob(f"{folder}/*.json"))


def vulkan(bundle, scratch, environment, finds_gpu):
    """Returns an environment in which Vulkan works, and notes on what was changed. `finds_gpu` tells whether it works in a given
    environment. Changes are tried until it does, because drivers load libraries that no file lists."""
    notes = []
    if not loads("libvulkan.so.1", environment):
        environment = extended(environment, bundle / "lib/loader")
        found = loads("libvulkan.so.1", environment)
        notes.append("the bundle's loader is used: the machine has none" if found else "no loader can be loaded")
    nvidia = bool(glob.glob("/dev/nvidia[0-9]*")) or Path("/proc/driver/nvidia/version").exists()
    if not nvidia or finds_gpu(environment):
        return environment, notes
    drivers = [None]
    if not any(environment.get(name) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")):
        standard = manifests(STANDARD)
        elsewhere = {name for folder in ELSEWHERE for name in glob.glob(f"{folder}/**/nvidia_icd*.json", recursive=True)}
        drivers += [[name, *standard] for name in sorted(elsewhere)]
        for library in [name for folder in LIBRARIES for name in glob.glob(f"{folder}/libGLX_nvidia.so.0")]:
            made = scratch / f"nvidia_icd-{len(drivers)}.json"
            icd = {"library_path": library, "api_version": "1.3.0"}
            made.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": icd}))
            drivers.append([str(made), *standard])
    own = [folder for folder in LIBRARIES[:2] if os.path.isdir(folder)]
    for files in drivers:
        named = {"VK_DRIVER_FILES": ":".join(files), "VK_ICD_FILENAMES": ":".join(files)} if files else {}
        for folders in ([], [bundle / "lib/driver"], own, [bundle / "lib/driver", *own]):
            wider = extended(environment | named, *folders)
            if finds_gpu(wider):
                notes += [f"NVIDIA's driver is named by {files[0]}"] if files else []
                notes += [f"libraries that it loads are in {', '.join(map(str, folders))}"] if folders else []
                return wider, notes
    return environment, [*notes, f"there is an NVIDIA GPU, and no way to it in {4 * len(drivers)} tries"]


def first_line(path, start):
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(start)), "")


def output(*command):
    """Returns what a command prints, or None if it is missing or fails."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else None


def facts():
    """Returns facts about the host and NVIDIA's GPUs."""
    fields = ["name", "uuid", "driver_version", "vbios_version", "memory.total", "pcie.link.gen.max", "pcie.link.width.max",
              "clocks.max.sm", "clocks.max.memory", "power.limit", "compute_mode", "mig.mode.current"]  # fmt: skip
    table = output("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader")
    gpus = [dict(zip(fields, map(str.strip, line.split(",")))) for line in (table or "").splitlines()]
    gnu = ctypes.CDLL(None)
    gnu.gnu_get_libc_version.restype = ctypes.c_char_p
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": gnu.gnu_get_libc_version().decode(),
        "python": platform.python_version(),
        "cpu": first_line("/proc/cpuinfo", "model name"),
        "threads": len(os.sched_getaffinity(0)),
        "memory": first_line("/proc/meminfo", "MemTotal"),
        "nvidia_smi": gpus,
    }
