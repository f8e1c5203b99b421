"""The extension modules, and the decision whether to build them.

``PRESSMARK_BUILD=auto`` (the default) builds them where a C compiler works and installs the pure twin alone where none
does, saying so in one line; ``native`` makes that an error; ``pure`` does not look for a compiler.
"""

import os
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/pressmark/_kernels/native")
LANES = NATIVE / "lanes"


def compiler_problem():
    """Return why no extension can be compiled here, or None: a compiler and Python's headers are both needed."""
    from setuptools import Distribution

    command = build_ext(Distribution())
    command.finalize_options()
    try:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
            # new_compiler and the platform's customisation are what build_ext itself will use.
            from setuptools._distutils.ccompiler import new_compiler
            from setuptools._distutils.sysconfig import customize_compiler

            compiler = new_compiler()
            customize_compiler(compiler)
            compiler.compile([str(source)], output_dir=folder, include_dirs=command.include_dirs)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def extensions():
    from Cython.Build import cythonize

    sanitize = os.environ.get("PRESSMARK_SANITIZE")
    developing = os.environ.get("PRESSMARK_DEV") == "1"
    windows = sys.platform == "win32"
    flags = ["/O2"] if windows else ["-O3"]
    if developing and not windows:
        # Users on newer compilers must not be stopped by warnings that we have not seen yet.
        flags += ["-Wall", "-Wextra", "-Wno-unused-function", "-Wno-sign-compare", "-Werror"]
    link = []
    if sanitize:
        flags += ["-O1", "-g", f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
        # Python's own -fwrapv would silence what is said of overflows and of pointers.
        flags += ["-fno-wrapv"]
        link += [f"-fsanitize={sanitize}"]
    headers = [str(path) for path in sorted(NATIVE.rglob("*.h"))]
    modules = []
    for source in sorted(NATIVE.glob("*.pyx")):
        lanes = [str(path) for path in sorted(LANES.glob("*.c"))] if source.stem == "digests" else []
        modules.append(
            Extension(
                f"pressmark._kernels.native.{source.stem}",
                [str(source), *lanes],
                include_dirs=[str(NATIVE)],
                depends=headers,
                extra_compile_args=flags,
                extra_link_args=link,
            )
        )
    return cythonize(
        modules,
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


setup(
    ext_modules=modules_to_build(),
    options={"build_ext": {"parallel": os.cpu_count()}},
)
