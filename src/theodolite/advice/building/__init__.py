"""Models built by `transformers` on the meta device, where it is installed: nothing is loaded, run or downloaded."""
