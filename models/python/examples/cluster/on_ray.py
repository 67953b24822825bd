import ray
from adead_models import cluster
from adead_models.ray import RayEngine

ray.init("local", num_cpus=2)  # or ray.init("ray://head:10001")
engine = RayEngine(workers=2, num_cpus=1)  # on GPUs: num_gpus=1, and device="cuda" below
report = cluster.embed("sentences", "embeddings-ray", model="all-MiniLM-L6-v2", rows_per_shard=10, engine=engine)
for lost in report.repeated:
    print("shard", lost.shard, "was lost with", lost.worker, "and computed again")
print("sha256", report.sha256)
