"""The test that covers each row of docs/protocol.md: `FILE::TEST`, with a scenario's name in brackets if it is one.

One test is named for each row: the one that looks at it most closely. Nearly every row is also part of ONE_PROGRAM.
"""

from __future__ import annotations

ONE_PROGRAM = (
    "tests/everything/test_every_revision.py::test_handlers_see_the_same_in_every_revision_but_for_what_it_forces"
)
SHAPE = "tests/test_schema_parity.py::test_types_are_those_of_the_official_schema"
"""Only the shape is covered: nothing in accord uses it yet."""


def _scenario(name: str) -> str:
    return f"tests/conformance/test_scenarios.py::test_the_scenario_is_played_as_written[{name}]"


def _in(file: str, test: str) -> str:
    return f"tests/{file}.py::test_{test}"


_INPUT_TASKS, _TASKS = "client/test_input_tasks", "server/tasks/test_calls"
_ASKED, _SUBSCRIPTIONS, _LISTS, _BAD, _ALONE, _HTTP_SESSION = (
    "client/test_input_handlers",
    "server/notify/test_subscriptions",
    "server/test_list_changes",
    "session/test_invalid_messages",
    "server/http/test_stateless",
    "server/http/test_session",
)

COVERAGE: dict[str, str] = {
    # what a client asks
    "client initialize": _scenario("server-initialize"),
    "client server/discover": _scenario("server-stateless"),
    "client ping": _scenario("ping"),
    "client tools/list": _scenario("tools-list"),
    "client tools/call": _scenario("tools-call-mixed-content"),
    "client resources/list": _scenario("resources-list"),
    "client resources/templates/list": _scenario("resources-templates-read"),
    "client resources/read": _scenario("resources-read-text"),
    "client resources/subscribe": _in(
        _SUBSCRIPTIONS, "a_client_is_notified_of_what_it_subscribed_to_until_it_unsubscribes"
    ),
    "client resources/unsubscribe": _scenario("resources-unsubscribe"),
    "client prompts/list": _scenario("prompts-list"),
    "client prompts/get": _scenario("prompts-get-with-args"),
    "client completion/complete": _scenario("completion-complete"),
    "client logging/setLevel": _scenario("logging-set-level"),
    "client subscriptions/listen": _in(_SUBSCRIPTIONS, "a_subscription_is_acknowledged_and_tagged"),
    **dict.fromkeys(
        (f"client tasks/{verb}" for verb in ("get", "result")), _in(_TASKS, "a_call_returns_the_result_of_its_task")
    ),
    "client tasks/list": _in("server/http/test_tasks", "principals_cannot_see_the_tasks_of_each_other_in_sessions"),
    "client tasks/cancel": _in(_TASKS, "cancelling_a_task_cancels_its_handler"),
    # what a client tells
    "client notifications/initialized": _in(
        "session/test_handshake", "requests_are_served_as_soon_as_initialize_is_answered_but_our_own_wait"
    ),
    "client notifications/cancelled": _in("session/test_requests", "a_cancelled_request_is_not_answered"),
    "client notifications/progress": _in(
        "session/test_progress", "a_client_may_report_progress_of_a_request_of_the_server"
    ),
    "client notifications/roots/list_changed": _in(_ASKED, "the_server_is_notified_when_the_roots_change"),
    "client notifications/tasks/status": _in(_INPUT_TASKS, "a_cancelled_task_ends_its_handler_and_has_no_result"),
    # what a server asks
    "server ping": _in("session/test_handshake", "ping_is_answered_before_the_opening_by_both_sides"),
    "server sampling/createMessage": _scenario("tools-call-sampling"),
    "server elicitation/create": _scenario("tools-call-elicitation"),
    "server roots/list": _scenario("input-required-result-basic-list-roots"),
    **dict.fromkeys(
        (f"server tasks/{verb}" for verb in ("get", "result")),
        _in(_INPUT_TASKS, "a_request_with_a_task_is_answered_at_once_and_has_its_result_later"),
    ),
    "server tasks/list": _in(_INPUT_TASKS, "the_list_of_tasks_has_pages"),
    "server tasks/cancel": _in(_INPUT_TASKS, "a_cancelled_task_ends_its_handler_and_has_no_result"),
    # what a server tells
    "server notifications/cancelled": _in("session/test_requests", "a_server_cancels_its_own_requests_too"),
    "server notifications/progress": _scenario("tools-call-with-progress"),
    "server notifications/tools/list_changed": _in(_LISTS, "a_change_is_notified_and_the_list_is_new"),
    "server notifications/resources/updated": _in(
        _SUBSCRIPTIONS, "a_client_is_notified_of_what_it_subscribed_to_until_it_unsubscribes"
    ),
    "server notifications/resources/list_changed": _in(_LISTS, "a_change_is_notified_and_the_list_is_new"),
    "server notifications/prompts/list_changed": _in(_LISTS, "a_change_is_notified_and_the_list_is_new"),
    "server notifications/message": _scenario("tools-call-with-logging"),
    "server notifications/subscriptions/acknowledged": _in(_SUBSCRIPTIONS, "a_subscription_is_acknowledged_and_tagged"),
    "server notifications/elicitation/complete": _in(
        _ASKED, "a_page_is_completed_once_and_only_when_the_user_agreed_to_visit_it"
    ),
    "server notifications/tasks/status": _in(_TASKS, "the_session_receives_the_states_of_its_tasks"),
    # capabilities
    "capability of a client: elicitation": _in(
        _ASKED, "a_client_declares_what_it_was_given_in_the_words_of_the_revision"
    ),
    "capability of a client: elicitation.form": _in(
        "session/test_capabilities", "an_empty_elicitation_means_by_form_only"
    ),
    "capability of a client: elicitation.url": _in(
        "session/test_capabilities", "an_empty_elicitation_means_by_form_only"
    ),
    "capability of a client: experimental": _in(
        "session/test_extensions", "extensions_and_experiments_are_different_things"
    ),
    "capability of a client: extensions": _in(
        "session/test_extensions", "what_the_client_must_declare_is_refused_with_the_name_of_it"
    ),
    "capability of a client: roots": _in(_ASKED, "a_client_declares_what_it_was_given_in_the_words_of_the_revision"),
    "capability of a client: roots.listChanged": _in(
        _ASKED, "a_client_declares_what_it_was_given_in_the_words_of_the_revision"
    ),
    "capability of a client: sampling": _in(_ASKED, "a_client_declares_what_it_was_given_in_the_words_of_the_revision"),
    "capability of a client: sampling.context": SHAPE,
    "capability of a client: sampling.tools": _in(
        _ASKED, "modes_of_elicitation_and_tools_of_sampling_are_declared_when_given"
    ),
    "capability of a server: completions": ONE_PROGRAM,
    "capability of a server: experimental": _in(
        "session/test_extensions", "extensions_and_experiments_are_different_things"
    ),
    "capability of a server: extensions": _in(
        "session/test_extensions", "what_the_server_does_not_offer_is_neither_requested_nor_served"
    ),
    "capability of a server: logging": _in("server/notify/test_logs", "logging_is_declared_where_a_handler_can_log"),
    **dict.fromkeys(
        (
            f"capability of a server: {name}{part}"
            for name, parts in (
                ("prompts", ("", ".listChanged")),
                ("resources", ("", ".listChanged", ".subscribe")),
                ("tools", ("", ".listChanged")),
            )
            for part in parts
        ),
        ONE_PROGRAM,
    ),
    **dict.fromkeys(
        (
            f"capability of a client: tasks{part}"
            for part in (
                "",
                ".cancel",
                ".list",
                ".requests",
                ".requests.elicitation",
                ".requests.elicitation.create",
                ".requests.sampling",
                ".requests.sampling.createMessage",
            )
        ),
        _in(_INPUT_TASKS, "a_client_declares_tasks_for_the_handlers_that_it_has"),
    ),
    **dict.fromkeys(
        (
            f"capability of a server: tasks{part}"
            for part in ("", ".cancel", ".list", ".requests", ".requests.tools", ".requests.tools.call")
        ),
        _in(_TASKS, "only_a_tool_with_tasks_may_be_asked_to_run_as_one"),
    ),
    # error codes
    "error -32700": _in(_BAD, "a_bad_message_gets_exactly_one_error_and_the_next_good_one_is_answered"),
    "error -32600": _in(_BAD, "a_bad_message_gets_exactly_one_error_and_the_next_good_one_is_answered"),
    "error -32601": _in(_BAD, "an_unknown_method_is_refused"),
    "error -32602": _in(_BAD, "a_bad_message_gets_exactly_one_error_and_the_next_good_one_is_answered"),
    "error -32603": _in(_ASKED, "a_handler_that_raises_ends_its_question_and_nothing_else"),
    "error -32002": _scenario("sep-2164-resource-not-found"),
    "error -32020": _in(_ALONE, "headers_that_say_something_else_than_the_body_are_400"),
    "error -32021": _in("session/test_capabilities", "a_missing_capability_has_the_code_of_the_revision"),
    "error -32022": _in(
        "session/test_handshake", "a_revision_in_meta_that_is_not_supported_there_is_refused_with_those_that_are"
    ),
    "error -32042": _in(_ASKED, "pages_that_must_be_visited_first_are_a_typed_error"),
    "error -1": _in(_ASKED, "sampling_is_declined_with_the_error_of_the_specification"),
    "error 429": _in(
        "server/http/test_request_body", "one_tool_call_too_many_says_what_the_limit_is_and_when_to_come_back"
    ),
    # over HTTP
    "HTTP POST": _in(_ALONE, "each_method_is_answered_in_a_post_of_its_own"),
    "HTTP GET": _in(_HTTP_SESSION, "changes_go_out_on_the_general_stream_only"),
    "HTTP DELETE": _in(_HTTP_SESSION, "after_delete_it_is_404_and_what_ran_is_answered_and_cancelled"),
    "HTTP HTTP+SSE": _in(_ALONE, "three_eras_on_one_port"),
    "HTTP mcp-session-id": _in(_HTTP_SESSION, "anothers_session_is_the_same_404_as_one_that_never_was"),
    "HTTP last-event-id": _in("server/http/test_resumption", "a_stream_that_is_cut_after_any_event_is_taken_up_there"),
    "HTTP mcp-protocol-version": _in(_ALONE, "the_era_of_a_post"),
    "HTTP mcp-method": _in(_ALONE, "headers_that_say_something_else_than_the_body_are_400"),
    "HTTP mcp-name": _in(_ALONE, "a_name_may_be_plain_or_encoded"),
    "HTTP mcp-param-*": _in(_ALONE, "an_argument_that_is_mirrored_in_a_header_is_checked"),
}
