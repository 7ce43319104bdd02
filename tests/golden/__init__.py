"""What every command prints, at three widths and in a pipe, as it was when somebody last looked at it.

python -m tools.golden        writes all files anew; look at the difference before you commit it
"""
