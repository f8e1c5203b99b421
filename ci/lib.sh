# Shared by the scripts in this folder, which source it.
set -euo pipefail
# Compiled tests are kept: stages copy them.
unset PYTHONDONTWRITEBYTECODE

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Options of pytest. One process more than there are processors: many tests wait for time to pass, or for other processes.
parallel=(-n $(($(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# The first CPython of at least 3.11 among $PYTHON and the usual names.
find_python() {
    local name
    for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
        if [ -n "$name" ] && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    fail "CPython 3.11 or newer not found; set PYTHON"
}

# environment NAME [EXTRA]: creates a virtual environment build/NAME with the packages for building Pressmark and for an
# extra of pyproject.toml, and sets $python to its Python. It is kept until pyproject.toml changes.
environment() {
    local base folder=$root/build/$1
    base=$(find_python)
    python=$folder/bin/python
    mkdir -p build
    "$base" - "${@:2}" >"build/$1.wanted" <<'END'
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
print("#", sys.executable, sys.version)
print(*settings["build-system"]["requires"], sep="\n")
for extra in sys.argv[1:]:
    print(*project["dependencies"], *project["optional-dependencies"][extra], sep="\n")
END
    if ! cmp -s "build/$1.wanted" "$folder/requirements.txt"; then
        rm -rf "$folder"
        "$base" -m venv "$folder" || fail "$base cannot create virtual environments (Debian: install python3-venv)"
        "$python" -m pip install --quiet -r "build/$1.wanted"
        cp "build/$1.wanted" "$folder/requirements.txt"
    fi
}

# environment_like NAME OTHER: creates a virtual environment build/NAME that finds the packages of build/OTHER.
environment_like() {
    local other=$root/build/$2/bin/python packages='import sysconfig; print(sysconfig.get_path("purelib"))'
    rm -rf "build/$1"
    "$other" -m venv --without-pip "build/$1"
    python=$root/build/$1/bin/python
    "$other" -c "$packages" >"$("$python" -c "$packages")/packages.pth"
}

# build_wheel SOURCE FOLDER: builds the wheel of a source tree in FOLDER, in the environment build/build, and sets
# $wheel to its path.
build_wheel() {
    rm -rf "$2" "$1"/build/lib* "$1"/build/temp* "$1"/build/bdist*
    mkdir -p "$2"
    "$root/build/build/bin/python" -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$2" "$1" \
        >"$2/log" 2>&1 || { tail -50 "$2/log"; exit 1; }
    wheel=$(ls "$2"/*.whl)
}

# install: installs $wheel into the environment of $python.
install() {
    "$root/build/build/bin/python" -m pip --python "$python" install --quiet --force-reinstall --no-deps "$wheel"
}

# stage NAME: creates a folder build/NAME with everything that tests need except the source tree, so that they import the
# installed package. Times are kept, so that compiled tests stay valid.
stage() {
    rm -rf "build/$1"
    mkdir -p "build/$1"
    cp -Rp tests ci docs examples mkdocs.yml pyproject.toml README.md CHANGELOG.md "build/$1"
    cd "build/$1"
}

# programs NAME[=PACKAGE,...]...: installs the Debian packages of these programs, by default those of the same name, if this
# user may. Tests of a missing program are skipped.
programs() {
    local name packages missing=() as=
    for name in "$@"; do
        packages=${name#*=}
        command -v "${name%%=*}" >/dev/null || missing+=(${packages//,/ })
    done
    [ ${#missing[@]} != 0 ] || return 0
    [ "$(id -u)" = 0 ] || as="sudo -n"
    { command -v apt-get && $as apt-get -q update; } >build/apt.log 2>&1 || true
    # One that a release lacks must not keep the others away.
    for name in ${missing[1]:+"${missing[*]}"} "${missing[@]}"; do
        # shellcheck disable=SC2086 - the first name is all of them
        if $as apt-get -q install -y --no-install-recommends $name >>build/apt.log 2>&1; then
            [ "$name" != "${missing[*]}" ] || return 0
        elif [ "$name" != "${missing[*]}" ] || [ ${#missing[@]} = 1 ]; then
            echo "not installed: $name; tests that use it are skipped"
        fi
    done
}

# Puts temporary files on a file system in memory, if possible: tests flush many files to disk.
temporary_files() {
    if [ -w /dev/shm ]; then
        TMPDIR=$(mktemp -d /dev/shm/pressmark-test-XXXXXX)
        chmod 711 "$TMPDIR" # some tests act as another user
        export TMPDIR
        trap 'chmod -R u+rwX "$TMPDIR" && rm -rf "$TMPDIR"' EXIT
    fi
}
