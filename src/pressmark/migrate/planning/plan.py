"""A finished plan: every object with its path in the destination.

:mod:`pressmark.migrate.workdir` lists the files of a plan.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pressmark.errors import JobError, MigrationError, quoted, quoted_path
from pressmark.fs.atomic import replace_file
from pressmark.fs.beneath import read_regular
from pressmark.fs.owners import UntrustedError, require_shared
from pressmark.migrate.entry import Entry, file_lines, read_entries
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import Options
from pressmark.migrate.workdir import ENTRIES, MAP, PLAN, REFUSED, is_of_earlier_format
from pressmark.summaries import format_bytes

__all__ = ["Plan", "refuse_others", "utc_now", "write_record"]

_NAME = "extensionName"


@dataclass(frozen=True, repr=False)
class Plan:
    """A plan, and the size of its migration.

    :ivar work: the work folder
    :ivar options: options of the migration
    :ivar objects: number of objects to migrate
    :ivar files: number of their files
    :ivar bytes: total size of their files
    :ivar chunks: number of chunks
    :ivar mode: the expected copy mode: ``rename``, ``reflink``, ``copy`` or ``hardlink``
    :ivar invalid: number of invalid source objects, which are left out
    :ivar missing: number of identifiers in the list that are not in the source
    :ivar unchanged: number of objects that have not changed since the earlier runs (catch-up only)
    :ivar warnings: number of warnings of each kind, which ``warnings.jsonl`` lists
    :ivar sha256: SHA-256 of the entries
    :ivar known_sha256: SHA-256 of the rows of objects that are left out
    :ivar map_sha256: SHA-256 of the map; empty without a map
    :ivar ids_sha256: SHA-256 of the listed identifiers; empty without a list
    :ivar seconds: duration of planning
    :ivar before: work folder of the earlier run, relative to this one (catch-up only)
    :ivar requests: about how many requests the run sends to object storage
    """

    work: str
    options: Options
    objects: int
    files: int
    bytes: int
    chunks: int
    mode: str
    invalid: int = 0
    missing: int = 0
    unchanged: int = 0
    warnings: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""
    known_sha256: str = ""
    map_sha256: str = ""
    ids_sha256: str = ""
    seconds: float = 0.0
    before: str | None = None
    requests: int = 0

    def __repr__(self) -> str:
        return f"<Plan {self.work!r}: {self._totals()}, {self.options.source_kind} to {self.options.to}>"

    def _repr_html_(self) -> str:
        from pressmark.summaries import html_table  # only notebooks need it

        options = self.options
        rows: list[tuple[str, Any]] = [
            ("source", f"{options.source} ({options.source_kind})"),
            ("destination", f"{options.destination} ({options.to})"),
            *((name, getattr(self, name)) for name in ("mode", "chunks")),
            *((name, getattr(self, name)) for name in ("invalid", "missing", "unchanged") if getattr(self, name)),
            *((f"warning {kind}", number) for kind, number in self.warnings.items()),
        ]
        return html_table(f"Plan: {self._totals()}", ("", ""), rows)

    def _totals(self) -> str:
        return f"{self.objects:,} objects, {self.files:,} files, {format_bytes(self.bytes)}"

    def entries(self) -> Iterator[Entry]:
        """Return the entry of every object, in the order of migration."""
        return read_entries(os.path.join(self.work, ENTRIES))

    def chain(self) -> Iterator[Plan]:
        """Yield this plan, the plan of the run that it caught up with, and so on to the first run.

        :raises MigrationError: the work folder of a run is missing
        """
        plan = self
        yield plan
        while plan.before is not None:
            folder = os.path.normpath(os.path.join(plan.work, plan.before))
            if not os.path.isdir(folder):
                what = f"work folder of the previous run not found: {quoted_path(folder)}; restore it"
                raise MigrationError(plan.options.source, plan.options.destination, what)
            plan = Plan.open(folder)
            yield plan

    def new_ids(self) -> Iterator[tuple[str, str]] | None:
        """Yield the old and new identifiers of the map; return :data:`None` if the plan had no map.

        :raises MigrationError: the file of the map is missing, or was changed
        """
        if not self.map_sha256:
            return None
        path = os.path.join(self.work, MAP)
        try:
            found = sha256_of(path)
        except JobError:
            found = None
        # With a damaged map, changed objects would get their old identifiers again.
        if found != self.map_sha256:
            what = f"{path} is missing or was changed; restore it, or specify a map of all objects"
            raise MigrationError(self.options.source, self.options.destination, what)
        return _pairs(path)

    def record(self) -> dict[str, object]:
        """Return the JSON object of the plan."""
        return {**asdict(self), "options": self.options.record()}

    def summary(self) -> dict[str, object]:
        """Return the JSON object of the plan without its options and digests."""
        left_out = ("options", "sha256", "known_sha256", "map_sha256", "ids_sha256")
        return {key: value for key, value in self.record().items() if key not in left_out}

    @classmethod
    def of(cls, plan_or_work: Plan | str | os.PathLike[str]) -> Plan:
        """Return a plan itself, or the plan in a work folder: see :meth:`open`."""
        return plan_or_work if isinstance(plan_or_work, Plan) else cls.open(plan_or_work)

    @classmethod
    def open(cls, work: str | os.PathLike[str]) -> Plan:
        """Return the plan in a work folder.

        :raises MigrationError: the folder has no plan, or one of an earlier format, or the plan cannot be read
        """
        folder = os.path.abspath(os.fspath(work))
        try:
            require_shared(folder)
            record = json.loads(read_regular(os.path.join(folder, PLAN)))
            if is_of_earlier_format(folder):
                what = "planned by an earlier version of Pressmark, in a format that is no longer supported"
                what += "; continue with that version, or plan the migration in another work folder"
                raise MigrationError("", folder, what)
            return cls(**{**record, "work": folder, "options": Options.from_record(record["options"])})
        except FileNotFoundError:
            refused = os.path.join(folder, REFUSED)
            what = f"the plan was refused ({refused} lists the reasons)" if os.path.exists(refused) else "no plan found"
            raise MigrationError("", folder, f"{what}; plan the migration first") from None
        except UntrustedError as error:
            raise MigrationError("", folder, error.reason) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            what = f"{PLAN} cannot be read ({error}); plan the migration in another work folder"
            raise MigrationError("", folder, what) from None


def _pairs(path: str) -> Iterator[tuple[str, str]]:
    for line in file_lines(path):
        old, new = json.loads(line)
        yield old, new


def refuse_others(plan: Plan, options: Options) -> None:
    """Refuse options that differ from those of the plan.

    :raises MigrationError: an option differs
    """
    planned, asked = (json.loads(json.dumps(asdict(one))) for one in (plan.options, options))
    differences = ", ".join(_differences(planned, asked))
    if differences:
        what = f"{plan.work}: this migration was started with different options: {differences}"
        what += "; use the same options or start a new migration"
        raise MigrationError(plan.options.source, plan.options.destination, what)


def _differences(planned: Mapping[str, object], asked: Mapping[str, object], of: str = "") -> Iterator[str]:
    """Yield in words each option that differs; of one layout, each parameter."""
    for key in sorted({*planned, *asked}):
        before, now = planned.get(key), asked.get(key)
        name = of + key.removesuffix("_options").replace("_", " ")
        if before == now:
            continue
        if isinstance(before, dict) and isinstance(now, dict) and before.get(_NAME) == now.get(_NAME):
            yield from _differences(before, now, f"{name} ")
        else:
            yield f"{name} was {_shown(before)}, now {_shown(now)}"


def _shown(value: Any) -> str:
    """Return the value of an option in words; of a layout, its name."""
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "on", False: "off"}[value]
    if isinstance(value, dict):
        return value.get(_NAME) or ", ".join(map(_shown, value.values()))
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return quoted(value) if isinstance(value, str) else str(value)


def utc_now() -> str:
    """Return the current date and time as in RFC 3339, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def write_record(path: str, record: Mapping[str, object]) -> None:
    """Write a JSON object to a file, atomically."""
    replace_file(path, json.dumps(record, indent=2).encode("ascii") + b"\n", part=path + ".new")
