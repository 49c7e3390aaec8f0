"""From a program that is written for another library to one for accord: a text in, a text and what is left to do out."""
