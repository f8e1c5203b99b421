"""Compare layouts on your own identifiers before you choose one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.compare import report as report
    from pressmark.compare.comparison import (
        Comparison as Comparison,
        compare as compare,
    )
    from pressmark.compare.growth import hashed_directories as hashed_directories, predict_growth as predict_growth
    from pressmark.compare.result import (
        FORMAT as FORMAT,
        KINDS as KINDS,
        CollisionGroup as CollisionGroup,
        Collisions as Collisions,
        Costs as Costs,
        Depth as Depth,
        Directories as Directories,
        Distribution as Distribution,
        Example as Example,
        FanOut as FanOut,
        FirstSegments as FirstSegments,
        Growth as Growth,
        LargeDirectory as LargeDirectory,
        LayoutResult as LayoutResult,
        Lengths as Lengths,
        Occurrences as Occurrences,
        Probe as Probe,
        ProbeTimes as ProbeTimes,
        Remark as Remark,
        Throughput as Throughput,
    )

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".comparison": "Comparison compare",
        ".growth": "hashed_directories predict_growth",
        ".report": "",
        ".result": (
            "FORMAT KINDS CollisionGroup Collisions Costs Depth Directories Distribution Example"
            " FanOut FirstSegments Growth LargeDirectory LayoutResult Lengths Occurrences Probe ProbeTimes Remark"
            " Throughput"
        ),
    },
)
