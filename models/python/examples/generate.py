"""generate.py MODEL PROMPT: prints the text piece by piece, and why it ended."""

import sys

from adead_models import TextGenerator

with TextGenerator(sys.argv[1]) as model:
    # Sampled. A seed gives the same text on every device.
    stream = model.stream(sys.argv[2], max_tokens=20, temperature=0.8, seed=7)
    for piece in stream:
        print(piece, end="", flush=True)
    answer = stream.generation
    print(f"\n{len(answer.tokens)} tokens, {answer.finish}")

    if model.has_chat_template:
        print(model.chat([{"role": "user", "content": sys.argv[2]}], max_tokens=20).text)
