"""The SHA-256 of the embeddings of a file's lines: sentences_hash.py MODEL FILE DEVICE."""

import hashlib
import sys
import warnings

from adead_models import SentenceEncoder, TruncationWarning

warnings.simplefilter("ignore", TruncationWarning)
model, path, device = sys.argv[1:]
digest = hashlib.sha256()
with open(path, encoding="utf-8", newline="\n") as lines, SentenceEncoder(model, device) as encoder:
    for rows in encoder.batch_embed(line.removesuffix("\n") for line in lines):
        digest.update(rows.tobytes())
print(digest.hexdigest())
