"""``python -m pressmark``: the command without its script."""

from __future__ import annotations

from pressmark.cli import main

if __name__ == "__main__":
    main()
