"""Test cases generated from the schemas of a server: valid, boundary and invalid values, and calls with them.

Values:

schema_document      a schema from a server, with absolute references
alternatives, shape  the constraints at one location of a value, as alternatives without choices
smallest             one small valid value, always the same; needs no hypothesis
values               a hypothesis strategy for valid values
variants             the locations of a value, and the value with one of them changed
boundaries           valid values at the bounds: smallest, longest, empty, unusual
invalid_values       values with one defect

Calls:

fuzz_targets         what can be called: tools, prompts, templates, completions, resources, pages of lists
sequences            calls that use values from the results of earlier calls
value_pool           values that the server returned, and the calls that returned them
trial_plan           the calls to one target, in order
fuzz_client          one call on a connection that reopens; how to judge a missing response
sequence_runner      one sequence of calls, with each response checked (response_checks, leaks)
sequence_reducer     the shortest sequence that still fails
failure_finder       the failures of one sequence
fuzz_run             the whole run, in bounded time, or a replay of the calls of one failure
"""
