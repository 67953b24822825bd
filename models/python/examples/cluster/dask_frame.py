import dask.dataframe
from adead_models.dask import SentenceEmbedder, embed_frame
from distributed import Client, LocalCluster

if __name__ == "__main__":
    with LocalCluster(2, threads_per_worker=1) as here, Client(here) as client:
        frame = dask.dataframe.read_parquet("sentences")
        embed_frame(frame, "all-MiniLM-L6-v2").to_parquet("embedded-frame")
        rows = dask.dataframe.read_parquet("embedded-frame", dtype_backend="pyarrow").compute()
        print(rows.dtypes)

        # An actor: the model stays open on a worker.
        actor = client.submit(SentenceEmbedder, "all-MiniLM-L6-v2", actor=True).result()
        print(actor.encode(["The ferry came in."]).result().shape)
