"""Cases made from the schemas of a peer: values that fit, values at the edge, values that do not fit, and their use.

document      a schema from a peer, with its references made plain
arms, shape   what must hold at one place of a value: as alternatives, and each of them as one thing
smallest      one small value, the same every time; it needs no hypothesis
values        a hypothesis strategy: any value that fits
variants      the places of a value, and the value with one of them changed
boundaries    the edges: the least, the longest, the empty, the strange
breaches      a value with one thing wrong
shrinking     the least value that still fails
"""
