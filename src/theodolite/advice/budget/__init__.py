"""What a run takes, before it starts: tokens, FLOPs and GPU-hours, losses by published fits, memory on a GPU.

Everything here takes a `ModelShape` and numbers; no configuration is read here, and nothing is built.
"""
