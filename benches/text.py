#!/usr/bin/env python3
"""Compares `adead generate` with llama.cpp (the package xllamacpp) on the CPU, in one run, in turns.

    python3 benches/text.py --model FILE.gguf [--adead target/release/adead] [--threads 1,2] [--rounds 5] [--prompt 512] [--answer 128]

Needs xllamacpp in the Python that runs it. For each number of threads, llama.cpp has a process of its own, which is stopped while
adead works. adead's process is started anew for each turn; its times are those that it reports, without opening the model. Both read the
same prompt of about `--prompt` tokens and then write `--answer` tokens, the most likely one each time. The output has medians of
tokens per second, of the prompt and of the answer, the median of each round's ratio, and how many characters of both answers agree
from the first one on.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def llama(model, threads, tokens):
    """The process of llama.cpp: reads a prompt a line, as JSON, and prints what it did."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_gpu_layers = 0
    params.verbosity = -1
    server = xllamacpp.Server(params)
    for line in sys.stdin:
        answer = server.handle_completions(
            {"prompt": json.loads(line), "n_predict": tokens, "temperature": 0, "cache_prompt": False}
        )
        timings = answer["timings"]
        print(
            json.dumps(
                {
                    "prompt": timings["prompt_per_second"],
                    "prompt_tokens": timings["prompt_n"],
                    "answer": timings["predicted_per_second"],
                    "text": answer["choices"][0]["text"],
                }
            ),
            flush=True,
        )


def adead(command, model, threads, prompt, tokens):
    arguments = [command, "generate", "--model", model, "--prompt", "-", "--max-tokens", str(tokens), "--json"]
    arguments += ["--device", "cpu", "--threads", str(threads)]
    done = subprocess.run(arguments, input=prompt, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    # The first token comes with the prompt's last chunk.
    return {
        "prompt": told["prompt_tokens"] / told["prompt_seconds"],
        "prompt_tokens": told["prompt_tokens"],
        "answer": told["tokens_per_second"],
        "text": told["text"],
    }


def text_of(tokens):
    """English text of about so many tokens."""
    lines = (ROOT / "tests/sentences/sentences.txt").read_text(encoding="utf-8").split("\n")
    words = " ".join(line for line in lines if line.isascii()).split()
    return " ".join(words[: tokens * 3 // 4])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--adead", default=str(ROOT / "target/release/adead"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--answer", type=int, default=128)
    parser.add_argument("--peer", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return llama(args.model, args.peer, args.answer)
    prompt = text_of(args.prompt)
    for threads in map(int, args.threads.split(",")):
        own = [sys.executable, __file__, "--model", args.model, "--peer", str(threads), "--answer", str(args.answer)]
        with subprocess.Popen(
            own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ
        ) as peer:
            rounds = []
            for number in range(args.rounds + 1):
                peer.stdin.write(json.dumps(prompt) + "\n")
                peer.stdin.flush()
                theirs = json.loads(peer.stdout.readline())
                # Its threads would look for work for a while.
                os.kill(peer.pid, signal.SIGSTOP)
                ours = adead(args.adead, args.model, threads, prompt, args.answer)
                os.kill(peer.pid, signal.SIGCONT)
                # The first round warms up.
                if number:
                    rounds.append((ours, theirs))
            peer.stdin.close()
        ours, theirs = rounds[-1]
        print(f"{threads} thread{'s' if threads > 1 else ''}, prompt of {ours['prompt_tokens']} tokens ({theirs['prompt_tokens']})")
        for what in ("prompt", "answer"):
            of = [[turn[side][what] for turn in rounds] for side in (0, 1)]
            ratio = statistics.median(a / b for a, b in zip(*of))
            print(f"  {what}: {statistics.median(of[0]):.1f} tokens/s, llama.cpp {statistics.median(of[1]):.1f}: {ratio:.2f} x")
        same = len(os.path.commonprefix([ours["text"], theirs["text"]]))
        print(f"  the first {same} of {len(ours['text'])} characters agree")


if __name__ == "__main__":
    main()
