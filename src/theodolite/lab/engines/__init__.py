"""Where groups of cells run: this process, a pool, CUDA streams, Ray, Slurm. What a cell means is not known here."""
