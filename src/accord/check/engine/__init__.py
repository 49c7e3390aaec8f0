"""The engine of the checker: rules, their cases, runs, confirmation, reports and baselines."""
