//! Training jobs: files that describe a training.

use adead_c_support::context::{adead_context_options, open};
use adead_c_support::pointers::{fixed, growing, optional_text, options, report, text};
use adead_c_support::{fail, guard};
use adead_models::train::{Event, Job, RunOptions, connect, hash, patience};
use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

/// The result of a call; see adead.h.
type adead_status = i32;

/// A progress event: a step is done, or an epoch has ended. Later versions add fields at the end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_train_event {
    /// 1 if an epoch has ended, 0 after a step.
    pub epoch_is_over: i32,
    /// The epoch; the first one is 1.
    pub epoch: u32,
    /// The number of steps so far.
    pub step: u64,
    /// The total number of steps of the job.
    pub steps: u64,
    /// The loss of the step's batch, or the mean loss of the epoch's batches.
    pub loss: f64,
    /// The mean loss of the held-out samples; NaN after a step.
    pub held_out_loss: f64,
    /// The fraction of held-out samples whose most likely class is correct; NaN after a step.
    pub accuracy: f64,
    /// Seconds that the epoch took, including the measurement; NaN after a step.
    pub seconds: f64,
}

/// Options of a job. Start from `ADEAD_TRAIN_OPTIONS_INIT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_train_options {
    /// `sizeof(adead_train_options)`.
    pub struct_size: usize,
    /// Whether the job continues from its checkpoint, if there is one: 0 or 1.
    pub resume: i32,
    /// The number of epochs; 0 takes the number from the job's file.
    pub epochs: u32,
    /// This process's rank, in the form that `adead_trainer_join` takes. NULL trains without other processes.
    pub ranks: *const c_char,
    /// The most seconds that a rank may take to connect, and to compute its part of a step.
    pub patience: f64,
    /// Receives each event, which is valid only during the call. May be NULL. Returns 0 to continue; any other number ends the job. It runs
    /// in the calling thread. It must return: no longjmp and no C++ exception may leave it.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, event: *const adead_train_event) -> i32>,
    /// Passed to `progress`.
    pub user: *mut c_void,
}

// SAFETY: as `Growing` requires; a pointer may have any bits, because it is checked before use, and the caller vouches for the callbacks.
growing!(unsafe adead_train_options, 48);

/// What a job gave. Set `struct_size` to `sizeof(adead_train_outcome)` before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_train_outcome {
    /// `sizeof(adead_train_outcome)`.
    pub struct_size: usize,
    /// The number of steps, including those before a checkpoint.
    pub steps: u64,
    /// The mean loss of the held-out samples after the last epoch of this run. NaN if no epoch ran, and on ranks above 0.
    pub held_out_loss: f64,
    /// The fraction of held-out samples whose most likely class is correct. NaN in the same cases.
    pub accuracy: f64,
    /// The SHA-256 of the parameters, as `adead_trainer_sha256` writes it.
    pub sha256: [c_char; 72],
    /// The device that trained.
    pub device: [c_char; 64],
}

// SAFETY: as `Growing` requires.
growing!(unsafe adead_train_outcome, 168);

/// Runs a training job from a TOML file, whose format docs/training.md describes. `device` and `context` are as for `adead_context_open`.
/// `device`, `context` and `opts` may be NULL.
///
/// `io` or `invalid_argument` if the job, its data or a checkpoint can't be read or is malformed. `not_ready` if `progress` ended the job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_train_job(
    path: *const c_char,
    device: *const c_char,
    context: *const adead_context_options,
    opts: *const adead_train_options,
    out: *mut adead_train_outcome,
) -> adead_status {
    guard(|| {
        let defaults = adead_train_options {
            struct_size: 0,
            resume: 0,
            epochs: 0,
            ranks: null(),
            patience: 300.0,
            progress: None,
            user: null_mut(),
        };
        // SAFETY: the caller vouches for the pointers.
        let (path, opts) = unsafe { (text(path, "path")?, options(opts, defaults)?) };
        // SAFETY: as above.
        let ranks = unsafe { optional_text(opts.ranks, "ranks") }?;
        let resume = match opts.resume {
            0 => false,
            1 => true,
            other => fail!(InvalidArgument, "resume is {other}; it must be 0 or 1"),
        };
        let patience = patience(opts.patience)?;
        let mut job = Job::read(path)?;
        if opts.epochs > 0 {
            job.epochs = opts.epochs;
        }
        // SAFETY: as above.
        let context = unsafe { open(device, context) }?;
        let ranks = ranks.map(|place| connect(place, patience)).transpose()?;
        let (mut step, mut steps) = (0, 0);
        let outcome = job.run(&context, RunOptions { resume, ranks }, &mut |event| {
            let none = f64::NAN;
            let event = match event {
                Event::Step { epoch, step: now, steps: all, loss } => {
                    (step, steps) = (*now, *all);
                    let loss = f64::from(*loss);
                    adead_train_event {
                        epoch_is_over: 0,
                        epoch: *epoch,
                        step,
                        steps,
                        loss,
                        held_out_loss: none,
                        accuracy: none,
                        seconds: none,
                    }
                }
                Event::Epoch(it) => adead_train_event {
                    epoch_is_over: 1,
                    epoch: it.number,
                    step,
                    steps,
                    loss: it.loss,
                    held_out_loss: it.held_out_loss,
                    accuracy: it.accuracy,
                    seconds: it.took.as_secs_f64(),
                },
            };
            // SAFETY: the caller's callback, called as documented.
            if opts.progress.is_some_and(|told| unsafe { told(opts.user, &event) } != 0) {
                fail!(NotReady, "progress ended the job at step {step} of {steps}");
            }
            Ok(())
        })?;
        let (hash, last) = (hash(&outcome.parameters)?, outcome.epochs.last());
        // SAFETY: as above.
        unsafe {
            report(out, "out", |struct_size| {
                Ok(adead_train_outcome {
                    struct_size,
                    steps: outcome.steps,
                    held_out_loss: last.map_or(f64::NAN, |epoch| epoch.held_out_loss),
                    accuracy: last.map_or(f64::NAN, |epoch| epoch.accuracy),
                    sha256: fixed(&hash),
                    device: fixed(&outcome.device),
                })
            })
        }
    })
}
