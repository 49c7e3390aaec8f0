"""From a request to its result: registry, resolver, dispatcher, invoker, results, context."""
