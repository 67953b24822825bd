"""The functions for training of the C library, include/adead/models.h."""

import ctypes
from collections.abc import Callable
from ctypes import POINTER, c_char, c_char_p, c_double, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

from ._library import ContextOptions, check, destroys, function

# ADEAD_DTYPE_I64.
DTYPE_I64 = 4

FitProgress = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint32, c_uint64, c_float)


class TrainerInfo(ctypes.Structure):
    """adead_trainer_info."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("sample_type", c_int32),
        ("target_type", c_int32),
        ("sample_size", c_size_t),
        ("target_size", c_size_t),
        ("output_size", c_size_t),
        ("batch", c_size_t),
        ("steps", c_uint64),
        ("device", c_char * 64),
    ]


class Parameter(ctypes.Structure):
    """adead_trained_parameter."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("rank", c_size_t),
        ("dims", c_size_t * 8),
        ("size", c_size_t),
    ]


class TrainEvent(ctypes.Structure):
    """adead_train_event."""

    _fields_ = [
        ("epoch_is_over", c_int32),
        ("epoch", c_uint32),
        ("step", c_uint64),
        ("steps", c_uint64),
        ("loss", c_double),
        ("held_out_loss", c_double),
        ("accuracy", c_double),
        ("seconds", c_double),
    ]


JobProgress = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(TrainEvent))


class JobOptions(ctypes.Structure):
    """adead_train_options."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("resume", c_int32),
        ("epochs", c_uint32),
        ("ranks", c_char_p),
        ("patience", c_double),
        ("progress", JobProgress),
        ("user", c_void_p),
    ]


class RawOutcome(ctypes.Structure):
    """adead_train_outcome."""

    _fields_ = [
        ("struct_size", c_size_t),
        ("steps", c_uint64),
        ("held_out_loss", c_double),
        ("accuracy", c_double),
        ("sha256", c_char * 72),
        ("device", c_char * 64),
    ]


trainer_create = function("adead_trainer_create", c_char_p, c_char_p, POINTER(ContextOptions), POINTER(c_void_p))
trainer_destroy = destroys("adead_trainer_destroy")
trainer_inspect = function("adead_trainer_inspect", c_void_p, POINTER(TrainerInfo))
trainer_join = function("adead_trainer_join", c_void_p, c_char_p, c_double)
trainer_step = function("adead_trainer_step", c_void_p, c_void_p, c_void_p, c_size_t, POINTER(c_float))
trainer_fit = function(
    "adead_trainer_fit", c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, FitProgress, c_void_p, POINTER(c_double)
)
trainer_predict = function("adead_trainer_predict", c_void_p, c_void_p, c_size_t, c_void_p, c_size_t)
trainer_evaluate = function(
    "adead_trainer_evaluate", c_void_p, c_void_p, c_void_p, c_size_t, POINTER(c_double), POINTER(c_double)
)
trainer_save = function("adead_trainer_save", c_void_p, c_char_p)
trainer_load = function("adead_trainer_load", c_void_p, c_char_p)
trainer_sha256 = function("adead_trainer_sha256", c_void_p, c_char_p, c_size_t)
trainer_count = function("adead_trainer_parameter_count", c_void_p, POINTER(c_size_t))
trainer_parameter = function("adead_trainer_parameter", c_void_p, c_size_t, POINTER(Parameter), c_void_p, c_size_t)
train_job = function(
    "adead_train_job", c_char_p, c_char_p, POINTER(ContextOptions), POINTER(JobOptions), POINTER(RawOutcome)
)


class Raised:
    """An exception of a function that the library calls: it ends the work, and is raised when the call returns."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def call(self, told: Callable[[], object]) -> int:
        # ctypes would print the exception and forget it.
        try:
            told()
        except BaseException as error:
            self.error = error
            return 1
        return 0

    def check(self, status: int) -> None:
        if self.error is not None:
            raise self.error
        check(status)
