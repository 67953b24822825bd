"""DLPack. `python test_dlpack.py` runs it without pytest. Tests that need a GPU or PyTorch are skipped
with the reason.

On a GPU machine, with a wheel unpacked to FOLDER: PYTHONPATH=FOLDER python3 bindings/python/tests/test_dlpack.py -v
"""

import ctypes
import gc
import os
import sys
import threading
import unittest
import weakref

import adead

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


def cuda():
    """Opens a context on CUDA. Returns it, or else the reason why there is none."""
    try:
        return adead.Context("cuda"), None
    except adead.Error as error:
        return None, str(error)


class Producer:
    """Another library's tensor: DLPack's structs made by hand, so that it can be any valid or invalid
    producer."""

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("kind", ctypes.c_int32),
            ("number", ctypes.c_int32),
            ("ndim", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("byte_offset", ctypes.c_uint64),
        ]

    DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    def __init__(self, memory, shape, strides=None, code=2, bits=32, lanes=1, offset=0, kind=1, major=None, flags=0):
        self.memory, self.device, self.deleted, self.asked = memory, (kind, 0), 0, None
        rank = len(shape)
        self.shape = (ctypes.c_int64 * max(rank, 1))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(rank, 1))(*strides)
        tensor = self.Tensor(
            ctypes.addressof(memory),
            kind,
            0,
            rank,
            code,
            bits,
            lanes,
            ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)) if self.strides else None,
            offset,
        )
        self.deleter = self.DELETER(self.delete)
        deleter = ctypes.cast(self.deleter, ctypes.c_void_p)

        class Plain(ctypes.Structure):
            _fields_ = [("tensor", self.Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

        class Versioned(ctypes.Structure):
            _fields_ = [
                ("major", ctypes.c_uint32),
                ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64),
                ("tensor", self.Tensor),
            ]

        self.name = b"dltensor" if major is None else b"dltensor_versioned"
        self.managed = Plain(tensor, None, deleter) if major is None else Versioned(major, 0, None, deleter, flags, tensor)

    def delete(self, _):
        self.deleted += 1

    def __dlpack__(self, **asked):
        self.asked = asked
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), self.name, None)

    def __dlpack_device__(self):
        return self.device


class Old:
    """A producer from before versions."""

    def __init__(self, producer):
        self.producer = producer

    def __dlpack__(self, stream=None):
        return self.producer.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.producer.__dlpack_device__()


def floats(*values):
    return (ctypes.c_float * len(values))(*values)


class FromDlpack(unittest.TestCase):
    def test_shares_until_the_tensor_is_gone(self):
        for major in (None, 1):
            memory = floats(1, 2, 3, 4, 5, 6)
            producer = Producer(memory, [2, 3], major=major)
            tensor = adead.from_dlpack(producer)
            self.assertEqual((tensor.dtype, tensor.shape), ("f32", (2, 3)))
            self.assertEqual(tensor.tolist(), [[1, 2, 3], [4, 5, 6]])
            self.assertEqual(producer.asked["max_version"], (1, 1))
            rows = tensor[1].reshape(3, 1)
            del tensor
            gc.collect()
            self.assertEqual(producer.deleted, 0)
            self.assertEqual(rows.tolist(), [[4], [5], [6]])
            del rows
            gc.collect()
            self.assertEqual(producer.deleted, 1)

    def test_old_producers(self):
        producer = Producer(floats(1, 2), [2])
        self.assertEqual(adead.from_dlpack(Old(producer)).tolist(), [1, 2])
        self.assertEqual(producer.deleted, 1)

    def test_strides_offsets_and_scalars(self):
        memory = floats(*range(12))

        def take(*given, **named):
            # The producer must live until its deleter was called.
            producer = Producer(memory, *given, **named)
            values = adead.from_dlpack(producer).tolist()
            self.assertEqual(producer.deleted, 1)
            return values

        self.assertEqual(take([2, 3], [1, 2]), [[0, 2, 4], [1, 3, 5]])
        self.assertEqual(take([2, 2], [6, 1], offset=8), [[2, 3], [8, 9]])
        self.assertEqual(take([3], [0]), [0, 0, 0])
        self.assertEqual(take([2], [-1], offset=4), [1, 0])
        self.assertEqual(take([], None, offset=44), 11)
        self.assertEqual(take([2, 0], [1, 1]), [[], []])
        self.assertEqual(take([1, 2], [999, 1]), [[0, 1]])
        askew = (ctypes.c_uint8 * 9)(*(bytes(1) + bytes(floats(1.5, 2.5))))
        producer = Producer(askew, [2], offset=1)
        self.assertEqual(adead.from_dlpack(producer).tolist(), [1.5, 2.5])
        self.assertEqual(producer.deleted, 1)

    def test_copy(self):
        memory = floats(1, 2)
        producer = Producer(memory, [2])
        copied = adead.from_dlpack(producer, copy=True)
        memory[0] = 9
        self.assertEqual((copied.tolist(), producer.deleted), ([1, 2], 1))
        producer = Producer(memory, [2], [-1], offset=4)
        with self.assertRaises(BufferError):
            adead.from_dlpack(producer, copy=False)
        producer = Producer(memory, [2])
        self.assertEqual(adead.from_dlpack(producer, copy=False).tolist(), [9, 2])
        self.assertEqual(producer.deleted, 1)

    def test_dtypes(self):
        memory = (ctypes.c_uint64 * 2)(1, 2)
        for code, bits, dtype in [(0, 64, "i64"), (0, 32, "i32"), (1, 32, "u32"), (2, 16, "f16"), (4, 16, "bf16"), (2, 64, "f64")]:
            producer = Producer(memory, [2], code=code, bits=bits)
            self.assertEqual(adead.from_dlpack(producer).dtype, dtype)
            self.assertEqual(producer.deleted, 1)
        for code, bits, lanes in [(2, 128, 1), (0, 8, 1), (2, 32, 4), (5, 64, 1)]:
            producer = Producer(memory, [1], code=code, bits=bits, lanes=lanes)
            with self.assertRaises(adead.DtypeMismatchError):
                adead.from_dlpack(producer)
            self.assertEqual(producer.deleted, 1)

    def test_f64_is_kept_and_narrows_as_an_array_does(self):
        memory = (ctypes.c_double * 3)(0.1, 5e-324, 2.0**53 + 2)

        def take(read):
            # The producer must live until its deleter was called.
            producer = Producer(memory, [3], code=2, bits=64)
            tensor = read(producer)
            found = tensor.dtype, tensor.tolist()
            del tensor
            gc.collect()
            self.assertEqual(producer.deleted, 1)
            return found

        exact = ("f64", list(memory))
        self.assertEqual(take(adead.from_dlpack), exact)
        self.assertEqual(take(lambda x: adead.from_dlpack(x, copy=True)), exact)
        self.assertEqual(take(lambda x: adead.Tensor(x, "f64")), exact)
        self.assertEqual(take(lambda x: adead.asarray(x, "f64", copy=False)), exact)
        self.assertEqual(take(lambda x: adead.cast(x, "i64")), ("i64", [0, 0, 2**53 + 2]))
        self.assertEqual(take(lambda x: adead.concat([x, adead.Tensor([0.5], "f64")])), ("f64", [*memory, 0.5]))
        narrow = ("f32", [ctypes.c_float(value).value for value in memory])
        self.assertEqual(take(adead.Tensor), narrow)
        # Once for its dtype, and once for a copy.
        producer = Producer(memory, [3], code=2, bits=64)
        self.assertEqual(adead.asarray(producer).tolist(), narrow[1])
        self.assertEqual(producer.deleted, 2)

    def test_what_is_refused_is_given_back(self):
        memory = floats(1, 2)
        for producer, error in [
            (Producer(memory, [-1]), adead.InvalidArgumentError),
            (Producer(memory, [1] * 9), adead.InvalidArgumentError),
            (Producer(memory, [2], major=2), BufferError),
        ]:
            with self.assertRaises(error):
                adead.from_dlpack(producer)
            self.assertEqual(producer.deleted, 1)
        with self.assertRaises(TypeError):
            adead.from_dlpack(object())
        with self.assertRaises(adead.InvalidArgumentError):
            adead.from_dlpack(Producer(memory, [2], kind=10))

    def test_a_producer_that_raises(self):
        class Broken(Old):
            def __dlpack__(self, **_):
                raise RuntimeError("not today")

        with self.assertRaisesRegex(RuntimeError, "not today"):
            adead.from_dlpack(Broken(Producer(floats(1), [1])))

    def test_as_operands(self):
        producer = Producer(floats(-1, 2), [2])
        self.assertEqual(adead.relu(producer).tolist(), [0, 2])
        self.assertEqual(producer.deleted, 1)


class ToDlpack(unittest.TestCase):
    def test_capsules(self):
        tensor = adead.Tensor([[1.0, 2.0]])
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))
        self.assertIn("dltensor_versioned", repr(tensor.__dlpack__(max_version=(1, 0))))
        self.assertIn('"dltensor"', repr(tensor.__dlpack__()))
        for wrong in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": False}):
            with self.assertRaises(BufferError):
                tensor.__dlpack__(**wrong)

    def test_there_and_back(self):
        for dtype in adead.DTYPES:
            for shape in ((), (3,), (0, 2), (2, 3, 4)):
                tensor = adead.Tensor.zeros(shape, dtype)
                same = adead.from_dlpack(tensor)
                self.assertEqual((same.dtype, same.shape, same.tobytes()), (dtype, shape, tensor.tobytes()))

    def test_f64_keeps_its_bits(self):
        tensor = adead.Tensor([0.1, -0.0, 5e-324, float("inf")], "f64")
        for options in ({}, {"copy": True}):
            same = adead.from_dlpack(tensor, **options)
            self.assertEqual((same.dtype, same.tobytes()), ("f64", tensor.tobytes()))

    def test_host_buffers(self):
        buffer = adead.Context("cpu").buffer([1.0, 2.0])
        self.assertEqual(buffer.__dlpack_device__(), (1, 0))
        self.assertEqual(adead.from_dlpack(buffer).tolist(), [1, 2])
        with self.assertRaises(BufferError):
            buffer.__dlpack__(copy=False)

    def test_a_consumer_that_deletes_on_another_thread_without_the_gil(self):
        api = ctypes.pythonapi
        api.PyCapsule_GetPointer.restype = ctypes.c_void_p
        api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
        for max_version, name, used, words in [
            ((1, 0), b"dltensor_versioned", b"used_dltensor_versioned", 2),
            (None, b"dltensor", b"used_dltensor", 7),
        ]:
            producer = Producer(floats(1, 2, 3), [3], major=1)
            tensor = adead.from_dlpack(producer)
            capsule = tensor.__dlpack__(max_version=max_version, copy=None)
            managed = api.PyCapsule_GetPointer(capsule, name)
            api.PyCapsule_SetName(capsule, used)
            # After the version and the context, or after the tensor and the context.
            deleter = ctypes.cast(managed, ctypes.POINTER(ctypes.c_void_p))[words]
            del tensor, capsule
            gc.collect()
            self.assertEqual(producer.deleted, 0 if max_version else 1)
            call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)
            thread = threading.Thread(target=call, args=(managed,))
            thread.start()
            thread.join()
            self.assertEqual(producer.deleted, 1)

    def test_nobody_takes_it(self):
        for _ in range(1000):
            adead.Tensor([1.0]).__dlpack__(max_version=(1, 0))
            adead.Tensor([1.0]).__dlpack__()


@unittest.skipUnless(numpy, "NumPy is not installed")
class WithNumpy(unittest.TestCase):
    def test_shares_both_ways(self):
        tensor = adead.Tensor([[1.0, 2.0], [3.0, 4.0]])
        array = numpy.from_dlpack(tensor)
        self.assertEqual(array.tolist(), tensor.tolist())
        if not array.flags.writeable:
            self.assertEqual(array.ctypes.data, numpy.asarray(tensor).ctypes.data)
        source = numpy.arange(6, dtype=numpy.int32).reshape(2, 3)
        watched = weakref.ref(source)
        back = adead.from_dlpack(source)
        self.assertEqual(numpy.asarray(back).ctypes.data, source.ctypes.data)
        del source
        gc.collect()
        self.assertIsNotNone(watched())
        self.assertEqual(back.tolist(), [[0, 1, 2], [3, 4, 5]])
        del back
        gc.collect()
        self.assertIsNone(watched())

    def test_f64(self):
        tensor = adead.Tensor([0.1, 1 / 3], "f64")
        array = numpy.from_dlpack(tensor)
        self.assertEqual((array.dtype, array.tolist()), (numpy.float64, [0.1, 1 / 3]))
        source = numpy.array([[0.1, 5e-324], [1e300, -0.0]])
        back = adead.from_dlpack(source)
        self.assertEqual((back.dtype, back.tobytes()), ("f64", source.tobytes()))
        self.assertEqual(numpy.asarray(back).ctypes.data, source.ctypes.data)
        self.assertEqual(adead.from_dlpack(source.T).tolist(), source.T.tolist())

    def test_transposed(self):
        source = numpy.arange(6, dtype=numpy.float32).reshape(2, 3).T
        self.assertEqual(adead.from_dlpack(source).tolist(), source.tolist())


@unittest.skipUnless(torch, "PyTorch is not installed")
class WithTorch(unittest.TestCase):
    def test_there_and_back(self):
        for dtype, name in [("f32", "float32"), ("f16", "float16"), ("bf16", "bfloat16"), ("f64", "float64"), ("i64", "int64"), ("i32", "int32")]:
            tensor = adead.Tensor([[1, 2, 3], [4, 5, 6]], dtype)
            there = torch.from_dlpack(tensor)
            self.assertEqual((there.dtype, there.tolist()), (getattr(torch, name), tensor.tolist()))
            back = adead.from_dlpack(there)
            self.assertEqual((back.dtype, back.tobytes()), (dtype, tensor.tobytes()))

    def test_shares(self):
        source = torch.arange(6, dtype=torch.float32).reshape(2, 3)
        tensor = adead.from_dlpack(source)
        self.assertEqual(numpy.asarray(tensor).ctypes.data if numpy else source.data_ptr(), source.data_ptr())
        self.assertEqual(adead.from_dlpack(source.T).tolist(), source.T.tolist())


CONTEXT, WHY_NOT = cuda()


@unittest.skipUnless(CONTEXT, f"no CUDA device: {WHY_NOT}")
class OnCuda(unittest.TestCase):
    """Without PyTorch: adead exports and imports."""

    def test_a_buffer_over_a_buffer(self):
        buffer = CONTEXT.buffer([[1.0, 2.0], [3.0, 4.0]])
        self.assertEqual(buffer.__dlpack_device__()[0], 2)
        same = CONTEXT.from_dlpack(buffer)
        self.assertEqual((same.shape, same.dtype, same.device), ((2, 2), "f32", buffer.device))
        same.write([[5.0, 6.0], [7.0, 8.0]])
        self.assertEqual(buffer.read().tolist(), [[5, 6], [7, 8]])
        with CONTEXT.stream() as stream:
            stream.run("neg", [same], buffer)
        self.assertEqual(same.read().tolist(), [[-5, -6], [-7, -8]])
        buffer.free()
        del buffer
        gc.collect()
        self.assertEqual(same.read().tolist(), [[-5, -6], [-7, -8]])

    def test_copies_and_the_host(self):
        buffer = CONTEXT.buffer([1.0, 2.0])
        copied = CONTEXT.from_dlpack(buffer, copy=True)
        buffer.write([3.0, 4.0])
        self.assertEqual(copied.read().tolist(), [1, 2])

        class OnHost:
            def __dlpack__(self, **asked):
                return buffer.__dlpack__(dl_device=(1, 0), **asked)

            def __dlpack_device__(self):
                return (1, 0)

        self.assertEqual(adead.from_dlpack(OnHost()).tolist(), [3, 4])
        with self.assertRaises(BufferError):
            buffer.__dlpack__(dl_device=(1, 0), copy=False)
        with self.assertRaises(BufferError):
            buffer.__dlpack__(dl_device=(2, 77))

    def test_other_contexts_refuse(self):
        buffer = CONTEXT.buffer([1.0])
        with self.assertRaisesRegex(adead.InvalidArgumentError, "the memory is on cuda:0"):
            adead.Context("cpu").from_dlpack(buffer)

    def test_memory_goes_back(self):
        gc.collect()
        CONTEXT.wait()
        before = CONTEXT.memory()["allocations"]
        for _ in range(100):
            buffer = CONTEXT.buffer([1.0] * 64)
            CONTEXT.from_dlpack(CONTEXT.from_dlpack(buffer))
            CONTEXT.from_dlpack(buffer, copy=True)
        del buffer
        gc.collect()
        CONTEXT.wait()
        self.assertEqual(CONTEXT.memory()["allocations"], before)


@unittest.skipUnless(
    torch and CONTEXT and torch.cuda.is_available(),
    "PyTorch is not installed" if not torch else f"no CUDA device for both: {WHY_NOT or 'PyTorch sees none'}",
)
class OnCudaWithTorch(unittest.TestCase):
    def test_a_buffer_over_a_torch_tensor(self):
        source = torch.arange(12, dtype=torch.float32, device="cuda:0").reshape(3, 4)
        buffer = CONTEXT.from_dlpack(source)
        self.assertEqual((buffer.shape, buffer.dtype, buffer.device), ((3, 4), "f32", "cuda:0"))
        self.assertEqual(buffer.read().tolist(), source.tolist())
        buffer.write([[0.5] * 4] * 3)
        CONTEXT.wait()
        self.assertEqual(source.tolist(), [[0.5] * 4] * 3)

    def test_a_torch_tensor_over_a_buffer(self):
        buffer = CONTEXT.buffer([[1.0, -2.0], [-3.0, 4.0]])
        tensor = torch.from_dlpack(buffer)
        self.assertEqual((tensor.device.type, tensor.tolist()), ("cuda", [[1, -2], [-3, 4]]))
        tensor.mul_(2)
        torch.cuda.synchronize()
        self.assertEqual(buffer.read().tolist(), [[2, -4], [-6, 8]])
        buffer.free()
        del buffer
        gc.collect()
        self.assertEqual(tensor.tolist(), [[2, -4], [-6, 8]])

    def test_work_before_the_exchange_is_waited_for(self):
        # A second's work on PyTorch's own stream, and then the exchange: the buffer has the work's
        # result.
        size = 4096
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            a = torch.ones((size, size), device="cuda")
            for _ in range(40):
                a = (a @ torch.ones_like(a)) / size
            result = a.contiguous() + 1
            buffer = CONTEXT.from_dlpack(result)
        first = buffer.read()[size - 1].tolist()
        self.assertEqual(first, [2.0] * size)

    def test_operations_between_the_two(self):
        torch.manual_seed(1)
        a = torch.rand((256, 256), device="cuda")
        b = torch.rand((256, 256), device="cuda")
        out = CONTEXT.buffer(size=256 * 256)
        with CONTEXT.stream() as stream:
            stream.run("matmul", [CONTEXT.from_dlpack(a), CONTEXT.from_dlpack(b)], out.view(shape=(256, 256)))
        found = torch.from_dlpack(out).reshape(256, 256)
        torch.testing.assert_close(found, a @ b, rtol=1e-4, atol=1e-4)
        # The bits equal the CPU's.
        expected = adead.Context("cpu").matmul(adead.from_dlpack(a.cpu()), adead.from_dlpack(b.cpu()))
        self.assertEqual(out.read_bytes(), expected.tobytes())

    def test_the_tensor_lives_as_long_as_the_buffer(self):
        source = torch.zeros(1 << 20, device="cuda")
        used = torch.cuda.memory_allocated()
        buffer = CONTEXT.from_dlpack(source)
        del source
        gc.collect()
        self.assertEqual(torch.cuda.memory_allocated(), used)
        del buffer
        gc.collect()
        CONTEXT.wait()
        self.assertLess(torch.cuda.memory_allocated(), used)

    def test_what_has_gaps_or_begins_askew(self):
        source = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
        with self.assertRaises(BufferError):
            CONTEXT.from_dlpack(source.T)
        with self.assertRaisesRegex(adead.InvalidArgumentError, "multiples of 16"):
            CONTEXT.from_dlpack(source.reshape(12)[1:5])

    def test_bf16(self):
        source = torch.tensor([1.5, -2.0] * 8, dtype=torch.bfloat16, device="cuda")
        buffer = CONTEXT.from_dlpack(source)
        self.assertEqual((buffer.dtype, buffer.read().tolist()), ("bf16", source.tolist()))
        self.assertEqual(torch.from_dlpack(buffer).tolist(), source.tolist())

    def test_host_exports(self):
        buffer = CONTEXT.buffer([1.0, 2.0])
        self.assertEqual(torch.from_dlpack(buffer.read()).tolist(), [1, 2])


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, NumPy {numpy and numpy.__version__}, PyTorch {torch and torch.__version__}")
    print(f"CUDA: {CONTEXT or WHY_NOT}; ADEAD_DEVICE={os.environ.get('ADEAD_DEVICE')}", flush=True)
    unittest.main()
