"""A Python session: runs the blocks of a page that arrive on standard input, one JSON object a line, and answers.

It is a process of its own, in which ``import bagit`` is not the package of our tests with this name.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tokenize
import traceback
from typing import Any


def execute(code: str, place: str, names: dict[str, Any]) -> None:
    """Run code; compare the values of expressions with the literals in comments after them, or on the next line."""
    tokens = [one for one in tokenize.generate_tokens(io.StringIO(code).readline) if one.type == tokenize.COMMENT]
    comments = {token.start[0]: token.string.removeprefix("# ") for token in tokens}
    alone = {token.start[0]: comments[token.start[0]] for token in tokens if token.start[1] == 0}
    for node in ast.parse(code, place).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), place, "exec", dont_inherit=True), names)
            continue
        value = eval(compile(ast.Expression(node.value), place, "eval", dont_inherit=True), names)
        line = node.end_lineno or 0
        try:
            expected = ast.literal_eval(comments.get(line) or alone[line + 1])
        except (KeyError, SyntaxError, ValueError):
            continue
        assert value == expected, f"{ast.unparse(node)} is {value!r}"


def main() -> None:
    """Answer each block with its output and its error."""
    names: dict[str, Any] = {"__name__": "page"}
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        block = json.loads(line)
        os.chdir(block["folder"])
        error = None
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                execute(block["code"], block["place"], names)
            except Exception:
                error = traceback.format_exc()
        print(json.dumps({"output": output.getvalue(), "error": error}), file=answers, flush=True)


if __name__ == "__main__":
    main()
