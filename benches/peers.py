"""The compared libraries. Run as a program, this is the process of one library: it reads commands, one JSON text per line, and
answers each with a line. Each library has a process of its own, so that their thread pools and symbols don't meet."""

import ctypes
import glob
import importlib.metadata
import itertools
import json
import math
import os
import signal
import sys
import time

NAMES = ["adead", "openblas", "mkl", "blis", "numpy", "torch", "onnxruntime", "memcpy"]
PIP = {
    "openblas": ["scipy-openblas32"],
    "mkl": ["mkl"],
    "torch": ["torch"],
    "onnxruntime": ["onnxruntime", "onnx"],
}
# These are called from Python, so a call costs about a microsecond more than from C.
THROUGH_PYTHON = {"numpy", "torch", "onnxruntime"}


def environment(threads):
    """Returns the environment of a process with that many threads. Everything else of the libraries' defaults is unchanged."""
    names = "OPENBLAS MKL OMP BLIS NUMEXPR ADEAD".split()
    env = dict(os.environ, **{f"{name}_NUM_THREADS": str(threads) for name in names})
    # The default layers of libmkl_rt, stated explicitly: 32-bit sizes and Intel's threads.
    return dict(env, MKL_INTERFACE_LAYER="LP64", MKL_THREADING_LAYER="INTEL")


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def in_python(call):
    """Returns a timed loop around a Python callable."""

    def timer(reps):
        many = itertools.repeat(None, reps)
        begin = time.perf_counter()
        for _ in many:
            call()
        return time.perf_counter() - begin

    return timer


class Peer:
    """A library. `prepare` returns a function that runs an item a number of times and returns the seconds, or None. After that,
    `fetch` returns the result."""

    def __init__(self, harness, threads, library):
        self.harness = harness
        self.threads = threads

    def call(self, name, result, *args):
        """Calls a function of harness.c."""
        function = getattr(self.harness, name)
        function.restype = result
        return function(*args)

    def fetch(self):
        return self.out


class Blas(Peer):
    prefix = ""

    def functions(self, library):
        found = [getattr(library, f"{self.prefix}cblas_{name}") for name in ("sgemm", "sgemv")]
        self.sgemm, self.sgemv = (ctypes.cast(function, ctypes.c_void_p) for function in found)

    def prepare(self, item, inputs, out):
        if item.op != "matmul":
            return None
        (m, k), (_, n) = item.shapes
        self.keep, self.out = inputs, out
        args = [self.sgemm, self.sgemv, *map(pointer, (*inputs, out)), m, n, k]
        return lambda reps: self.call("time_blas", ctypes.c_double, *args, ctypes.c_long(reps))


class OpenBlas(Blas):
    prefix = "scipy_"

    def __init__(self, *args):
        super().__init__(*args)
        import scipy_openblas32 as package

        library = ctypes.CDLL(glob.glob(os.path.join(package.get_lib_dir(), "libscipy_openblas*.so"))[0])
        self.functions(library)
        library.scipy_openblas_get_config.restype = ctypes.c_char_p
        self.version = library.scipy_openblas_get_config().decode().removeprefix("OpenBLAS").strip()


class Mkl(Blas):
    def __init__(self, *args):
        super().__init__(*args)
        ctypes.CDLL(os.path.join(sys.prefix, "lib", "libiomp5.so"), mode=ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))[0], mode=ctypes.RTLD_GLOBAL)
        self.functions(library)
        self.version = importlib.metadata.version("mkl")


class Blis(Blas):
    def __init__(self, harness, threads, library):
        super().__init__(harness, threads, library)
        blis = ctypes.CDLL(library)
        self.functions(blis)
        blis.bli_info_get_version_str.restype = blis.bli_arch_string.restype = ctypes.c_char_p
        kernels = blis.bli_arch_string(blis.bli_arch_query_id()).decode()
        self.version = f"{blis.bli_info_get_version_str().decode()} {kernels}"


class Memcpy(Peer):
    version = "libc, one thread"

    def prepare(self, item, inputs, out):
        if item.group != "memory" or item.work != 8 * inputs[0].size:
            return None
        self.keep, self.out = inputs, None
        args = [pointer(out), pointer(inputs[0]), ctypes.c_size_t(out.nbytes)]
        return lambda reps: self.call("time_memcpy", ctypes.c_double, *args, ctypes.c_long(reps))


class Adead(Peer):
    def __init__(self, harness, threads, library):
        super().__init__(harness, threads, library)
        self.check(self.call("adead_load", ctypes.c_char_p, library.encode()))
        texts = [self.call(name, ctypes.c_char_p).decode() for name in ("adead_version_text", "adead_arch")]
        self.version = " ".join(texts)

    def check(self, error):
        if error is not None:
            raise RuntimeError(f"adead: {error.decode()}")

    def prepare(self, item, inputs, out):
        self.keep, self.out, self.object = inputs, out, False
        if item.packed and not self.call("adead_packs", ctypes.c_int):
            return None
        exact = item.precision != "f32"
        if exact and not self.call("adead_has_attributes", ctypes.c_int):
            return None
        arrays = [*map(pointer, (*inputs, out))]
        if item.op == "matmul" and not item.packed and not exact:
            (m, k), (_, n) = item.shapes
            name, args = "time_adead_matmul", [*arrays, m, n, k]
        elif item.op == "softmax":
            name, args = "time_adead_softmax", [*arrays, *item.shapes[0]]
        elif item.op == "relu":
            name, args = "time_adead_relu", [*arrays, inputs[0].size]
        else:
            self.object = True
            count = len(inputs)
            data = (ctypes.c_void_p * count)(*(array.ctypes.data for array in inputs))
            ranks = (ctypes.c_size_t * count)(*map(len, item.shapes))
            flat = [dim for shape in item.shapes for dim in shape]
            dims = (ctypes.c_size_t * len(flat))(*flat)
            op = item.op.encode()
            how = item.precision.encode() if exact else None
            self.check(self.call("adead_prepare", ctypes.c_char_p, op, ctypes.c_size_t(count), data, ranks, dims, how))
            name, args = "time_adead_op", []
            if item.packed:
                self.check(self.call("adead_pack", ctypes.c_char_p))
                name = "time_adead_packed"

        def timer(reps):
            seconds = self.call(name, ctypes.c_double, *args, ctypes.c_long(reps))
            if seconds < 0:
                self.check(self.call("adead_error", ctypes.c_char_p))
            return seconds

        return timer

    def fetch(self):
        if self.object:
            size = ctypes.c_size_t(self.out.nbytes)
            self.check(self.call("adead_fetch", ctypes.c_char_p, pointer(self.out), size))
        return self.out


class Numpy(Peer):
    """NumPy writing into an existing output, as its users do in loops."""

    def __init__(self, *args):
        super().__init__(*args)
        import numpy

        self.np, self.version = numpy, numpy.__version__

    def prepare(self, item, inputs, out):
        np, self.out, x = self.np, out, inputs[0]
        calls = {
            "matmul": lambda: np.matmul(*inputs, out=out),
            "tanh": lambda: np.tanh(x, out=out),
            "relu": lambda: np.maximum(x, 0, out=out),
            "add": lambda: np.add(*inputs, out=out),
            "sum": lambda: np.sum(x, out=out),
            "transpose": lambda: np.copyto(out, x.T),
        }
        return in_python(calls[item.op]) if item.op in calls else None


class Torch(Peer):
    def __init__(self, harness, threads, library):
        super().__init__(harness, threads, library)
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch, self.version = torch, torch.__version__

    def prepare(self, item, inputs, out):
        torch, functional = self.torch, self.torch.nn.functional
        tensors = [torch.from_numpy(array) for array in inputs]
        x = tensors[0]
        result = torch.from_numpy(out)
        batch = [tensor[None] for tensor in tensors]
        calls = {
            "matmul": lambda: torch.mm(*tensors, out=result),
            "attention": lambda: functional.scaled_dot_product_attention(*batch),
            "softmax": lambda: torch.softmax(x, -1),
            "sigmoid": lambda: torch.sigmoid(x),
            "tanh": lambda: torch.tanh(x),
            "gelu": lambda: functional.gelu(x),
            "layernorm": lambda: functional.layer_norm(x, x.shape[-1:], tensors[1], tensors[2]),
            "relu": lambda: torch.relu(x),
            "add": lambda: torch.add(*tensors),
            "sum": lambda: torch.sum(x),
            "transpose": lambda: x.T.contiguous(),
        }
        self.again = calls[item.op]
        return in_python(self.again)

    def fetch(self):
        return self.again().numpy()


class OnnxRuntime(Peer):
    """A model of one node, with inputs and output bound in advance. The right operand of a matrix product is a constant of the
    model, like weights, so it is packed once, outside of the timed loop."""

    OPS = {"matmul": "MatMul", "attention": "Attention", "softmax": "Softmax", "sigmoid": "Sigmoid", "tanh": "Tanh",
           "gelu": "Gelu", "layernorm": "LayerNormalization", "relu": "Relu", "add": "Add", "sum": "ReduceSum",
           "transpose": "Transpose"}  # fmt: skip

    def __init__(self, *args):
        super().__init__(*args)
        import onnxruntime

        self.ort, self.version = onnxruntime, onnxruntime.__version__

    def prepare(self, item, inputs, out):
        import numpy as np
        from onnx import TensorProto, helper, numpy_helper

        self.out = out
        names = ["a", "b", "c"][: len(inputs)]
        constant = {"matmul": ["b"], "layernorm": ["b", "c"]}.get(item.op, [])
        attributes = {"sum": {"keepdims": 0}}.get(item.op, {})
        given = dict(zip(names, inputs))
        if item.op == "attention":
            given = {name: array[None] for name, array in given.items()}
            out = out[None]
        described = [*((name, given[name]) for name in names if name not in constant), ("y", out)]
        *values, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, it.shape) for name, it in described)
        node = helper.make_node(self.OPS[item.op], names, ["y"], **attributes)
        weights = [numpy_helper.from_array(np.ascontiguousarray(given[name]), name) for name in constant]
        graph = helper.make_graph([node], "one", values, [result], initializer=weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
        options = self.ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3
        session = self.ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        for name in names:
            if name not in constant:
                binding.bind_cpu_input(name, given[name])
        binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
        return in_python(lambda: session.run_with_iobinding(binding))


CLASSES = {"adead": Adead, "baseline": Adead, "openblas": OpenBlas, "mkl": Mkl, "blis": Blis, "numpy": Numpy,
           "torch": Torch, "onnxruntime": OnnxRuntime, "memcpy": Memcpy}  # fmt: skip


def calibrate(timer, seconds):
    """Returns how many calls take about that long."""
    timer(1)
    reps = 1
    while (took := timer(reps)) < seconds / 4 and reps < 1 << 28:
        reps = min(reps * 10, math.ceil(reps * seconds / max(took, 1e-9) / 2) + 1)
    return max(1, round(reps * seconds / max(took, 1e-9)))


def serve(name, harness, threads, library):
    """Answers commands until the input ends."""
    import numpy as np

    import work

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a library's output must not mix with the answers
    peer = CLASSES[name](ctypes.CDLL(harness), threads, library)
    answers.write(json.dumps({"version": peer.version}) + "\n")
    timer = None
    for line in sys.stdin:
        command = json.loads(line)
        answer = {}
        if "prepare" in command:
            fields = command["prepare"]
            fields["shapes"] = tuple(map(tuple, fields["shapes"]))
            item = work.Item(**dict(fields, output=tuple(fields["output"])))
            out = work.aligned(item.output)
            out.fill(np.nan)
            try:
                timer = peer.prepare(item, item.inputs(), out)
                answer["reps"] = calibrate(timer, command["seconds"]) if timer else 0
            except Exception as error:  # a peer that can't do an item is left out of it, with the reason
                timer, answer = None, {"reps": 0, "error": f"{type(error).__name__}: {error}"}
        elif "time" in command:
            reps = command["time"]
            if reps > 1:
                timer(max(1, reps // 8))  # brings caches and threads into the state of a series of calls
            answer["seconds"] = timer(reps) / reps
        elif "save" in command:
            out = peer.fetch()
            if out is not None:
                np.ascontiguousarray(out, dtype=np.float32).tofile(command["save"])
            answer["saved"] = out is not None
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    # If the driver dies while this process is stopped, the kernel must end it.
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
