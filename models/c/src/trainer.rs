//! Training on arrays.

use adead_c_support::context::{adead_context_options, open};
use adead_c_support::pointers::{Out, array, array_mut, fixed, growing, reference, report, text};
use adead_c_support::{c_text, fail, guard, guard_destroy};
use adead_core::{DType, Result, Tensor};
use adead_models::train::{Description, Trainer, connect, patience as allowed};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The result of a call; see adead.h.
type adead_status = i32;
/// The type of elements; see adead.h.
type adead_dtype = i32;

/// A network in training. Only one thread at a time may use it: a call while another one computes is `not_ready`.
pub struct adead_trainer {
    trainer: Mutex<Trainer>,
    /// The names of the parameters, which never change.
    names: Vec<CString>,
}

impl adead_trainer {
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, Trainer>> {
        match self.trainer.try_lock() {
            Ok(trainer) => Ok(trainer),
            Err(TryLockError::WouldBlock) => fail!(NotReady, "the trainer is computing in another thread"),
            Err(TryLockError::Poisoned(_)) => {
                fail!(Internal, "the trainer can't be used after a panic in an earlier call")
            }
        }
    }
}

/// A trainer's inputs, outputs and state. Set `struct_size` to `sizeof(adead_trainer_info)` before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_trainer_info {
    /// `sizeof(adead_trainer_info)`.
    pub struct_size: usize,
    /// The type of a sample's values: `ADEAD_DTYPE_F32`, or `ADEAD_DTYPE_I64` for ids.
    pub sample_type: adead_dtype,
    /// The type of a target's values: `ADEAD_DTYPE_I64` for classes, else `ADEAD_DTYPE_F32`.
    pub target_type: adead_dtype,
    /// The number of values of a sample.
    pub sample_size: usize,
    /// The number of values of a target.
    pub target_size: usize,
    /// The number of values that the network computes for a sample.
    pub output_size: usize,
    /// The number of samples in a step's batch.
    pub batch: usize,
    /// The number of steps so far.
    pub steps: u64,
    /// The device that trains, such as "cpu" or "cuda:0".
    pub device: [c_char; 64],
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_trainer_info, 120);

/// Receives the epoch, counted from 1, the number of steps so far and the step's loss, after each step. Returns 0 to continue; any other
/// number ends the training. It runs in the calling thread. It must return: no longjmp and no C++ exception may leave it.
pub type adead_fit_progress = Option<unsafe extern "C" fn(user: *mut c_void, epoch: u32, step: u64, loss: f32) -> i32>;

/// Compiles a training. `description` is JSON with the network, its loss and its optimiser; docs/training.md describes it. `device` and
/// `opts` are as for `adead_context_open`; either may be NULL.
///
/// `invalid_argument` or `shape_mismatch` if the description is malformed or does not describe a valid network.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_create(
    description: *const c_char,
    device: *const c_char,
    opts: *const adead_context_options,
    out: *mut *mut adead_trainer,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (description, out) = unsafe { (text(description, "description")?, Out::new(out, "out")?) };
        let description: Description = description.parse()?;
        // SAFETY: as above.
        let trainer = Trainer::new(&unsafe { open(device, opts) }?, &description)?;
        let names = trainer.trained()?.iter().map(|(name, _)| c_text(name)).collect();
        out.give(adead_trainer { trainer: Mutex::new(trainer), names });
        Ok(())
    })
}

/// Destroys a trainer; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_destroy(trainer: *mut adead_trainer) {
    // SAFETY: `create` made it, and the caller gives it up.
    unsafe { guard_destroy(trainer) }
}

/// Describes a trainer's inputs, outputs and state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_inspect(
    trainer: *const adead_trainer,
    out: *mut adead_trainer_info,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let trainer = unsafe { reference(trainer, "trainer") }?.lock()?;
        let (sample, size) = (trainer.sample(), |dims: &[usize]| dims.iter().product());
        // SAFETY: as above.
        unsafe {
            report(out, "out", |struct_size| {
                Ok(adead_trainer_info {
                    struct_size,
                    sample_type: sample.dtype as adead_dtype,
                    target_type: sample.target as adead_dtype,
                    sample_size: size(&sample.dims),
                    target_size: size(&sample.targets),
                    output_size: size(&sample.outputs),
                    batch: trainer.batch(),
                    steps: trainer.steps(),
                    device: fixed(trainer.device()),
                })
            })
        }
    })
}

/// Trains together with other processes from now on. `place` is this process's rank: "0/4@host:29500" is rank 0 of 4, with the address at
/// which rank 0 waits; "env" takes the rank that torchrun, Open MPI, MPICH or Slurm set in the environment. A rank may take at most
/// `patience` seconds to connect, and to compute its part of a step. All ranks take the parameters and the step of rank 0. Afterwards every
/// rank must make the same calls with the same samples, and computes its own part of each batch.
///
/// `invalid_argument` if there are more ranks than shards, or if the ranks' trainings differ. `io` if a rank does not connect or is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_join(
    trainer: *mut adead_trainer,
    place: *const c_char,
    patience: f64,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, place) = unsafe { (reference(trainer, "trainer")?, text(place, "place")?) };
        let patience = allowed(patience)?;
        let mut trainer = trainer.lock()?;
        trainer.join(connect(place, patience)?)
    })
}

/// Returns the caller's samples as a tensor `[count, …]`.
///
/// # Safety
/// `values` is NULL or points to `count` samples of this type and shape.
unsafe fn samples(values: *const c_void, count: usize, dtype: DType, dims: &[usize], name: &str) -> Result<Tensor> {
    let dims = [&[count][..], dims].concat();
    let Some(length) = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim)) else {
        fail!(InvalidArgument, "{name} has {count} samples, more than memory can hold");
    };
    // SAFETY: passed on.
    unsafe {
        match dtype {
            DType::I64 => Tensor::new(array(values.cast::<i64>(), length, name)?, &dims),
            _ => Tensor::new(array(values.cast::<f32>(), length, name)?, &dims),
        }
    }
}

/// # Safety
/// Both pointers are NULL or point to `count` samples or targets of the trainer.
unsafe fn pair(trainer: &Trainer, x: *const c_void, targets: *const c_void, count: usize) -> Result<[Tensor; 2]> {
    let sample = trainer.sample();
    // SAFETY: passed on.
    unsafe {
        Ok([
            samples(x, count, sample.dtype, &sample.dims, "x")?,
            samples(targets, count, sample.target, &sample.targets, "targets")?,
        ])
    }
}

/// Trains on one batch. `x` has `count` samples, one after the other, and `targets` as many targets; `adead_trainer_inspect` returns their
/// types and sizes. `count` must be the trainer's batch size. `*loss` receives the loss before the step.
///
/// `invalid_argument` for a class that does not exist. `invalid_argument` if the loss is not finite; the text then names the step and the
/// parameter. In both cases nothing changes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_step(
    trainer: *mut adead_trainer,
    x: *const c_void,
    targets: *const c_void,
    count: usize,
    loss: *mut f32,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, loss) = unsafe { (reference(trainer, "trainer")?, Out::new(loss, "loss")?) };
        let mut trainer = trainer.lock()?;
        // SAFETY: as above.
        let [x, targets] = unsafe { pair(&trainer, x, targets, count) }?;
        loss.write(trainer.step(&x, &targets)?);
        Ok(())
    })
}

/// Trains on `count` samples for `epochs` epochs, each in an order that the seed determines. Samples that don't fill a batch are
/// skipped in that epoch. `progress` may be NULL. `*loss` receives the mean loss of the last epoch.
///
/// The errors are those of `adead_trainer_step`, and `not_ready` if `progress` ended the training. Steps before the error remain in effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_fit(
    trainer: *mut adead_trainer,
    x: *const c_void,
    targets: *const c_void,
    count: usize,
    epochs: u32,
    progress: adead_fit_progress,
    user: *mut c_void,
    loss: *mut f64,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, loss) = unsafe { (reference(trainer, "trainer")?, Out::new(loss, "loss")?) };
        let mut trainer = trainer.lock()?;
        // SAFETY: as above.
        let [x, targets] = unsafe { pair(&trainer, x, targets, count) }?;
        let mean = trainer.fit(&x, &targets, epochs, &mut |epoch, step, loss| {
            // SAFETY: the caller's callback, called as documented.
            if progress.is_some_and(|told| unsafe { told(user, epoch, step, loss) } != 0) {
                fail!(NotReady, "progress ended the training at step {step}");
            }
            Ok(())
        })?;
        loss.write(mean);
        Ok(())
    })
}

/// Computes the network's outputs for `count` samples. Writes `output_size` values for each sample, in order, to `out`, which has room for
/// `capacity` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_predict(
    trainer: *const adead_trainer,
    x: *const c_void,
    count: usize,
    out: *mut f32,
    capacity: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let trainer = unsafe { reference(trainer, "trainer") }?.lock()?;
        let sample = trainer.sample();
        let width: usize = sample.outputs.iter().product();
        if count.checked_mul(width).is_none_or(|values| values > capacity) {
            fail!(InvalidArgument, "out has room for {capacity} values; {count} samples have {width} each");
        }
        // SAFETY: as above.
        let x = unsafe { samples(x, count, sample.dtype, &sample.dims, "x") }?;
        // SAFETY: as above; the product did not overflow.
        let out = unsafe { array_mut(out.cast(), 4 * count * width, "out") }?;
        write(out, &trainer.predict(&x)?)
    })
}

/// Measures `count` samples: `*loss` receives their mean loss, and `*accuracy` the fraction whose most likely class is correct.
///
/// `unsupported` for a loss without classes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_evaluate(
    trainer: *const adead_trainer,
    x: *const c_void,
    targets: *const c_void,
    count: usize,
    loss: *mut f64,
    accuracy: *mut f64,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, loss, accuracy) =
            unsafe { (reference(trainer, "trainer")?, Out::new(loss, "loss")?, Out::new(accuracy, "accuracy")?) };
        let trainer = trainer.lock()?;
        // SAFETY: as above.
        let [x, targets] = unsafe { pair(&trainer, x, targets, count) }?;
        let measured = trainer.evaluate(&x, &targets)?;
        loss.write(measured.loss);
        accuracy.write(measured.accuracy);
        Ok(())
    })
}

/// Writes the parameters, the optimiser's tensors and the step to a safetensors file. An existing file is replaced atomically.
///
/// `io` if it can't be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_save(trainer: *const adead_trainer, path: *const c_char) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, path) = unsafe { (reference(trainer, "trainer")?, text(path, "path")?) };
        trainer.lock()?.save(path)
    })
}

/// Continues from a file of `adead_trainer_save`: the next steps have the bits that they would have had there.
///
/// `io`, `invalid_argument` or `shape_mismatch` for a file that can't be read or belongs to another training.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_load(trainer: *mut adead_trainer, path: *const c_char) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, path) = unsafe { (reference(trainer, "trainer")?, text(path, "path")?) };
        trainer.lock()?.load(path)
    })
}

/// Writes the SHA-256 of the parameters, 64 hexadecimal digits and a NUL, to `text`, which has room for `capacity` bytes, at least 65. The
/// hash covers the parameters in the order of their names, as little-endian f32.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_sha256(
    trainer: *const adead_trainer,
    text: *mut c_char,
    capacity: usize,
) -> adead_status {
    guard(|| {
        if capacity < 65 {
            fail!(InvalidArgument, "text has room for {capacity} bytes; a hash takes 65");
        }
        // SAFETY: the caller vouches for the pointers.
        let (trainer, to) = unsafe { (reference(trainer, "trainer")?, array_mut(text.cast(), 65, "text")?) };
        let hash = trainer.lock()?.sha256()?;
        to[..64].copy_from_slice(hash.as_bytes());
        to[64] = 0;
        Ok(())
    })
}

/// Returns the number of parameters, which are named tensors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_parameter_count(trainer: *const adead_trainer, out: *mut usize) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, out) = unsafe { (reference(trainer, "trainer")?, Out::new(out, "out")?) };
        out.write(trainer.names.len());
        Ok(())
    })
}

/// A parameter. Set `struct_size` to `sizeof(adead_trained_parameter)` before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_trained_parameter {
    /// `sizeof(adead_trained_parameter)`.
    pub struct_size: usize,
    /// Its name, which lives as long as the trainer.
    pub name: *const c_char,
    /// The number of dimensions.
    pub rank: usize,
    /// The dimensions.
    pub dims: [usize; 8],
    /// The number of values.
    pub size: usize,
}

// SAFETY: as `Growing` requires; a pointer may have any bits.
growing!(unsafe adead_trained_parameter, 96);

/// Describes parameter `index`, and writes its values to `values`, which has room for `capacity` values. If `values` is NULL, no values are
/// written.
///
/// `invalid_argument` if the trainer has no parameter `index`, and if the capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_parameter(
    trainer: *const adead_trainer,
    index: usize,
    out: *mut adead_trained_parameter,
    values: *mut f32,
    capacity: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let own = unsafe { reference(trainer, "trainer") }?;
        let all = own.lock()?.trained()?;
        let Some((name, (_, tensor))) = own.names.get(index).zip(all.get(index)) else {
            fail!(InvalidArgument, "there is no parameter {index}; there are {}", own.names.len());
        };
        let size = tensor.shape().elements();
        let to = if values.is_null() { 0 } else { size };
        if to > capacity {
            fail!(InvalidArgument, "values has room for {capacity} values; the parameter has {size}");
        }
        let mut dims = [0; 8];
        dims[..tensor.dims().len()].copy_from_slice(tensor.dims());
        // SAFETY: as above.
        let to = unsafe { array_mut(values.cast(), 4 * to, "values") }?;
        // SAFETY: as above.
        unsafe {
            report(out, "out", |struct_size| {
                Ok(adead_trained_parameter { struct_size, name: name.as_ptr(), rank: tensor.dims().len(), dims, size })
            })
        }?;
        if to.is_empty() { Ok(()) } else { write(to, tensor) }
    })
}

/// Writes a tensor's f32 values in native byte order.
fn write(to: &mut [u8], tensor: &Tensor) -> Result<()> {
    for (to, value) in to.chunks_exact_mut(4).zip(tensor.as_slice::<f32>()?) {
        to.copy_from_slice(&value.to_ne_bytes());
    }
    Ok(())
}
