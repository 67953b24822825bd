"""What machine this is, and what has to be set for a Vulkan program to find its driver."""

import ctypes
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

# Where loaders look for drivers, besides what the environment names.
STANDARD = ["/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"]
# Where images put NVIDIA's driver.
ELSEWHERE = ["/usr/local/nvidia", "/usr/local/cuda", "/usr/lib/nvidia*", "/usr/lib64/nvidia*", "/opt/nvidia", "/run/opengl-driver"]
LIBRARIES = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
             "/usr/lib/aarch64-linux-gnu", "/run/opengl-driver/lib"]  # fmt: skip
# Python does not know where it is where there is no PATH.
PYTHON = sys.executable or os.readlink("/proc/self/exe")


def loads(library, environment):
    """Whether a process with that environment can load it; why not."""
    code = "import ctypes, sys\ntry: ctypes.CDLL(sys.argv[1])\nexcept OSError as error: sys.exit(str(error))"
    done = subprocess.run([PYTHON, "-c", code, library], env=environment, capture_output=True, text=True)
    return done.returncode == 0, done.stderr.strip()


def extended(environment, *folders):
    """With folders before the others that libraries are looked for in."""
    kept = [folder for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return environment | {"LD_LIBRARY_PATH": ":".join([*map(str, folders), *kept])}


def manifests(folders):
    return sorted(name for folder in folders for name in glob.glob(f"{folder}/*.json"))


def library_of(manifest):
    """The driver's library that a manifest names, as the dynamic linker is given it."""
    try:
        named = json.loads(Path(manifest).read_text())["ICD"]["library_path"]
    except (OSError, ValueError, KeyError):
        return None
    return str((Path(manifest).parent / named).resolve()) if "/" in named and not named.startswith("/") else named


def vulkan(bundle, scratch, environment):
    """The environment in which Vulkan is found, and what was done for it."""
    notes = []
    found, why = loads("libvulkan.so.1", environment)
    if not found:
        environment = extended(environment, bundle / "lib/loader")
        found, why = loads("libvulkan.so.1", environment)
        notes.append("the bundle's loader is used: the machine has none" if found else f"no loader can be loaded: {why}")
    if any(environment.get(name) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")):
        notes.append("the environment names the drivers")
        return environment, notes
    data = [f"{folder}/vulkan/icd.d" for folder in environment.get("XDG_DATA_DIRS", "").split(":") if folder]
    home = [f"{environment['HOME']}/.local/share/vulkan/icd.d"] if environment.get("HOME") else []
    standard = manifests([*STANDARD, *data, *home])
    chosen = [name for name in standard if "nvidia" in Path(name).name]
    nvidia = bool(glob.glob("/dev/nvidia[0-9]*")) or Path("/proc/driver/nvidia/version").exists()
    if nvidia and not chosen:
        elsewhere = [name for folder in ELSEWHERE for name in glob.glob(f"{folder}/**/nvidia_icd*.json", recursive=True)]
        if elsewhere:
            chosen = sorted(elsewhere)[:1]
            notes.append(f"NVIDIA's driver is named by {chosen[0]}, which no loader would find by itself")
        else:
            libraries = [name for folder in LIBRARIES for name in glob.glob(f"{folder}/libGLX_nvidia.so.0")]
            if libraries:
                made = scratch / "nvidia_icd.json"
                icd = {"library_path": libraries[0], "api_version": "1.3.0"}
                made.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": icd}))
                chosen = [str(made)]
                notes.append(f"nothing names NVIDIA's driver; {libraries[0]} is taken for it")
            else:
                notes.append("there is an NVIDIA GPU, and no Vulkan driver for it was found")
        if chosen:
            files = ":".join([*chosen, *standard])
            environment = environment | {"VK_DRIVER_FILES": files, "VK_ICD_FILENAMES": files}
    for manifest in chosen:
        library = library_of(manifest)
        if library is None:
            notes.append(f"{manifest} can't be read")
            continue
        found, why = loads(library, environment)
        for folders in ([*filter(os.path.isdir, LIBRARIES[:2])], [bundle / "lib/driver"]):
            if not found and folders:
                notes.append(f"{library} could not be loaded: {why}")
                wider = extended(environment, *folders)
                found, why = loads(library, wider)
                if found:
                    environment = wider
                    notes.append(f"it can be with {', '.join(map(str, folders))}")
        if not found:
            notes.append(f"{library} can't be loaded: {why}")
    return environment, notes


def first_line(path, start):
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(start)), "")


def output(*command):
    """What a command prints, or None where there is no such command or it fails."""
    if not shutil.which(command[0]):
        return None
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else None


def facts():
    """About the host and NVIDIA's GPUs."""
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
