import ray
from adead_models.ray import SentenceEmbedder
from ray.data import ActorPoolStrategy, DataContext

ray.init("local", num_cpus=2)
DataContext.get_current().execution_options.preserve_order = True  # otherwise blocks arrive in the order of completion

rows = ray.data.read_parquet("sentences").map_batches(
    SentenceEmbedder,
    fn_constructor_kwargs={"model": "all-MiniLM-L6-v2", "threads": 1},
    compute=ActorPoolStrategy(size=2),
    num_cpus=0.5,  # on GPUs: num_gpus=1, and "device": "cuda" above
    batch_size=16,
)
rows.write_parquet("embedded")
