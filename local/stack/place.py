"""Where the stack stands when nobody says otherwise: moto's one account, and a region it knows."""

from __future__ import annotations

from typing import Final

ACCOUNT: Final = "123456789012"
REGION: Final = "us-east-1"
PARTITION: Final = "aws"
