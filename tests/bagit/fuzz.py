"""Fuzz the readers of bags, and validation: ``python tests/bagit/fuzz.py [SECONDS [SEED [CASE]]]``.

Seed and number determine a case. The last line of the output is the number of cases.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from bagit.fuzz_grammar import Grammar, mutated
from bagit.fuzz_guard import Guard
from pressmark.bagit.bag_info import BagInfo, check_elements
from pressmark.bagit.bagit_txt import declaration_bytes, read_declaration
from pressmark.bagit.encodings import find_charset
from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, is_absolute_uri, read_fetch
from pressmark.bagit.manifest import ManifestEntry, read_manifest
from pressmark.bagit.manifest_format import manifest_line
from pressmark.bagit.manifest_index import Listing, ManifestSource
from pressmark.bagit.paths import canonical, why_unsafe
from pressmark.bagit.problems import KINDS
from pressmark.reports import Problem
from support.implementations import implementations_to_test, use

# In KiB, above the use of the interpreter and imports.
MEMORY = 160 << 10
VERSIONS = ((0, 93), (0, 96), (0, 97), (1, 0))
CHARSETS = (
    "UTF-8",
    "UTF-8",
    "UTF-8",
    "UTF-16",
    "UTF-16LE",
    "UTF-32",
    "ISO-8859-1",
    "Shift_JIS",
    "UTF-7",
    "US-ASCII",
    "GB18030",
)
FILES = {
    **{b"data/a.txt": b"alpha\n", b"data/b/c.txt": b"beta\n", b"data/100%": b"x", b"data/line\nfeed": b"y"},
    **{b"data/\xc3\xa9": b"e", b"data/e\xcc\x81": b"f", b"data/\xff": b"g", b"data/A.TXT": b"h", b"data/%25": b"i"},
    **{b"data/ x ": b"j", b"data/a\\b": b"k", b"tags/t.txt": b"l", b"data/.keep": b""},
}


class Fuzzer:
    """Runs cases.

    :param seed: the seed of all cases
    :param folder: an empty directory, in which ``bag`` and ``outside`` are created
    """

    def __init__(self, seed: int, folder: bytes) -> None:
        self.seed = seed
        self.folder = folder
        self.bag = os.path.join(folder, b"within", b"bag")
        self.outside = os.path.join(folder, b"outside")
        self.kinds: Counter[str] = Counter()
        # A directory's own file, one beside the bag with a similar name, and a home directory.
        self.forbidden = [self.outside, self.bag + b"-evil"]
        for directory in self.forbidden:
            os.makedirs(directory)
            Path(os.fsdecode(directory), "secret").write_bytes(b"alpha\n")
            Path(os.fsdecode(directory), "bagit.txt").write_bytes(declaration_bytes())
        os.environ["HOME"] = os.fsdecode(self.outside)
        self.guard = Guard(self.forbidden, [self.bag, sys.prefix.encode(), sys.base_prefix.encode(), *self._imports()])

    @staticmethod
    def _imports() -> list[bytes]:
        # Modules imported on first use, the numbers of threads and processors, and the
        # validation's own temporary files.
        return [
            *map(os.fsencode, filter(None, sys.path)),
            b"/sys",
            b"/proc",
            b"/dev",
            os.fsencode(tempfile.gettempdir()),
        ]

    def case(self, number: int) -> str:
        """Run one case and return its description."""
        random = Random(f"{self.seed}:{number}")
        targets: tuple[Callable[[Random], None], ...] = (
            *(self.manifest, self.manifest, self.listing, self.listing, self.info, self.fetch, self.declaration),
            self.whole,
        )
        target = random.choice(targets)
        target(random)
        return target.__name__

    def grammar(self, random: Random) -> Grammar:
        return Grammar(random, FILES, self.outside)

    def known(self, problems: list[Problem]) -> None:
        for one in problems:
            assert one.kind in KINDS, one
            assert one.severity in ("error", "warning"), one
            assert "\n" not in one.message, one
            assert "\r" not in one.message, one
            assert len(one.message) < 2000, one
            assert isinstance(one.path, str), one
            assert str(one.record()), one
            self.kinds[one.kind] += 1

    # --- the readers

    def manifest(self, random: Random) -> None:
        """Entries are safe, problems known, and what was read can be written and read again."""
        grammar, encoding, tag = self.grammar(random), random.choice(CHARSETS), random.random() < 0.3
        algorithm, version = random.choice(("md5", "sha512", "sha3-256", "crc12")), random.choice(VERSIONS)
        data = mutated(random, grammar.encoded(grammar.manifest(algorithm), encoding))
        entries, problems = [], []
        for found in read_manifest(io.BytesIO(data), b"manifest", algorithm, encoding, version, tag=tag):
            if isinstance(found, Problem):
                problems.append(found)
            else:
                entries.append(found)
        self.known(problems)
        for entry in entries:
            assert why_unsafe(entry.path) is None, entry
            assert canonical(entry.path) == (entry.path, False), entry
            assert entry.path.startswith(b"data/") != tag, entry
        # It is written for 1.0, where tag manifests are not listed.
        listable = [entry for entry in entries if not (tag and entry.path.startswith(b"tagmanifest-"))]
        good = [entry for entry in listable if entry.digest]
        written = b"".join(manifest_line(entry.digest, entry.path) for entry in good)
        again = [
            (entry.digest, entry.path)
            for entry in read_manifest(io.BytesIO(written), b"manifest", algorithm, tag=tag)
            if isinstance(entry, ManifestEntry)
        ]
        assert again == [(entry.digest, entry.path) for entry in good]

    def listing(self, random: Random) -> None:
        """Listings are dictionaries, equal in both implementations."""
        grammar, encoding, tag = self.grammar(random), random.choice(CHARSETS), random.random() < 0.2
        version = random.choice(VERSIONS)
        data = {
            algorithm: mutated(random, grammar.encoded(grammar.manifest(algorithm), encoding))
            for algorithm in random.sample(("md5", "sha256", "crc12"), random.randint(1, 3))
        }
        expected: dict[bytes, dict[str, str]] = {}
        for algorithm, content in data.items():
            for found in read_manifest(io.BytesIO(content), b"M", algorithm, encoding, version, tag=tag):
                if isinstance(found, ManifestEntry):
                    expected.setdefault(found.path, {}).setdefault(algorithm, found.digest)
        name = random.choice((b"manifest-md5.txt", b"manifest-\n\xff.txt"))
        asked = [*expected, *(grammar.path() for _ in range(5))]
        answers = []
        for implementation in implementations_to_test():
            sources = [ManifestSource(name, algorithm, io.BytesIO(content)) for algorithm, content in data.items()]
            with use(implementation), Listing(sources, encoding, version, tag=tag) as made:
                self.known(made.problems)
                assert dict(made.entries()) == expected
                assert len(made) == len(expected)
                answers.append(
                    (
                        made.problems,
                        list(made.collisions()),
                        [made.find(path, mark=True) for path in asked[::2]],
                        [made.find_respelled(path) for path in asked],
                        list(made.unmarked()),
                    )
                )
        assert all(answer == answers[0] for answer in answers)

    def info(self, random: Random) -> None:
        """Unchanged bytes are kept, and written elements are read back."""
        grammar, encoding, version = self.grammar(random), random.choice(CHARSETS), random.choice(VERSIONS)
        data = mutated(random, grammar.encoded(grammar.info(), encoding))
        info, problems = BagInfo.parse(data, encoding, version)
        self.known(problems)
        self.known(check_elements(info))
        assert info.to_bytes() == data
        for label, value in info.elements:
            with contextlib.suppress(ValueError):
                info[label] = value
        charset = find_charset(encoding)
        assert charset is not None
        kept: list[tuple[str, str]] = []
        copy = BagInfo(encoding=encoding)
        for label, value in info.elements:
            with contextlib.suppress(ValueError):
                copy.add(label, value)
                kept.append(copy.elements[-1])
        if encoding != "UTF-7":
            again, _ = BagInfo.parse(copy.to_bytes(), encoding)
            assert again.elements == kept == copy.elements

    def fetch(self, random: Random) -> None:
        """Entries are in the payload, and are read back."""
        grammar, encoding, version = self.grammar(random), random.choice(CHARSETS), random.choice(VERSIONS)
        data = mutated(random, grammar.encoded(grammar.fetch(), encoding))
        found = list(read_fetch(io.BytesIO(data), encoding, version))
        self.known([one for one in found if isinstance(one, Problem)])
        good = []
        for entry in found:
            if isinstance(entry, FetchEntry):
                assert why_unsafe(entry.path) is None, entry
                assert entry.path.startswith(b"data/"), entry
                assert canonical(entry.path) == (entry.path, False), entry
                if is_absolute_uri(entry.url):
                    good.append(entry._replace(line=0))
        written = b"".join(map(fetch_line, good))
        again = [entry._replace(line=0) for entry in read_fetch(io.BytesIO(written)) if isinstance(entry, FetchEntry)]
        assert again == good

    def declaration(self, random: Random) -> None:
        """There is always a version and a known encoding."""
        data = mutated(random, self.grammar(random).declaration())
        declaration, problems = read_declaration(data)
        self.known(problems)
        assert find_charset(declaration.encoding) is not None
        assert read_declaration(declaration_bytes(declaration))[0] == declaration

    # --- bags -----

    def whole(self, random: Random) -> None:
        """Any bag is validated without an exception, and no file outside of it is opened."""
        from pressmark.bagit.validation.validate import validate

        shutil.rmtree(self.bag, ignore_errors=True)
        os.makedirs(self.bag)
        self.make(random)
        implementation = random.choice(implementations_to_test())
        level = random.choice(("full", "full", "full", "complete", "oxum"))
        self.guard.seen()
        self.guard.on = True
        try:
            with use(implementation):
                report = validate(self.bag, level, lenient=random.random() < 0.3, threads=random.choice((1, 2)))
        finally:
            self.guard.on = False
        self.known(report.problems)
        assert report.ok == (not report.errors)
        seen = self.guard.seen()
        assert not seen, f"opened outside of the bag: {seen}"

    def make(self, random: Random) -> None:
        """Write a bag, or a similar directory."""
        grammar = self.grammar(random)
        there = random.sample(list(FILES), random.randint(0, len(FILES)))
        if random.random() < 0.95:
            os.makedirs(os.path.join(self.bag, b"data"))
        for path in there:
            whole = os.path.join(self.bag, path)
            os.makedirs(os.path.dirname(whole), exist_ok=True)
            Path(os.fsdecode(whole)).write_bytes(FILES[path])
        links = {
            b"data/link-out": self.outside,
            b"data/link-out.txt": os.path.join(self.outside, b"secret"),
            b"data/link-up": b"../../../outside/secret",
            b"data/link-evil": b"../../bag-evil/secret",
            b"data/link-in": b"a.txt",
            b"data/link-loop": b"link-loop",
            b"data/link-here": b".",
            b"link-tags": self.outside,
            b"manifest-sha1.txt": os.path.join(self.outside, b"secret"),
            b"bag-info.txt": b"../../outside/secret",
        }
        often = random.choice((0.0, 0.02, 0.15))
        for path, target in links.items():
            if random.random() < often:
                with contextlib.suppress(OSError):
                    os.symlink(target, os.path.join(self.bag, path))
        if random.random() < 0.1:
            with contextlib.suppress(OSError):
                os.mkfifo(os.path.join(self.bag, random.choice((b"data/pipe", b"pipe", b"manifest-md5.txt"))))
        good = random.random() < 0.5
        files = self.nearly_good(random, grammar, there) if good else self.anything(random, grammar)
        for name, content in files.items():
            path = os.path.join(self.bag, name)
            if not os.path.lexists(path):
                Path(os.fsdecode(path)).write_bytes(content)

    @staticmethod
    def nearly_good(random: Random, grammar: Grammar, there: list[bytes]) -> dict[bytes, bytes]:
        """Return the tag files of a bag that are correct except one."""
        payload = [path for path in there if path.startswith(b"data/")]
        files = {b"bagit.txt": declaration_bytes(), b"bag-info.txt": grammar.info() if random.random() < 0.3 else b""}
        for algorithm in random.sample(("md5", "sha512", "sha256", "crc12"), random.choice((1, 1, 2))):
            files[b"manifest-%b.txt" % algorithm.encode()] = grammar.whole_manifest(algorithm, payload)
        if payload and random.random() < 0.3:
            entries = [FetchEntry("https://example.org/x", None, path) for path in random.sample(payload, 1)]
            files[b"fetch.txt"] = b"".join(map(fetch_line, entries))
        listed = {**files, b"tags/t.txt": FILES[b"tags/t.txt"]}
        lines = [manifest_line(hashlib.md5(content).hexdigest(), name) for name, content in listed.items()]
        files[b"tagmanifest-md5.txt"] = b"".join(lines)
        if random.random() < 0.8:
            name = random.choice(list(files))
            files[name] = mutated(random, files[name])
        return files

    @staticmethod
    def anything(random: Random, grammar: Grammar) -> dict[bytes, bytes]:
        """Return arbitrary tag files."""
        declaration = grammar.declaration()
        encoding = read_declaration(declaration)[0].encoding
        files = {b"bagit.txt": declaration, b"bag-info.txt": grammar.info()}
        for algorithm in random.sample(
            ("md5", "sha512", "sha3_256", "crc12", "SHA256"), random.choice((0, 1, 1, 2, 3))
        ):
            files[b"manifest-%b.txt" % algorithm.encode()] = grammar.manifest(algorithm)
        if random.random() < 0.5:
            replacement = random.choice((b"", b"data/", b"tags/"))
            files[b"tagmanifest-md5.txt"] = grammar.manifest("md5").replace(b"data/", replacement)
        if random.random() < 0.3:
            files[b"fetch.txt"] = grammar.fetch()
        return {
            name: content if name == b"bagit.txt" else mutated(random, grammar.encoded(content, encoding))
            for name, content in files.items()
            if random.random() < 0.95
        }


def memory() -> int:
    """Return the peak memory of this process in KiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> 10 if sys.platform == "darwin" else peak


def main(arguments: list[str]) -> int:
    """Run cases for this many seconds, or the given one; return the exit status."""
    seconds = float(arguments[0]) if arguments else 60.0
    seed = int(arguments[1]) if len(arguments) > 1 else int.from_bytes(os.urandom(4), "big")
    only = int(arguments[2]) if len(arguments) > 2 else None
    print(f"seed {seed}", flush=True)
    counts: Counter[str] = Counter()
    begun = said = time.monotonic()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="pressmark-fuzz-") as folder:
        fuzzer = Fuzzer(seed, os.fsencode(os.path.realpath(folder)))
        number = only or 0
        before = None
        while True:
            try:
                counts[fuzzer.case(number)] += 1
            except Exception:
                failures += 1
                print(f"FAILED: repeat it with tests/bagit/fuzz.py 0 {seed} {number}", flush=True)
                traceback.print_exc(limit=-6)
                if failures >= 20:
                    break
            number += 1
            # By then, one-time allocations are complete.
            if number == 500:
                before = memory()
            now = time.monotonic()
            if now - said > 60:
                said = now
                print(f"{now - begun:.0f} s, {number} cases, {failures} failures, {memory() >> 10} MiB", flush=True)
            if only is not None or now - begun >= seconds:
                break
        # Other owners or modes do not occur, but leftovers may be pipes or loops.
        shutil.rmtree(fuzzer.bag, ignore_errors=True)
    if before is not None and memory() - before > MEMORY:
        failures += 1
        print(f"FAILED: memory grew from {before} to {memory()} KiB")
    cases = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    print(f"problems of {len(fuzzer.kinds)} kinds: {', '.join(f'{k} {n}' for k, n in fuzzer.kinds.most_common())}")
    print(f"{sum(counts.values())} cases in {time.monotonic() - begun:.0f} s ({cases}), {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
