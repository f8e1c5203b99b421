"""Build the extension modules, or install the pure implementation alone.

``PRESSMARK_BUILD=auto`` (the default) builds the extension modules if a C compiler works. Otherwise it prints one line
and installs the pure implementation alone. ``native`` makes a missing compiler an error. ``pure`` does not look for a
compiler.
"""

import os
import re
import runpy
import sys
import tempfile
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/pressmark/_kernels/native")
# Each extension is a folder of C files with one .pyx. The module's name begins with an underscore: without a compiled
# module, Python would import a folder of the same name as a namespace package.
FOLDERS = ("digests", "mapping", "arrow", "paths", "trees")


def compiler_problem():
    """Return why no extension can be compiled, or None. Both a compiler and Python's headers are needed."""
    from setuptools import Distribution

    command = build_ext(Distribution())
    command.finalize_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
            # build_ext itself uses new_compiler and this customisation.
            from setuptools._distutils.ccompiler import new_compiler
            from setuptools._distutils.sysconfig import customize_compiler

            compiler = new_compiler()
            customize_compiler(compiler)
            compiler.compile([str(source)], output_dir=folder, include_dirs=command.include_dirs)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def sources(folder):
    """Return the C files of an extension, except the one that Cython generates."""
    return [str(path) for path in sorted(folder.rglob("*.c")) if path.name != f"{folder.name}.c"]


def extensions():
    from Cython.Build import cythonize

    sanitize = os.environ.get("PRESSMARK_SANITIZE")
    developing = os.environ.get("PRESSMARK_DEV") == "1"
    windows = sys.platform == "win32"
    # Without debugging information, which Python's own flags ask for: most of the wheel.
    flags = ["/O2"] if windows else ["-O3", "-g0", "-fvisibility=hidden"]
    if developing and not windows:
        # For developers only: warnings of a newer compiler must not stop a user's build.
        flags += ["-Wall", "-Wextra", "-Wno-unused-function", "-Wno-sign-compare", "-Werror"]
    link = []
    if sanitize:
        flags += ["-O1", "-g", f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
        # Python's own -fwrapv would hide overflows of integers and pointers.
        flags += ["-fno-wrapv"]
        link += [f"-fsanitize={sanitize}"]
    included = [str(path) for suffix in ("*.h", "*.pxi") for path in sorted(NATIVE.rglob(suffix))]
    modules = [
        Extension(
            f"pressmark._kernels.native._{name}",
            [str(NATIVE / name / f"{name}.pyx"), *sources(NATIVE / name)],
            include_dirs=[str(NATIVE)],
            # The same definitions as in Python's own headers: on 32 bits the second one changes struct stat, which
            # files with and without Python.h share, and allows files of more than 2 GB.
            define_macros=[("_GNU_SOURCE", "1"), ("_FILE_OFFSET_BITS", "64")],
            depends=included,
            extra_compile_args=flags,
            extra_link_args=link,
        )
        for name in FOLDERS
    ]
    return cythonize(
        modules,
        include_path=["src"],
        compiler_directives={
            "language_level": 3,
            "binding": True,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "freethreading_compatible": True,
        },
    )


def modules_to_build():
    wanted = os.environ.get("PRESSMARK_BUILD", "auto")
    if wanted not in ("auto", "native", "pure"):
        sys.exit(f"PRESSMARK_BUILD={wanted}: expected auto, native or pure")
    if wanted == "pure":
        return []
    problem = compiler_problem()
    if problem is None:
        return extensions()
    if wanted == "native":
        sys.exit(f"PRESSMARK_BUILD=native, but no extension can be compiled here ({problem})")
    print(f"pressmark: no working C compiler ({problem}); installing the pure implementation", file=sys.stderr)
    return []


def package_page():
    """Return README.md with the links to files of the repository made absolute."""
    repository = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    version = runpy.run_path("src/pressmark/version.py")["__version__"]
    text = Path("README.md").read_text(encoding="utf-8")
    for link, view in ((r"(!\[[^]]*\]\()", "raw"), (r"((?<!!)\[[^]]*\]\()", "blob")):
        text = re.sub(rf"{link}(?!https:)", rf"\1{repository}/{view}/v{version}/", text)
    return text


setup(
    long_description=package_page(),
    long_description_content_type="text/markdown",
    ext_modules=modules_to_build(),
    options={"build_ext": {"parallel": os.cpu_count()}},
)
