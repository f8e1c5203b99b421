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
        KINDS as KINDS,
        Growth as Growth,
        LayoutResult as LayoutResult,
    )

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".comparison": "Comparison compare",
        ".growth": "hashed_directories predict_growth",
        ".report": "",
        ".result": "KINDS Growth LayoutResult",
    },
)
