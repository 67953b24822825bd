"""Trains in the processes that MPI starts: mpiexec -n 4 python train_mpi.py. The hash is the same with any number of them."""

import numpy
from adead_models import Trainer
from adead_models.mpi import MpiTransport

ranks = MpiTransport()
x = numpy.random.default_rng(7).random((240, 6), numpy.float32)
classes = (x[:, 0] > 0.5).astype(numpy.int64)

with Trainer(
    [{"linear": 32}, "gelu", {"linear": 2}], {"kind": "adamw", "rate": 0.01}, input=[6], batch=24, shards=8, seed=7, device="cpu"
) as net:
    net.join(ranks)
    net.fit(x, classes, epochs=3)  # each rank passes all samples, and computes its shards
    if ranks.rank == 0:
        print("sha256", net.sha256())
