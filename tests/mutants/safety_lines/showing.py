"""Safety lines of who sees a job's text: once shown it stays true, whoever dies, comes late or has no right to it."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ASKING = "core/asking.py"
CALL = "adapters/single_call.py"
BEDROCK = "adapters/bedrock.py"
CHUNKS = "adapters/chunks.py"
CONNECT = "handlers/connect.py"
CONNECTIONS = "adapters/connections.py"
CONVERSATION = "core/watching/conversation.py"
PUSH = "handlers/push.py"
READING = "core/streaming/reading.py"
RECORDER = "core/streaming/recorder.py"
SERVING = "core/watching/serving.py"
SOCKET = "handlers/socket.py"
TICKETS = "core/watching/tickets.py"
I_CHUNKS = "tests/integration/test_adapter_chunks.py"
I_CONNECTIONS = "tests/integration/test_adapter_connections.py"
I_HANDLERS = "tests/integration/test_handler_watching.py"
I_STREAMS = "tests/integration/test_adapter_bedrock_streams.py"
U_EXECUTION = "tests/unit/test_execution_streams.py"
U_READING = "tests/unit/test_streaming_reading.py"
U_RECORDER = "tests/unit/test_streaming_recorder.py"
U_PROGRESS = "tests/unit/test_watching_progress.py"
U_TICKETS = "tests/unit/test_tickets.py"
U_REQUESTS = "tests/unit/test_watching_requests.py"
U_TROUBLES = "tests/unit/test_watching_troubles.py"
U_WATCHING = "tests/unit/test_watching.py"

LINES = (
    # --- while it is said --------------------------------------------------------------------------
    SafetyLine(
        name="stream: the rest is stored before the job can be complete",
        file=RECORDER,
        line="        self._make(self._batch.rest() if heard else list(fitting(text)))\n        self._store()\n",
        without="        self._make(self._batch.rest() if heard else list(fitting(text)))\n"
        "        self._store_quietly()\n",
        guards="a final record's chunks are complete: readers stop at it",
        tests=(f"{U_RECORDER}::test_after_one_failure_nothing_is_written_until_the_answer_is_safe",),
    ),
    SafetyLine(
        name="stream: an answer that was not heard is shown, too",
        file=RECORDER,
        line="self._batch.rest() if heard else list(fitting(text))",
        without="self._batch.rest()",
        guards="what watchers put together is the stored answer",
        tests=(f"{U_EXECUTION}::test_an_answer_that_was_there_already_comes_as_text_too",),
    ),
    SafetyLine(
        name="stream: nothing follows text that belongs to no answer",
        file=RECORDER,
        line="        if self._torn:\n",
        without="        if False:\n",
        guards="the text of an attempt is its stored answers, never a mixture",
        tests=(f"{U_EXECUTION}::test_a_task_that_passes_over_a_broken_stream_does_not_mix_two_texts",),
    ),
    SafetyLine(
        name="stream: a chunk that was tried keeps its number and its text",
        file=RECORDER,
        line="            self._missing.append(Chunk(self.job.attempt, self._n, text))\n            self._n += 1\n",
        without="            self._missing.append(Chunk(self.job.attempt, self._n, text))\n"
        "            self._n += len(self._missing) == 1\n",
        guards="a chunk is never replaced by another one",
        tests=(
            f"{U_RECORDER}::test_a_chunk_that_is_stored_again_is_the_same_chunk",
            f"{U_RECORDER}::test_whatever_befalls_the_store_a_finished_try_has_exactly_what_was_said",
        ),
    ),
    SafetyLine(
        name="stream: a slow store does not eat the model's time",
        file=RECORDER,
        line="            if self._spent_s > PATIENCE_S + SHARE * seconds_between(self._since or began, now):\n",
        without="            if False:\n",
        guards="paid once comes first: a table that drags does not cost the answer",
        tests=(f"{U_RECORDER}::test_a_slow_store_does_not_eat_the_models_time",),
    ),
    SafetyLine(
        name="stream: chunks outlive their record",
        file=RECORDER,
        line="        kept_s = self.limits.deadline_s + (self.limits.record_days + 1) * DAY_S\n",
        without="        kept_s = self.limits.record_days * DAY_S\n",
        guards="the text of a job is there as long as the job is",
        tests=(f"{U_RECORDER}::test_chunks_belong_to_the_attempt_and_live_longer_than_the_record_can",),
    ),
    SafetyLine(
        name="stream: text that broke off is shown",
        file=ASKING,
        line="            recorder.broke()\n            raise\n",
        without="            raise\n",
        guards="whoever watched a try that broke off keeps what there was",
        tests=(
            f"{U_EXECUTION}::test_an_answer_that_did_not_come_to_its_end_is_shown_and_never_kept",
            f"{U_EXECUTION}::test_a_task_that_passes_over_a_broken_stream_does_not_mix_two_texts",
        ),
    ),
    SafetyLine(
        name="stream: who has begun may have billed",
        file=BEDROCK,
        line="    def take(self, event: Mapping[str, Any]) -> None:\n        self.started = True\n",
        without="    def take(self, event: Mapping[str, Any]) -> None:\n",
        guards="G15, BED-21: what was billed for nothing is on the record",
        tests=(f"{I_STREAMS}::test_bed_08_an_error_in_mid_stream_is_told_by_its_code_in_its_other_spelling",),
    ),
    SafetyLine(
        name="stream: a chunk is stored",
        file=RECORDER,
        line="        self.chunks.append(self.job.id, chunk, self._expires_at())\n",
        without="        pass\n",
        guards="what watchers put together is the stored answer",
        tests=(f"{U_RECORDER}::test_text_is_stored_while_it_is_said_and_the_rest_when_the_answer_is",),
    ),
    SafetyLine(
        name="socket: a connection is recorded before it is open",
        file=CONVERSATION,
        line="    board.relay.connections.open(Connection(connection_id, grant, expires_at))\n",
        without="    pass\n",
        guards="nobody waits on a connection that nobody knows",
        tests=(f"{I_HANDLERS}::test_who_opens_gets_a_connection_that_expires",),
    ),
    SafetyLine(
        name="socket: who has closed is forgotten",
        file=CONVERSATION,
        line="    board.relay.connections.close(connection_id)\n\n\ndef heard(",
        without="    pass\n\n\ndef heard(",
        guards="WS-02: nobody is sent to for hours who is not there",
        tests=(f"{U_REQUESTS}::test_a_connection_that_closes_is_sent_nothing_more",),
    ),
    SafetyLine(
        name="watch: who unwatches hears no more of it",
        file=CONVERSATION,
        line="        board.relay.connections.unwatch(watch)\n",
        without="        pass\n",
        guards="nobody is sent what nobody asked for",
        tests=(f"{U_REQUESTS}::test_who_unwatches_hears_no_more_of_it",),
    ),
    SafetyLine(
        name="watch: who is gone by the answer is forgotten",
        file=CONVERSATION,
        line="            board.relay.connections.close(connection_id)\n",
        without="            pass\n",
        guards="WS-01, WS-02: nobody is sent to for hours who is not there",
        tests=(f"{U_REQUESTS}::test_a_ping_finds_out_that_the_speaker_is_gone",),
    ),
    # --- chunks, as they are read ------------------------------------------------------------------
    SafetyLine(
        name="chunks: they are read as they are",
        file=CHUNKS,
        line="                    ConsistentRead=True,\n",
        without="",
        guards="a final record's chunks are complete: readers stop at it",
        tests=(f"{I_CHUNKS}::test_who_reads_reads_what_was_written",),
    ),
    SafetyLine(
        name="chunks: attempts are apart",
        file=CHUNKS,
        line="        between = (_sk(attempt, first), _sk(attempt, LAST))\n",
        without="        between = (_sk(attempt, first), _sk(LAST, LAST))\n",
        guards="texts of two attempts are never mixed",
        tests=(f"{I_CHUNKS}::test_attempts_and_jobs_do_not_know_each_others_text",),
    ),
    SafetyLine(
        name="chunks: those of an earlier job of the same id are left out",
        file=CHUNKS,
        line="        if since is not None:\n",
        without="        if since is False:\n",
        guards="G33: texts of two jobs are never mixed",
        tests=(f"{I_CHUNKS}::test_text_that_was_stored_before_a_time_is_left_out",),
    ),
    SafetyLine(
        name="reading: a job's text is no older than the job",
        file=READING,
        line="    return after(found.created_at, -DAY_S)\n",
        without="    return after(found.created_at, -1000 * DAY_S)\n",
        guards="G33: texts of two jobs are never mixed",
        tests=(f"{U_READING}::test_what_an_earlier_job_of_the_same_key_had_said_is_not_shown",),
    ),
    SafetyLine(
        name="chunks: what a batch left undone is deleted as well",
        file=CHUNKS,
        line='            left = answer.get("UnprocessedItems", {}).get(self._table, [])\n',
        without="            left = answer and []\n",
        guards="row 9d: nothing is left of a deleted job but its tombstone",
        tests=(f"{I_CHUNKS}::test_what_the_table_leaves_undone_is_asked_for_again_more_slowly",),
    ),
    SafetyLine(
        name="chunks: what could not be deleted is told",
        file=CHUNKS,
        line='        raise Unavailable("deleting what is beside a job: the table leaves it undone", throttled=True)\n',
        without="        return\n",
        guards="row 9d: a repeat removes what a failure has left",
        tests=(f"{I_CHUNKS}::test_a_table_that_leaves_it_undone_for_ever_is_told",),
    ),
    SafetyLine(
        name="reading: who has text of an earlier attempt is told",
        file=READING,
        line="    restarted = place.attempt is not None and place.attempt < found.attempt\n",
        without="    restarted = False\n",
        guards="texts of two attempts are never mixed",
        tests=(f"{U_READING}::test_text_of_an_earlier_attempt_is_void_and_the_new_one_begins_at_its_beginning",),
    ),
    # --- tickets and connections -------------------------------------------------------------------
    SafetyLine(
        name="ticket: it is used up",
        file=CONNECTIONS,
        line='        return _grant(from_item(answer["Attributes"]))\n',
        without='        grant = _grant(from_item(answer["Attributes"]))\n'
        "        self.put(digest, grant, now + 60)\n        return grant\n",
        guards="a ticket that was seen by somebody opens no second connection",
        tests=(f"{I_CONNECTIONS}::test_a_ticket_is_taken_once",),
    ),
    SafetyLine(
        name="ticket: it is good for a minute",
        file=TICKETS,
        line="_seconds(booth.now) + TICKET_S)",
        without="_seconds(booth.now) + 60 * TICKET_S)",
        guards="a ticket that was written down somewhere is worth nothing after a minute",
        tests=(U_TICKETS, f"{I_HANDLERS}::test_an_expired_ticket_is_denied"),
    ),
    SafetyLine(
        name="connect: a table that cannot be reached is no denial",
        file=CONNECT,
        line='        own.log.trouble("store_unavailable", detail=str(trouble))\n        raise\n',
        without='        own.log.trouble("store_unavailable", detail=str(trouble))\n        grant = None\n',
        guards="a client comes back after 500, and gives up after 403",
        tests=(f"{I_HANDLERS}::test_a_table_that_cannot_be_reached_is_no_denial",),
    ),
    SafetyLine(
        name="connect: the policy is for the very route",
        file=CONNECT,
        line='"Effect": effect, "Resource": route}',
        without='"Effect": effect, "Resource": "*"}',
        guards="a ticket opens what it was shown at, and nothing else",
        tests=(f"{I_HANDLERS}::test_a_ticket_opens_the_very_route_once",),
    ),
    SafetyLine(
        name="socket: the platform says what an event is, not its client",
        file=SOCKET,
        line='        match about["eventType"]:',
        without='        match {"$connect": "CONNECT", "$disconnect": "DISCONNECT"}.get(about["routeKey"], "MESSAGE"):',
        guards="no message of a client's is taken for the opening of a connection",
        tests=(f"{I_HANDLERS}::test_a_message_that_came_by_the_route_of_an_opening_opens_nothing",),
    ),
    SafetyLine(
        name="watch: so many watchers and no more",
        file=CONVERSATION,
        line="    return not _is_full(watchers, connection_id)\n",
        without="    return True\n",
        guards="a chunk is not sent to any number of connections",
        tests=(f"{U_REQUESTS}::test_a_job_has_so_many_watchers_and_no_more",),
    ),
    SafetyLine(
        name="connections: whoever closes one finds both rows of a watch",
        file=CONNECTIONS,
        line="                self._delete(_under_job(job_id, connection_id))\n",
        without="                self._delete(_under_connection(job_id, connection_id))\n"
        "                self._delete(_under_job(job_id, connection_id))\n",
        guards="WS-02: nobody is sent to for hours who is not there",
        tests=(f"{I_CONNECTIONS}::test_what_a_close_left_half_done_the_next_one_finds",),
    ),
    SafetyLine(
        name="connections: a cursor of nobody is not made",
        file=CONNECTIONS,
        line='                return bool(standing.get("mark") == watch.mark)  # somebody else was as far already\n',
        without="                return True\n",
        guards="an old watch does not end a new one",
        tests=(
            f"{I_CONNECTIONS}::test_a_cursor_of_another_watch_is_left_alone",
            f"{I_CONNECTIONS}::test_a_cursor_of_nobody_is_not_made",
        ),
    ),
    # --- what is sent ------------------------------------------------------------------------------
    SafetyLine(
        name="serve: a cursor is saved after what it counts was sent",
        file=SERVING,
        line="    at = watch.attempt, watch.next\n    posted: Posted = Sent()\n",
        without="    at = watch.attempt, watch.next\n    posted: Posted = Sent()\n"
        "    relay.connections.advance(watch, story.job.attempt, story.first + len(story.texts))\n",
        guards="no gap, only repeats: whoever is killed in between sends again",
        tests=(
            f"{U_TROUBLES}::test_what_could_not_be_sent_comes_with_the_next_news",
            f"{U_TROUBLES}::test_a_push_that_dies_between_sending_and_its_cursor_repeats_and_leaves_no_gap",
        ),
    ),
    SafetyLine(
        name="serve: each step of a workflow is told once",
        file=SERVING,
        line="    if stage <= watch.told:\n",
        without="    if False:\n",
        guards="a watcher is not sent the same progress with each write of the record",
        tests=(f"{U_PROGRESS}::test_each_step_is_told_once_to_each_watcher",),
    ),
    SafetyLine(
        name="serve: that a step was told is kept",
        file=SERVING,
        line="        relay.connections.tell(watch, stage)\n",
        without="        pass\n",
        guards="a watcher is not sent the same progress with each write of the record",
        tests=(f"{U_PROGRESS}::test_each_step_is_told_once_to_each_watcher",),
    ),
    SafetyLine(
        name="serve: only what was sent is told",
        file=SERVING,
        line="    if isinstance(posted, Sent):\n        relay.connections.tell(",
        without="    if True:\n        relay.connections.tell(",
        guards="a step that could not be sent comes with the next ping",
        tests=(f"{U_PROGRESS}::test_a_step_that_could_not_be_sent_comes_with_the_next_ping",),
    ),
    SafetyLine(
        name="connections: what was told goes forward, for its own watch",
        file=CONNECTIONS,
        line='ConditionExpression="#mark = :mark AND (attribute_not_exists(#told) OR #told < :told)"',
        without='ConditionExpression="attribute_not_exists(#told) OR (#mark = :mark AND #told < :told)"',
        guards="an old watch does not silence a new one, and no row of nobody is made",
        tests=(f"{I_CONNECTIONS}::test_what_was_told_to_another_watch_or_to_nobody_is_left_alone",),
    ),
    SafetyLine(
        name="serve: the end comes behind the whole text",
        file=SERVING,
        line="    for frame in story.ending:\n        if not isinstance(posted, Sent):\n            break\n",
        without="    for frame in story.ending:\n",
        guards="who has the end has all of it",
        tests=(f"{U_TROUBLES}::test_no_end_is_told_before_the_text_that_it_ends",),
    ),
    SafetyLine(
        name="serve: who has text of an attempt that died is told",
        file=SERVING,
        line="    if 0 < watch.attempt < job.attempt or (greeting and greeting.void):",
        without="    if greeting and greeting.void:",
        guards="texts of two attempts are never mixed",
        tests=(f"{U_WATCHING}::test_a_retry_starts_again_and_texts_never_mix",),
    ),
    SafetyLine(
        name="push: a record that cannot be read holds up nobody",
        file=PUSH,
        line="        except UnreadableRecord as broken:  # it stays as it is, however often we look\n",
        without="        except ZeroDivisionError as broken:\n",
        guards="G16: one poison record blocks no shard",
        tests=(f"{I_HANDLERS}::test_a_poison_record_blocks_nobody",),
    ),
    SafetyLine(
        name="push: what is no stream is not taken for handled",
        file=PUSH,
        line='        raise NoStreamEvent("expected the Records of a DynamoDB stream")\n',
        without="        return {}\n",
        guards="a mapping that is wrong is seen",
        tests=(f"{I_HANDLERS}::test_what_is_no_stream_is_not_taken_for_handled",),
    ),
)  # fmt: skip
