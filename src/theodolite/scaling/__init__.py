"""Depth against width at equal size, on real text: which shape learns best, how flat the valley is, where it ends."""
