"""The parts of the built-in market; `caged.data.market.simulate` is the door.

config    the parameters and why they have their values
world     what users truly like, drawn once
policy    the shop's small personalised model
loop      rounds of showing and clicking, and the oracle test
titles    names of items and genres
truth     metrics that need to know what users truly like
"""
