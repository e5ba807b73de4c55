"""The command that shows what this is for: the demo."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from supersede.cli.app import app, command
from supersede.cli.progress import counting, waiting
from supersede.cli.session import Session


@command(app, "demo", panel="Start")
def demo(session: Session) -> None:
    """Load the RFC index with its dates, and ask the same questions as of several years.

    It goes into the namespace demo-rfc, unless --namespace names another; a second run finds it there.
    """
    from supersede import demo as rfc

    session.set_up_log()
    with waiting("opening the store"):
        opened = rfc.Demo(session.url, namespace=session.namespace or rfc.NAMESPACE, actor=session.actor)
    with opened:
        if opened.missing:
            with counting("loading the RFC index", unit="events", total=opened.missing) as show:
                opened.load(show)
        with waiting("asking"):
            asked = list(opened.answers())
    from supersede.cli import printing
    from supersede.cli.answers import print_answer

    if session.json:
        printing.as_json(
            [
                {"query": each.query, "as_of": each.as_of, "answer": each.answer.model_dump(mode="json")}
                for each in asked
            ]
        )
        return
    for each in asked:
        print_answer(each.answer, title=each.query, hint=False)
    name = opened.store.namespace
    # From scripts/demo it is not on the PATH, but in .venv.
    started = Path(sys.argv[0])
    program = started if started.name == "supersede" and not shutil.which("supersede") else "supersede"
    print(f'Ask it yourself: {program} --namespace {name} ask "IPv6 specification" --as-of 2016-01-01')
