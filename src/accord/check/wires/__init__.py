"""Raw bytes both ways: the wires on which a checker can say anything, right or wrong."""
