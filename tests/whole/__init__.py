"""Promises that no single file keeps: the program from end to end."""
