"""embed.py MODEL: prints the cosine of two sentences, then embeds the lines of stdin."""

import sys

from adead_models import SentenceEncoder

with SentenceEncoder(sys.argv[1]) as encoder:
    rows = encoder.encode(["The ferry came in.", "A boat arrived."])
    print(encoder.width, "values, cosine", rows[0] @ rows[1])

    first = 0
    for some in encoder.batch_embed(line.rstrip("\n") for line in sys.stdin):
        print("rows", first, "to", first + len(some))
        first += len(some)
