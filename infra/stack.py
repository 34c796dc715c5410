"""The stack, composed in the order in which an event meets its parts."""

from __future__ import annotations

from typing import Any

from aws_cdk import Stack
from constructs import Construct

from infra.admin import Admin
from infra.api import Api
from infra.deliveries import Deliveries
from infra.dispatch import Dispatch
from infra.events import Events
from infra.inbox import Inbox
from infra.monitoring import Monitoring
from infra.notifications import Notifications
from infra.outputs import Outputs
from infra.packaging import Packaging
from infra.processing import Processing
from infra.queues import Queues
from infra.settings import Settings
from infra.storage import Storage
from infra.streaming import Streaming
from infra.subscribers import Subscribers
from infra.sweep import Sweep
from infra.webhooks import Webhooks
from infra.workflows import Workflows


class Neverdrop(Stack):
    """Everything that is deployed."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, **stack: Any) -> None:
        super().__init__(scope, construct_id, description="Neverdrop: runs AI work and never drops any", **stack)
        packaging = Packaging(self, "Packaging")
        storage = Storage(self, "Storage", settings=settings)
        queues = Queues(self, "Queues", settings=settings)
        notifications = Notifications(self, "Notifications")
        subscribers = Subscribers(self, "Subscribers", settings=settings, notifications=notifications)

        api = Api(self, "Api", packaging=packaging, settings=settings, storage=storage)
        Events(self, "Events", settings=settings, api=api, queues=queues)
        webhooks = Webhooks(self, "Webhooks", packaging=packaging, settings=settings, storage=storage, api=api)
        inbox = Inbox(self, "Inbox", packaging=packaging, settings=settings, storage=storage, queues=queues)
        workflows = Workflows(self, "Workflows", packaging=packaging, settings=settings, storage=storage)
        dispatch = Dispatch(
            self,
            "Dispatch",
            packaging=packaging,
            settings=settings,
            storage=storage,
            queues=queues,
            notifications=notifications,
            workflows=workflows,
        )
        processing = Processing(
            self,
            "Processing",
            packaging=packaging,
            settings=settings,
            storage=storage,
            queues=queues,
            workflows=workflows,
        )
        deliveries = Deliveries(
            self,
            "Deliveries",
            packaging=packaging,
            settings=settings,
            storage=storage,
            queues=queues,
            notifications=notifications,
            webhooks=webhooks,
        )
        streaming = Streaming(self, "Streaming", packaging=packaging, settings=settings, storage=storage, api=api)
        sweep = Sweep(
            self,
            "Sweep",
            packaging=packaging,
            settings=settings,
            storage=storage,
            queues=queues,
            notifications=notifications,
            workflows=workflows,
        )
        admin = Admin(
            self,
            "Admin",
            packaging=packaging,
            settings=settings,
            storage=storage,
            queues=queues,
            api=api,
            sweep=sweep,
        )
        monitoring = Monitoring(
            self,
            "Monitoring",
            settings=settings,
            queues=queues,
            notifications=notifications,
            subscribers=subscribers,
            webhooks=webhooks,
            api=api,
            inbox=inbox,
            dispatch=dispatch,
            processing=processing,
            workflows=workflows,
            deliveries=deliveries,
            streaming=streaming,
            sweep=sweep,
            admin=admin,
        )
        Outputs(
            self,
            "Outputs",
            storage=storage,
            queues=queues,
            notifications=notifications,
            api=api,
            dispatch=dispatch,
            workflows=workflows,
            streaming=streaming,
            sweep=sweep,
            admin=admin,
            monitoring=monitoring,
            webhooks=webhooks,
        )
