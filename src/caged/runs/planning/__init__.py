"""What a training will need before it begins: memory, seconds per epoch, and what to change if it does not fit.

workload   what is to be trained, in numbers
inventory  what a training holds at its worst moment, by name: the memory model, once for everybody
course     on CUDA: the tensors that a training makes and frees, in their order
allocator  on CUDA: what torch takes from the device for them
pace       seconds per epoch, from rates that were measured (rates.json)
plan       both together, with advice
fitting    what `caged train` asks before it allocates
"""
