"""Drawing only, for every product: knows none of them.

`numbers`, `units` and `text_table` write text; `looks` gives every method its colour; `svg`, `charts` and `scatter`
draw; `figure_file` writes a drawing as a file, `html` one self-contained page (extra `report`). Nothing is imported
here, so that the command line starts fast.
"""
