"""The explorer: a page that shows people's histories and lists, so it is served only where it is asked for."""
