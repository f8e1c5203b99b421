# Shared by the scripts of this folder: sourced, never run.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The first CPython of at least 3.11 among $PYTHON and the usual names.
find_python() {
    local name
    for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
        if [ -n "$name" ] && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    fail "no CPython 3.11 or newer found; name one in PYTHON"
}

# environment NAME [BESIDE]: a fresh virtual environment build/NAME, its python in $python. What build/BESIDE has is there, too, if that
# has been made: installing all that tests need takes longer than many of them.
environment() {
    local base beside=$root/build/${2:-}/bin/python packages='import sysconfig; print(sysconfig.get_path("purelib"))'
    base=$(find_python)
    python=$root/build/$1/bin/python
    rm -rf "$root/build/$1"
    "$base" -m venv "$root/build/$1" || fail "$base cannot make virtual environments (Debian: install python3-venv)"
    "$python" -m pip install --quiet --upgrade pip setuptools
    if [ -n "${2:-}" ] && [ -x "$beside" ]; then
        "$beside" -c "$packages" >"$("$python" -c "$packages")/beside.pth"
    fi
}

# is_native FILE...: whether a built wheel holds the extension modules.
is_native() { case "$1" in *-none-any.whl) return 1 ;; esac; }
