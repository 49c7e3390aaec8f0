"""A `Report` in the forms that people and programs read: what is drawn here is text; who prints it is the command line.

What a peer wrote is shown so that it cannot pass for anything else: see `visible` and `markup`.
"""
