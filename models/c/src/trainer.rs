//! Training with arrays.

use adead_c_support::context::{adead_context_options, open};
use adead_c_support::pointers::{Out, array, array_mut, fixed, growing, reference, report, text};
use adead_c_support::{c_text, fail, guard, guard_destroy};
use adead_core::{DType, Result, Tensor};
use adead_models::train::{Description, Trainer, connect, patience as allowed};
use std::ffi::{CString, c_char, c_void};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// What a call returns, as in adead.h.
type adead_status = i32;
/// The type of elements, as in adead.h.
type adead_dtype = i32;

/// A network in training. One thread at a time uses it: a call while another one computes is `not_ready`.
pub struct adead_trainer {
    trainer: Mutex<Trainer>,
    /// The names of the parameters, which never change.
    names: Vec<CString>,
}

impl adead_trainer {
    fn lock(&self) -> Result<MutexGuard<'_, Trainer>> {
        match self.trainer.try_lock() {
            Ok(trainer) => Ok(trainer),
            Err(TryLockError::WouldBlock) => fail!(NotReady, "the trainer computes in another thread"),
            Err(TryLockError::Poisoned(_)) => fail!(Internal, "an earlier call left the trainer unfinished"),
        }
    }
}

/// What a trainer takes and gives. Set `struct_size` to `sizeof(adead_trainer_info)` before the call.
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
    /// The number of samples of a step.
    pub batch: usize,
    /// The number of steps so far.
    pub steps: u64,
    /// The device that trains, such as "cpu" or "cuda:0".
    pub device: [c_char; 64],
}

// SAFETY: as asked.
growing!(unsafe adead_trainer_info, 120);

/// Gets the epoch, from 1 on, the number of steps so far and the step's loss, after each step. Returns 0 to go on; another number ends
/// the training. The thread that called the library calls it. It must return: no longjmp and no C++ exception may leave it.
pub type adead_fit_progress = Option<unsafe extern "C" fn(user: *mut c_void, epoch: u32, step: u64, loss: f32) -> i32>;

/// Compiles a training. `description` is JSON: the network, its loss and its optimiser, which docs/training.md describes. `device` and
/// `opts` are those of `adead_context_open`; either may be NULL.
///
/// `invalid_argument` and `shape_mismatch` for a description that is malformed or makes no network.
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

/// Releases a trainer. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_destroy(trainer: *mut adead_trainer) {
    // SAFETY: `create` made it, and the caller gives it up.
    unsafe { guard_destroy(trainer) }
}

/// Says what a trainer takes and gives.
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

/// Trains together with other processes from here on. `place` is the rank of this one: "0/4@host:29500" for rank 0 of 4, with the address
/// on which rank 0 waits, or "env" for what torchrun, Open MPI, MPICH or Slurm says. A rank may take `patience` seconds to come, and to
/// compute its part of a step. All ranks take the parameters and the step of rank 0. Then each makes the same calls with the same
/// samples, and computes its own part of every batch.
///
/// `invalid_argument` if there are more ranks than shards, or the ranks' trainings differ; `io` if a rank does not come or is lost.
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

/// Samples of the caller as a tensor `[count, …]`.
///
/// # Safety
/// `values` is NULL or points to `count` samples of this type and shape.
unsafe fn samples(values: *const c_void, count: usize, dtype: DType, dims: &[usize], name: &str) -> Result<Tensor> {
    let dims = [&[count][..], dims].concat();
    let Some(length) = dims.iter().try_fold(1usize, |all, &dim| all.checked_mul(dim)) else {
        fail!(InvalidArgument, "{name} has {count} samples, which no memory holds");
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
/// Both are NULL or point to `count` samples or targets of the trainer.
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

/// Trains with one batch. `x` has `count` samples behind each other, and `targets` as many targets; `adead_trainer_inspect` says their
/// types and sizes. `count` must be the batch. `*loss` receives the loss from before the step.
///
/// `invalid_argument` for a class that does not exist, and if the loss is not finite: the text has the step and the parameter. Then
/// nothing has changed.
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

/// Trains with `count` samples `epochs` times, in an order that the seed draws for each epoch. Samples that don't fill a batch wait for
/// the next epoch. `progress` may be NULL. `*loss` receives the mean loss of the last epoch.
///
/// Errors are those of `adead_trainer_step`, and `not_ready` if `progress` ended the training. Steps before an error are made.
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
            // SAFETY: the caller's function, called as it is described.
            if progress.is_some_and(|told| unsafe { told(user, epoch, step, loss) } != 0) {
                fail!(NotReady, "progress ended the training at step {step}");
            }
            Ok(())
        })?;
        loss.write(mean);
        Ok(())
    })
}

/// Computes the network's outputs for `count` samples. Writes `output_size` values for each, in their order, to `out`, which has room
/// for `capacity` values.
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

/// Measures `count` samples: `*loss` receives their mean loss, and `*accuracy` the part whose most likely class is the right one.
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

/// Writes the parameters, the optimiser's tensors and the step to a safetensors file, which replaces an older one at once.
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
/// `io`, `invalid_argument` and `shape_mismatch` for a file that can't be read or belongs to another training.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_load(trainer: *mut adead_trainer, path: *const c_char) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, path) = unsafe { (reference(trainer, "trainer")?, text(path, "path")?) };
        trainer.lock()?.load(path)
    })
}

/// Writes the SHA-256 of the parameters as 64 hexadecimal digits and NUL to `text`, which has room for `capacity` bytes, 65 or more. The
/// parameters are taken in the order of their names, as f32, little endian.
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

/// Returns the number of parameters: tensors with a name.
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
    /// Its name, valid as long as the trainer.
    pub name: *const c_char,
    /// The number of dimensions.
    pub rank: usize,
    /// The dimensions.
    pub dims: [usize; 8],
    /// The number of values.
    pub size: usize,
}

// SAFETY: as asked; a pointer may have any bits.
growing!(unsafe adead_trained_parameter, 96);

/// Says the name and the shape of parameter `index`, and writes its values to `values`, which has room for `capacity` values. With
/// NULL for `values` none are written.
///
/// `invalid_argument` for an index that is no parameter's, and if the values have no room.
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

/// Writes a tensor's values of f32 as the machine has them.
fn write(to: &mut [u8], tensor: &Tensor) -> Result<()> {
    for (to, value) in to.chunks_exact_mut(4).zip(tensor.as_slice::<f32>()?) {
        to.copy_from_slice(&value.to_ne_bytes());
    }
    Ok(())
}
