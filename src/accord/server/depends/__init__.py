"""Dependencies: parameters of a handler that functions of the program provide."""
