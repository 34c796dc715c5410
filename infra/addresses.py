"""What names a host and a mailbox, as AWS takes them: in ASCII, and well-formed. Patterns for whole texts."""

from __future__ import annotations

from typing import Final

_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
HOST: Final = rf"(?=[^:/?]{{1,253}}(?:[:/?]|$))(?:{_LABEL}\.)+(?![0-9]+(?:[:/?]|$)){_LABEL}"
PORT: Final = r"6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}"
MAILBOX: Final = rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{HOST}"
