from adead_models import cluster
from adead_models.dask import DaskEngine
from distributed import Client, LocalCluster

if __name__ == "__main__":  # the workers are processes that import this file
    with LocalCluster(2, threads_per_worker=1) as here, Client(here) as client:  # or Client("tcp://scheduler:8786")
        engine = DaskEngine(client)  # one actor on each worker
        report = cluster.embed("sentences", "embeddings-dask", model="all-MiniLM-L6-v2", rows_per_shard=10, engine=engine)
        print("sha256", report.sha256)
