from adead_models import cluster

if __name__ == "__main__":  # the workers are processes that import this file
    engine = cluster.LocalEngine(workers=2)
    report = cluster.embed("sentences", "embeddings", model="all-MiniLM-L6-v2", keep=["id"], rows_per_shard=10, engine=engine)
    print(report.rows, "rows in", report.shards, "shards, sha256", report.sha256)

    again = cluster.embed("sentences", "embeddings", model="all-MiniLM-L6-v2", keep=["id"], rows_per_shard=10, engine=engine)
    assert again.computed == () and again.sha256 == report.sha256  # all shards were finished

    # Anybody who has the inputs and the model can check any shard.
    print(cluster.check("sentences", "embeddings", model="all-MiniLM-L6-v2", shards=[0, 3]))
