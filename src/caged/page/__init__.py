"""Drawing only, for every product: knows none of them.

`numbers` and `text_table` write text, `svg`, `charts` and `scatter` draw, `html` makes one self-contained page of it
(extra `report`). Nothing is imported here, so that the command line starts fast.
"""
