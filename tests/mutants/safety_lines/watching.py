"""Safety lines of live watching: only who may watches, nothing is left out, and nobody is disturbed by another."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CONNECT = "handlers/connect.py"
CONNECTIONS = "adapters/connections.py"
CONVERSATION = "core/watching/conversation.py"
POSTMAN = "adapters/push.py"
PUSH = "handlers/push.py"
SERVING = "core/watching/serving.py"
SOCKET = "handlers/socket.py"
TICKETS = "core/watching/tickets.py"
I_CONNECTIONS = "tests/integration/test_adapter_connections.py"
I_HANDLERS = "tests/integration/test_handler_watching.py"
I_POSTMAN = "tests/integration/test_adapter_push.py"
U_RACES = "tests/unit/test_watching_races.py"
U_REQUESTS = "tests/unit/test_watching_requests.py"
U_TICKETS = "tests/unit/test_tickets.py"
U_TROUBLES = "tests/unit/test_watching_troubles.py"
U_WATCHING = "tests/unit/test_watching.py"

LINES = (
    SafetyLine(
        name="ticket: only for jobs of one's own",
        file=TICKETS,
        line="        if isinstance(found, Problem):\n",
        without="        if False:\n",
        guards="G5: a tenant watches no other's job",
        tests=(f"{U_TICKETS}::test_every_job_must_be_there_and_the_tenant_s_own",),
    ),
    SafetyLine(
        name="ticket: its digest alone is stored",
        file=TICKETS,
        line="    booth.tickets.put(sha256(ticket), ",
        without="    booth.tickets.put(ticket, ",
        guards="who reads the table cannot connect",
        tests=(f"{U_TICKETS}::test_a_ticket_says_where_it_is_shown_and_is_kept_as_a_digest_alone",),
    ),
    SafetyLine(
        name="ticket: what is no ticket is not looked for",
        file=TICKETS,
        line="    if ticket is None or not _TICKET.fullmatch(ticket):\n",
        without="    if ticket is None:\n",
        guards="nobody makes the store work with texts of any length",
        tests=(f"{U_TICKETS}::test_what_is_no_ticket_is_not_looked_for",),
    ),
    SafetyLine(
        name="ticket: an expired one is not taken though it is still there",
        file=CONNECTIONS,
        line='                    ConditionExpression="#expires > :now",\n',
        without='                    ConditionExpression="#expires > :now OR attribute_exists(#expires)",\n',
        guards="a ticket that was written down somewhere is worth nothing after a minute",
        tests=(f"{I_CONNECTIONS}::test_an_expired_ticket_is_not_taken_though_it_is_still_there",),
    ),
    SafetyLine(
        name="connect: without a ticket nobody comes in",
        file=CONNECT,
        line='        return _policy("Deny", route, "nobody", {})\n',
        without='        return _policy("Allow", route, "nobody", {})\n',
        guards="G5: a tenant watches no other's job",
        tests=(f"{I_HANDLERS}::test_who_has_no_ticket_is_denied",),
    ),
    SafetyLine(
        name="socket: a connection that is not recorded is none",
        file=SOCKET,
        line='        return {"statusCode": 503}\n',
        without='        return {"statusCode": 200}\n',
        guards="nobody waits on a connection that nobody knows",
        tests=(f"{I_HANDLERS}::test_without_a_place_in_the_table_there_is_no_connection",),
    ),
    SafetyLine(
        name="watch: the ticket must name the job",
        file=CONVERSATION,
        line="    if job_id not in connection.grant.job_ids:\n",
        without="    if False:\n",
        guards="a ticket handed on is good for what it names, and no more",
        tests=(f"{U_REQUESTS}::test_a_job_outside_the_ticket_is_not_there",),
    ),
    SafetyLine(
        name="watch: it stands before anything is read",
        file=CONVERSATION,
        line="""\
    relay.connections.watch(watch, connection.expires_at)  # before anything is read that is sent
    serve([watch], relay, Greeting(void))
""",
        without="""\
    serve([watch], relay, Greeting(void))
    relay.connections.watch(watch, connection.expires_at)
""",
        guards="what is stored at that very moment finds the watch",
        tests=(
            f"{U_TROUBLES}::test_a_watch_registered_at_the_very_moment_of_the_final_write_hears_of_it",
            U_RACES,
        ),
    ),
    SafetyLine(
        name="watch: more chunks than there are belong to something else",
        file=CONVERSATION,
        line="    void = attempt == job.attempt and not _has(job, asked.start, relay)\n",
        without="    void = False\n",
        guards="texts of two attempts are never mixed",
        tests=(f"{U_WATCHING}::test_who_counted_more_than_there_is_begins_again",),
    ),
    SafetyLine(
        name="watch: who went without a word keeps no place",
        file=CONVERSATION,
        line="        probe(watchers, relay)\n",
        without="",
        guards="WS-02: $disconnect may never come",
        tests=(f"{U_REQUESTS}::test_who_went_without_a_word_keeps_no_place_from_others",),
    ),
    SafetyLine(
        name="serve: a cursor counts the chunks of its own attempt",
        file=SERVING,
        line="    return watch.next if watch.attempt == job.attempt else 0\n",
        without="    return watch.next\n",
        guards="a new attempt is sent from its beginning",
        tests=(f"{U_WATCHING}::test_who_comes_back_with_text_of_an_older_attempt_is_told_so",),
    ),
    SafetyLine(
        name="serve: nothing is sent behind what was not",
        file=SERVING,
        line="""\
        if not isinstance(posted, Sent):
            break
        at = story.job.attempt, behind
""",
        without="        at = story.job.attempt, behind\n",
        guards="a cursor stands behind what was sent: no gap, only repeats",
        tests=(
            f"{U_TROUBLES}::test_what_could_not_be_sent_comes_with_the_next_news",
            f"{U_TROUBLES}::test_progress_before_the_trouble_is_kept",
        ),
    ),
    SafetyLine(
        name="serve: a chunk waits for the one before it",
        file=SERVING,
        line="            if chunk.n != first:",
        without="            if False:",
        guards="no gap, only repeats",
        tests=(f"{U_TROUBLES}::test_a_chunk_behind_a_gap_waits_for_what_is_missing",),
    ),
    SafetyLine(
        name="serve: an old watch does not end a new one",
        file=SERVING,
        line="        return  # nobody waits for it any more, or another watch has begun\n",
        without="        pass\n",
        guards="the end comes behind the whole text",
        tests=(f"{U_TROUBLES}::test_a_cursor_of_an_old_watch_does_not_move_the_new_one",),
    ),
    SafetyLine(
        name="serve: an end that was not heard is told again",
        file=SERVING,
        line="        case Sent():\n            if ended:\n",
        without="        case Sent() | Trouble():\n            if ended:\n",
        guards="who watches hears how it ended",
        tests=(f"{U_TROUBLES}::test_a_trouble_at_the_end_leaves_the_watch",),
    ),
    SafetyLine(
        name="serve: who is gone is forgotten whole",
        file=SERVING,
        line="            relay.connections.close(watch.connection_id)\n",
        without="",
        guards="WS-01, WS-02: nobody is sent to for hours who is not there",
        tests=(f"{U_TROUBLES}::test_who_is_gone_is_forgotten_with_all_that_it_watched",),
    ),
    SafetyLine(
        name="serve: a trouble of one is told when all had their turn",
        file=SERVING,
        line="            return trouble\n        return None\n\n    for trouble in",
        without="            raise\n        return None\n\n    for trouble in",
        guards="WS-01: one watcher's trouble is no other's",
        tests=(f"{U_TROUBLES}::test_an_unreachable_table_is_told_after_the_others_were_served",),
    ),
    SafetyLine(
        name="connections: a cursor belongs to one watch",
        file=CONNECTIONS,
        line='"#mark = :mark AND (#attempt <',
        without='"(#mark = :mark OR attribute_exists(#mark)) AND (#attempt <',
        guards="a watch that begins anew is sent everything from where it begins",
        tests=(f"{I_CONNECTIONS}::test_a_cursor_of_another_watch_is_left_alone",),
    ),
    SafetyLine(
        name="connections: a cursor never goes back",
        file=CONNECTIONS,
        line="(#attempt < :attempt OR (#attempt = :attempt AND #next < :next))",
        without="(#attempt <> :attempt OR #next <> :next)",
        guards="who is late repeats nothing that was sent long ago",
        tests=(f"{I_CONNECTIONS}::test_a_cursor_never_goes_back",),
    ),
    SafetyLine(
        name="connections: the end of a watch is not that of a later one",
        file=CONNECTIONS,
        line='                "ConditionExpression": "#mark = :mark",\n',
        without='                "ConditionExpression": "#mark = :mark OR attribute_exists(#mark)",\n',
        guards="who unwatches and watches again is sent what comes",
        tests=(f"{I_CONNECTIONS}::test_the_end_of_an_old_watch_is_not_that_of_a_new_one",),
    ),
    SafetyLine(
        name="postman: 410 is gone whatever its code",
        file=POSTMAN,
        line='            if status == 410 or code_of(error) == "GoneException":\n',
        without='            if code_of(error) == "GoneException":\n',
        guards="WS-01",
        tests=(f"{I_POSTMAN}::test_ws_01_who_is_gone_is_known_by_the_code_and_by_the_status",),
    ),
    SafetyLine(
        name="push: a table that cannot be reached is asked again",
        file=PUSH,
        line="            failed += numbers\n",
        without="",
        guards="a hint is used up by whoever could read what it is about",
        tests=(f"{I_HANDLERS}::test_only_the_records_of_the_job_whose_watchers_cannot_be_read_fail",),
    ),
)  # fmt: skip
