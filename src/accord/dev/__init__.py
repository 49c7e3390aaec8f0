"""Live reload: `accord dev` keeps a host connected while the program of the server is replaced."""
