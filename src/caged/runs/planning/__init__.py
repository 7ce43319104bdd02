"""What a training will need before it begins: memory, seconds per epoch, and what to change if it does not fit.

workload   what is to be trained, in numbers
inventory  every allocation of a training, its bytes and when it is there: the memory model, once for everybody
pace       seconds per epoch, from rates that were measured (rates.json)
plan       both together, with advice
fitting    what `caged train` asks before it allocates
"""
