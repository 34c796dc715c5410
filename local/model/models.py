"""Which model ids Bedrock takes: shapes, inference profiles, regions and each family's largest answer."""

from __future__ import annotations

import re
from typing import Final

from local.model.errors import invalid

UNKNOWN_MODEL: Final = "The provided model identifier is invalid."

# The geographies of inference profiles, and where a profile may be called from.
GEOGRAPHIES: Final = {
    "us": ("us-", "ca-", "mx-"),
    "us-gov": ("us-gov-",),
    "eu": ("eu-", "il-"),
    "apac": ("ap-", "me-"),
    "jp": ("ap-northeast-",),
    "au": ("ap-southeast-",),
    "ca": ("ca-",),
    "global": ("",),
}

_MODEL: Final = re.compile(r"[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}(?:[.:][a-z0-9-]{1,63}){0,3}")
_ARN: Final = re.compile(r"arn:aws[a-z-]*:bedrock:([a-z0-9-]{1,20}):(?:[0-9]{12})?:([a-z-]+)/([A-Za-z0-9.:-]+)")
_OPAQUE_KINDS: Final = frozenset(
    {"application-inference-profile", "provisioned-model", "imported-model", "custom-model-deployment"}
)

# Families without on-demand throughput in any region, and those that have it in us-east-1 alone.
_PROFILE_ONLY: Final = re.compile(
    r"anthropic\.claude-(?:3-5-haiku|3-5-sonnet-20241022|3-7|[a-z]+-[4-9])"
    r"|amazon\.nova-(?:premier|2-)|meta\.llama(?:3-[1-9]|[4-9])|deepseek\.r1|writer\.|mistral\.pixtral"
)
_ON_DEMAND_AT_HOME: Final = re.compile(r"amazon\.nova-")
_HOME: Final = ("us-east-1", "us-gov-west-1")

_LARGEST_ANSWER: Final = (
    (re.compile(r"amazon\.nova-2-"), 65_535),
    (re.compile(r"amazon\.nova-"), 10_000),
    (re.compile(r"anthropic\.claude-3-5"), 8_192),
    (re.compile(r"anthropic\.claude-3-(?:opus|sonnet|haiku)"), 4_096),
)


def check(model_id: str, region: str | None) -> str:
    """The foundation model behind the id. Raises ValidationException as Bedrock does; `region` if known."""
    arn = _ARN.fullmatch(model_id)
    if not arn:
        return _check_plain(model_id, region)
    where, kind, name = arn.groups()
    if kind in _OPAQUE_KINDS:
        return name
    if kind == "inference-profile" and _split(name)[0]:
        return _check_plain(name, where)
    if kind == "foundation-model" and not _split(name)[0]:
        return _check_plain(name, where)
    raise invalid(UNKNOWN_MODEL)


def largest_answer(model: str) -> int:
    """Tokens; families that are not in the table get the largest limit in use."""
    return next((limit for family, limit in _LARGEST_ANSWER if family.match(model)), 131_072)


def _check_plain(model_id: str, region: str | None) -> str:
    geography, model = _split(model_id)
    if not _MODEL.fullmatch(model):
        raise invalid(UNKNOWN_MODEL)
    if geography:
        if region and not region.startswith(GEOGRAPHIES[geography]):
            raise invalid(UNKNOWN_MODEL)
    elif _needs_profile(model, region):
        raise invalid(
            f"Invocation of model ID {model_id} with on-demand throughput isn’t supported. "  # noqa: RUF001 - as Bedrock
            "Retry your request with the ID or ARN of an inference profile that contains this model."
        )
    return model


def _needs_profile(model: str, region: str | None) -> bool:
    if _PROFILE_ONLY.match(model):
        return True
    return bool(_ON_DEMAND_AT_HOME.match(model)) and region is not None and region not in _HOME


def _split(model_id: str) -> tuple[str, str]:
    """Geography and model: `us.amazon.nova-lite-v1:0` is ("us", "amazon.nova-lite-v1:0")."""
    first, _, rest = model_id.partition(".")
    return (first, rest) if first in GEOGRAPHIES and "." in rest else ("", model_id)
