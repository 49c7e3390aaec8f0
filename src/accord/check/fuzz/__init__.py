"""Cases made from the schemas of a peer: values that fit, values at the edge, values that do not fit, and their use.

document      a schema from a peer, with its references made plain
arms, shape   what must hold at one place of a value: as alternatives, and each of them as one thing
smallest      one small value, the same every time; it needs no hypothesis
values        a hypothesis strategy: any value that fits
variants      the places of a value, and the value with one of them changed
boundaries    the edges: the least, the longest, the empty, the strange
breaches      a value with one thing wrong
shrinking     the least value that still fails

subjects      what can be called: tools, prompts, templates, completions, resources, pages of lists
sequences     calls of which later ones take values out of the results of earlier ones
pool          what a server gave, and the calls by which it was had
trials        the plan for one subject: which calls are tried, in which order
calling       one call, in a conversation that is opened again; what it means when no answer comes
running       one sequence, judged call by call (troubles, leaks)
reducing      the shortest sequence that still fails
finding       from one sequence to its faults
exploring     all of it, in bounded time; or just the calls of one fault again
"""
