"""Which Bedrock model a region reaches, under which name, and which regions may then serve it."""

from __future__ import annotations

import re
from dataclasses import dataclass

NOVA_LITE = "amazon.nova-lite-v1:0"


@dataclass(frozen=True)
class Geography:
    """An inference profile's prefix, who may call it, and where it routes to besides the caller's region."""

    prefix: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]


# Amazon Nova Lite. AWS: "Supported Regions and models for inference profiles", Bedrock user guide.
GEOGRAPHIES = (
    Geography(
        "us",
        ("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
        ("us-east-1", "us-east-2", "us-west-2"),
    ),
    Geography(
        "eu",
        ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3"),
        ("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-3"),
    ),
    Geography(
        "apac",
        ("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
        ("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    ),
    Geography("ca", ("ca-central-1",), ("ca-central-1", "ca-west-1")),
)
_PROFILE = re.compile(r"(?P<prefix>us-gov|us|eu|apac|ca|jp|au|global)\.(?P<model>[a-z0-9-]+\.[A-Za-z0-9.:-]+)")
_MODEL = re.compile(r"[a-z0-9-]+\.[A-Za-z0-9.:-]+")
# served on demand nowhere or, as Nova, in few regions: elsewhere the bare id is a permanent error
_NEEDS_PROFILE = re.compile(r"amazon\.nova-|anthropic\.claude-(3-[57]|sonnet|opus|haiku)")
_ON_DEMAND = {"amazon.nova-": ("us-east-1", "us-gov-west-1")}


@dataclass(frozen=True)
class Route:
    """A model as the worker names it, the foundation model behind that, and the regions that may serve it."""

    model_id: str
    foundation_model: str
    regions: tuple[str, ...]
    is_profile: bool


def geography(region: str) -> Geography | None:
    """The geography whose Nova Lite profile can be called from this region."""
    return next((known for known in GEOGRAPHIES if region in known.sources), None)


def default_model(region: str) -> str:
    """The Nova Lite profile of the region's geography. Raises ValueError where none is known."""
    known = geography(region)
    if known is None:
        regions = ", ".join(sorted(region for known in GEOGRAPHIES for region in known.sources))
        raise ValueError(
            f"no Amazon Nova Lite inference profile is known for region {region!r}: use one of {regions}, "
            "or name a model in the setting `models` and the regions that serve it in `model_regions`"
        )
    return f"{known.prefix}.{NOVA_LITE}"


def route(model_id: str, region: str, model_regions: tuple[str, ...] = ()) -> Route:
    """Where requests to this model may go. Raises ValueError, with what to do, if it cannot be named so."""
    profile = _PROFILE.fullmatch(model_id)
    if profile is None:
        return _on_demand(model_id, region)
    prefix, model = profile["prefix"], profile["model"]
    if model_regions:
        return Route(model_id, model, model_regions, is_profile=True)
    if prefix == "global":
        return Route(model_id, model, ("", region), is_profile=True)  # a global model's ARN names no region
    known = geography(region)
    if known is None or known.prefix != prefix:
        raise ValueError(
            f"model {model_id!r} is an inference profile of the geography {prefix!r}, which as far as "
            f"infra/models.py knows does not serve region {region!r}: use {_advice(region)}, "
            "or list the regions that it routes to in the setting `model_regions`"
        )
    regions = tuple(dict.fromkeys((*known.destinations, region)))
    return Route(model_id, model, regions, is_profile=True)


def _on_demand(model_id: str, region: str) -> Route:
    if not _MODEL.fullmatch(model_id):
        raise ValueError(f"model {model_id!r} is no Bedrock model or inference profile id: use {_advice(region)}")
    regions = next((where for prefix, where in _ON_DEMAND.items() if model_id.startswith(prefix)), ())
    if _NEEDS_PROFILE.match(model_id) and region not in regions:
        raise ValueError(
            f"model {model_id!r} cannot be called by its bare id in {region!r}, only through an inference "
            f"profile: put the geography's prefix in front, like {_advice(region)}"
        )
    return Route(model_id, model_id, (region,), is_profile=False)


def _advice(region: str) -> str:
    known = geography(region)
    return repr(f"{known.prefix if known else 'us'}.{NOVA_LITE}")
