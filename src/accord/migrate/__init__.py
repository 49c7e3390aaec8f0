"""From a program written for another library to one for accord: a text in; a text, and what is left to do, out."""
