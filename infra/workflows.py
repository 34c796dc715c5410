"""Jobs that are made of several tasks: a state machine for each workflow, its functions, and who hears of a bad end."""

from __future__ import annotations

import json

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions as states
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from infra import declarations, tasks
from infra.function import Function
from infra.packaging import Packaging
from infra.queues import dead_letters
from infra.settings import Settings
from infra.storage import Storage
from infra.workflow_definition import definition
from lambdas.contracts import names
from lambdas.contracts.workflows import Workflow

ENDED_BADLY = ("FAILED", "TIMED_OUT", "ABORTED")
HEARD_FOR = Duration.hours(1)  # by then the sweep has long asked for itself


class Workflows(Construct):
    """`branch` and `collect`, which the state machines call; `ended`, which hears of executions that ended badly."""

    def __init__(
        self, scope: Construct, construct_id: str, *, packaging: Packaging, settings: Settings, storage: Storage
    ) -> None:
        super().__init__(scope, construct_id)
        self._packaging, self._settings, self._storage = packaging, settings, storage
        self.branch = self._branch()
        self.collect = self._collect()
        self.machines = self._machines()
        self.dead_letters = dead_letters(self, "DeadLetters", settings)
        self.ended = self._ended()
        if self.machines:
            self._hear()

    @property
    def place(self) -> dict[str, str]:
        """Where whoever starts, looks at or stops executions finds their state machines."""
        arns = {type_: machine.state_machine_arn for type_, machine in self.machines.items()}
        return {names.WORKFLOWS: json.dumps(arns)}

    def allow_starting(self, function: Function) -> None:
        """Permit a function to start executions. Not `branch` or `collect`: state machines wait for these."""
        self._allow(function, "states:StartExecution", [one.state_machine_arn for one in self.machines.values()])

    def allow_describing(self, function: Function) -> None:
        """Permit a function to see what became of executions."""
        self._allow(function, "states:DescribeExecution", self._executions())

    def allow_stopping(self, function: Function) -> None:
        self._allow(function, "states:StopExecution", self._executions())

    def _allow(self, function: Function, action: str, arns: list[str]) -> None:
        if arns:
            function.allow(action, on=arns)

    def _executions(self) -> list[str]:
        """Theirs alone; what they are called is made of jobs."""
        return [
            Stack.of(self).format_arn(
                service="states",
                resource="execution",
                resource_name=f"{machine.state_machine_name}:*",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            for machine in self.machines.values()
        ]

    def _branch(self) -> Function:
        """Runs one task of a workflow."""
        branch = Function(
            self,
            "branch",
            packaging=self._packaging,
            settings=self._settings,
            timeout_s=self._settings.branch_timeout_s,
            memory_mb=self._settings.worker_memory_mb,
            environment=tasks.environment(self._storage, self._settings),
        )
        tasks.allow(branch, self._storage, self._settings)
        # what it, and branches before it, have given
        branch.allow("s3:GetObject", on=self._storage.results.arn_for_objects(f"{names.RESULTS_PREFIX}*"))
        return branch

    def _collect(self) -> Function:
        """Makes one result of what the branches gave."""
        jobs, results = self._storage.jobs, self._storage.results
        collect = Function(
            self,
            "collect",
            packaging=self._packaging,
            settings=self._settings,
            timeout_s=self._settings.collect_timeout_s,
            memory_mb=self._settings.worker_memory_mb,  # it holds all parts at once
            environment={
                names.JOBS_TABLE: jobs.table_name,
                names.RESULTS_BUCKET: results.bucket_name,
                names.RECORD_DAYS: str(self._settings.record_days),
                names.DUE_GRACE_S: str(self._settings.due_grace_s),
            },
        )
        collect.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=jobs.table_arn)
        collect.allow("s3:GetObject", "s3:PutObject", on=results.arn_for_objects(f"{names.RESULTS_PREFIX}*"))
        collect.allow("s3:ListBucket", on=results.bucket_arn)  # else a part that is gone is 403, not 404
        return collect

    def _machines(self) -> dict[str, states.StateMachine]:
        declared = declarations.read()
        role = self._role() if declared else None
        apart = Construct(self, "Machines")  # a workflow may be named as what stands beside it here
        return {
            type_: states.StateMachine(
                apart,
                declarations.pascal(type_),
                state_machine_type=states.StateMachineType.STANDARD,  # a name is started once, and kept for 90 days
                definition_body=states.DefinitionBody.from_string(self._definition(workflow)),
                role=role,
            )
            for type_, workflow in declared.items()
        }

    def _definition(self, workflow: Workflow) -> str:
        made = definition(
            workflow,
            branch_arn=self.branch.resource.function_arn,
            collect_arn=self.collect.resource.function_arn,
            branch_timeout_s=self._settings.branch_timeout_s,
            collect_timeout_s=self._settings.collect_timeout_s,
        )
        return json.dumps(made)  # the stack's own `to_json_string` would leave out what is null: every ResultPath

    def _role(self) -> iam.Role:
        # the L2 task would permit every version of the functions, by a star
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal(
                "states.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            ),
            description="What the state machines may do: call the two functions that they are made of",
        )
        functions = [one.resource.function_arn for one in (self.branch, self.collect)]
        role.add_to_principal_policy(iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=functions))
        return role

    def _ended(self) -> Function:
        """Tells the record of an execution that did not."""
        ended = Function(
            self,
            "ended",
            packaging=self._packaging,
            settings=self._settings,
            timeout_s=self._settings.ended_timeout_s,
            environment={
                names.JOBS_TABLE: self._storage.jobs.table_name,
                **self.place,
                names.RECORD_DAYS: str(self._settings.record_days),
                names.DUE_GRACE_S: str(self._settings.due_grace_s),
                names.RETRY_BASE_S: str(self._settings.retry_base_s),
                names.RETRY_CAP_S: str(self._settings.retry_cap_s),
                names.JITTER: self._settings.jitter,
            },
        )
        ended.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=self._storage.jobs.table_arn)
        self.allow_describing(ended)
        ended.allow("sqs:SendMessage", on=self.dead_letters.queue_arn)  # Lambda does it, in its name
        ended.resource.configure_async_invoke(
            retry_attempts=2,  # Step Functions may be behind its own event; then the sweep asks for itself
            max_event_age=HEARD_FOR,
            on_failure=SqsDestination(self.dead_letters),
        )
        return ended

    def _hear(self) -> None:
        """Step Functions tells the default bus of every end. The rule's letters are failures to invoke."""
        rule = events.Rule(
            self,
            "EndedBadly",
            description="Neverdrop: executions that have ended without telling the record",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "status": list(ENDED_BADLY),
                    "stateMachineArn": [machine.state_machine_arn for machine in self.machines.values()],
                },
            ),
        )
        rule.add_target(
            targets.LambdaFunction(
                self.ended.resource,
                dead_letter_queue=self.dead_letters,
                max_event_age=HEARD_FOR,
                retry_attempts=185,  # the most there is, so that age decides
            )
        )
