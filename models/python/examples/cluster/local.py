from adead_models import cluster

if __name__ == "__main__":  # the workers are processes that import this file
    engine = cluster.LocalEngine(workers=2)
    report = cluster.embed("sentences", "embeddings", model="all-MiniLM-L6-v2", keep=["id"], rows_per_shard=10, engine=engine)
    print(report.rows, "rows in", report.shards, "shards, sha256", report.sha256)

    again = cluster.embed("sentences", "embeddings", model="all-MiniLM-L6-v2", keep=["id"], rows_per_shard=10, engine=engine)
    assert again.computed == () and again.sha256 == report.sha256  # nothing was computed again

    # With the inputs and the model, any shard can be checked.
    print(cluster.check("sentences", "embeddings", model="all-MiniLM-L6-v2", shards=[0, 3]))
