"""Safety lines of what is asked of Step Functions, and of what its answers are taken for."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

EXECUTIONS = "adapters/executions.py"
I_EXECUTIONS = "tests/integration/test_adapter_executions.py"

LINES = (
    SafetyLine(
        name="executions: a start goes out under its name",
        file=EXECUTIONS,
        line="stateMachineArn=machine, name=name, input=written_input)",
        without="stateMachineArn=machine, input=written_input)",
        guards="hole 36: a start that is repeated is no second execution",
        tests=(f"{I_EXECUTIONS}::test_the_name_of_one_that_has_ended_is_taken",),
    ),
    SafetyLine(
        name="executions: a name that is taken is told apart",
        file=EXECUTIONS,
        line="""\
    if code == "ExecutionAlreadyExists":
        return AlreadyExists(str(error))
""",
        without="",
        guards="hole 36: what has ended is found, and not waited for",
        tests=(f"{I_EXECUTIONS}::test_the_name_of_one_that_has_ended_is_taken",),
    ),
    SafetyLine(
        name="executions: what a deploy or time may change is no refusal for good",
        file=EXECUTIONS,
        line=" if code in FOR_GOOD else error\n",
        without="\n",
        guards="SFN-03: no job fails for a quota, or for a machine that is being replaced",
        tests=(f"{I_EXECUTIONS}::test_what_a_deploy_or_time_may_change_is_waited_for",),
    ),
    SafetyLine(
        name="executions: what is not there is not taken for silence",
        file=EXECUTIONS,
        line="""\
                if code_of(error) == "ExecutionDoesNotExist":
                    return None
                raise
""",
        without="                raise\n",
        guards="row 15: a job that was prepared and never started is reaped",
        tests=(f"{I_EXECUTIONS}::test_an_execution_is_started_described_and_stopped",),
    ),
    SafetyLine(
        name="executions: what is not there needs no stop",
        file=EXECUTIONS,
        line='                if code_of(error) != "ExecutionDoesNotExist":\n                    raise\n',
        without="                raise\n",
        guards="row 10: a cancelled job that was never started is told of",
        tests=(f"{I_EXECUTIONS}::test_what_is_not_there_is_as_good_as_stopped",),
    ),
    SafetyLine(
        name="executions: what was not stopped is not taken for stopped",
        file=EXECUTIONS,
        line='                if code_of(error) != "ExecutionDoesNotExist":\n                    raise\n',
        without="                pass\n",
        guards="row 10: a stop that was refused is asked for again",
        tests=("tests/unit/test_adapter_executions.py::test_a_stop_that_is_refused_is_not_taken_for_one",),
    ),
    SafetyLine(
        name="executions: one that ended badly does not run",
        file=EXECUTIONS,
        line="    if status in _BADLY:\n",
        without='    if status == "FAILED":\n',
        guards="row 14b: a job whose execution was stopped or took too long runs again",
        tests=(f"{I_EXECUTIONS}::test_each_status_has_one_meaning",),
    ),
    SafetyLine(
        name="executions: one that is redriven has its time once more",
        file=EXECUTIONS,
        line='Running(answer.get("redriveDate") or answer["startDate"])',
        without='Running(answer["startDate"])',
        guards="N9: nobody takes a job from an execution that an operator has redriven",
        tests=(f"{I_EXECUTIONS}::test_each_status_has_one_meaning",),
    ),
    SafetyLine(
        name="sweep: a job that waits for no execution ends by its own plan",
        file="core/sweeping/machines.py",
        line="            case EndedBadly() if job.status != PROCESSING:\n                return found",
        without="            case EndedBadly() if False:\n                return found",
        guards="row 14b: only a job that waits for its execution runs again for its end",
        tests=("tests/unit/test_sweep_executions.py::test_a_job_that_waits_for_no_execution_ends_as_every_other",),
    ),
)
