"""All safety lines of lambdas/, the clauses of the protocol first."""

from __future__ import annotations

from tests.mutants import meanings
from tests.mutants.safety_line import SafetyLine
from tests.mutants.safety_lines import (
    accepting,
    asking,
    changes_final,
    changes_held,
    claiming,
    controlling,
    dispatching,
    effects,
    events,
    guard,
    ingest,
    ledger,
    letters,
    messages,
    redriving,
    reviewing,
    rounds,
    sending,
    sources,
    store,
    stuck,
    trying,
    verdicts,
)

WRITTEN: tuple[SafetyLine, ...] = (
    *store.LINES,
    *ledger.LINES,
    *guard.LINES,
    *effects.LINES,
    *claiming.LINES,
    *messages.LINES,
    *trying.LINES,
    *asking.LINES,
    *verdicts.LINES,
    *changes_held.LINES,
    *changes_final.LINES,
    *dispatching.LINES,
    *sending.LINES,
    *accepting.LINES,
    *controlling.LINES,
    *ingest.LINES,
    *events.LINES,
    *stuck.LINES,
    *rounds.LINES,
    *sources.LINES,
    *redriving.LINES,
    *reviewing.LINES,
    *letters.LINES,
)

ALL = (*meanings.LINES, *WRITTEN)
