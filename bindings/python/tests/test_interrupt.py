"""Ctrl-C during long work: the work ends soon, inside its `try`, and earlier data is unchanged."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

import adead

BEGIN = """
import os, signal, sys, threading, time
import numpy
import adead

# A shell's background jobs ignore it, and Python then installs no handler of its own.
signal.signal(signal.SIGINT, signal.default_int_handler)

ctx = adead.Context("cpu")
x = adead.Tensor(numpy.random.default_rng(1).standard_normal((1024, 1024), dtype=numpy.float32))
expected = ctx.matmul(x, x).tobytes()
sent = []

def send():
    sent.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)
"""


def run(text):
    script = BEGIN + textwrap.dedent(text)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent to the process itself")


def test_the_exception_comes_inside_the_try():
    """Of a product that takes for ever: without an end it would run into the timeout."""
    run("""
        threading.Timer(0.3, send).start()
        try:
            while True:
                ctx.attention(x.reshape(16, 1024, 64), x.reshape(16, 1024, 64), x.reshape(16, 1024, 64))
                ctx.matmul(x, x)
        except KeyboardInterrupt:
            took = time.perf_counter() - sent[0]
        assert ctx.matmul(x, x).tobytes() == expected
        print(took)
    """)


def test_one_long_call_ends():
    run("""
        long = adead.Tensor(numpy.ones((1, 64, 8192, 64), dtype=numpy.float32))
        ctx.relu(long)
        threading.Timer(0.2, send).start()
        try:
            # Minutes of it.
            ctx.attention(long, long, long)
        except KeyboardInterrupt:
            print(time.perf_counter() - sent[0])
        else:
            raise AssertionError("it was not interrupted")
        assert ctx.matmul(x, x).tobytes() == expected
    """)


def test_a_handler_that_does_not_raise_changes_nothing_and_may_compute():
    run("""
        seen = []

        def handler(*_):
            seen.append(ctx.matmul(x, x).tobytes() == expected)

        signal.signal(signal.SIGINT, handler)
        threading.Timer(0.1, send).start()
        while not seen:
            assert ctx.matmul(x, x).tobytes() == expected
        assert seen == [True]
    """)


def test_operations_of_a_stream_on_the_processor_end():
    """Its handler is refused what the call is in the middle of, and may use everything else."""
    run("""
        a, b = ctx.buffer(x.numpy()), ctx.buffer(size=1024 * 1024)
        stream, other = ctx.stream(), ctx.stream()
        out = b.view(shape=(1024, 1024))
        # A second of work, so that the signal comes in the middle of it. The loop is for one that comes before.
        parts, result = [a.view(shape=(1, 1, 16384, 64))] * 3, b.view(shape=(1, 1, 16384, 64))
        seen = []

        def handler(*_):
            seen.clear()
            for use in (lambda: stream.clear(b), lambda: other.clear(b), lambda: other.download(a, 0, 4).read()):
                try:
                    use()
                    seen.append("done")
                except adead.NotReadyError:
                    seen.append("refused")
            raise KeyboardInterrupt

        signal.signal(signal.SIGINT, handler)
        while seen != ["refused", "refused", "done"]:
            timer = threading.Timer(0.1, send)
            timer.start()
            try:
                while True:
                    stream.run("attention", parts, result)
            except KeyboardInterrupt:
                pass
            timer.join()
        stream.run("matmul", [a.view(shape=(1024, 1024))] * 2, out)
        assert b.read().tobytes() == expected
    """)


def test_programs_pipelines_and_other_threads():
    run("""
        pipeline = ctx.pipeline().input((1024, 1024)).matmul(x).relu().matmul(x).compile()
        program = adead.Program.assemble(".adead 1\\ninput x f32[1024,1024]\\noutput y f32[1024,1024]\\ny = matmul x x\\nhalt\\n")
        for work in (lambda: pipeline(x), lambda: program.run({"x": x}, context=ctx)):
            threading.Timer(0.1, send).start()
            try:
                while True:
                    work()
            except KeyboardInterrupt:
                pass
        # A signal is the main thread's, whatever another one computes.
        results = []

        def other():
            for _ in range(20):
                results.append(ctx.matmul(x, x).tobytes() == expected)

        thread = threading.Thread(target=other)
        thread.start()
        threading.Timer(0.05, send).start()
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass
        while len(results) < 20:
            assert thread.is_alive() or len(results) == 20
            time.sleep(0.01)
        assert results == [True] * 20
    """)


def test_waiting_for_a_gpu_ends(gpu):
    """The GPU's work goes on, and is waited for afterwards."""
    n = 256
    x, y = gpu.buffer([[1.0] * n] * n), gpu.buffer(size=n * n)
    stream = gpu.stream()

    def enqueue():
        for _ in range(12):
            stream.run("matmul", [x, x], y.view(shape=(n, n)))

    class Ended(Exception):
        pass

    def handler(*_):
        raise Ended

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for wait in (stream.synchronize, lambda: stream.event().wait(), lambda: stream.event().wait(60.0)):
            enqueue()
            stream.flush()
            # If the work ends first, the signal arrives later; both are valid.
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            try:
                wait()
                signal.pause()
            except Ended:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    stream.synchronize()
    assert y.read().tolist()[:3] == [float(n)] * 3
