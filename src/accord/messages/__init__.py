"""The messages of the protocol: typed, frozen values of all five revisions, and the table of methods."""
