//! Ranks of a training whose bytes the caller moves, for example over MPI.

use crate::trainer::adead_trainer;
use adead_c_support::pointers::{array, exclusive, growing, options, reference};
use adead_c_support::{fail, guard};
use adead_core::{Error, Result, Status};
use adead_models::train::Transport;
use std::ffi::c_void;
use std::ptr::{self, null_mut};

/// The result of a call; see adead.h.
type adead_status = i32;

/// What the ranks send to this one in one exchange.
pub struct adead_mailbox {
    /// By rank.
    found: Vec<Option<Vec<u8>>>,
}

/// Moves bytes between the ranks of a training.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct adead_transport {
    /// `sizeof(adead_transport)`.
    pub struct_size: usize,
    /// The number of this rank, counted from 0.
    pub rank: usize,
    /// The number of ranks, at least 1.
    pub size: usize,
    /// Passed to `exchange`.
    pub user: *mut c_void,
    /// Sends each rank r the `lengths[r]` bytes at `parts[r]`, and puts the bytes that each other rank sent to this one into the mailbox,
    /// with `adead_mailbox_put`. There is nothing for this rank itself. The arrays have `size` elements and are valid only during the
    /// call. All ranks call it equally often. It runs in the thread that calls the trainer. Returns 0; any other number if a rank is
    /// lost, which ends the call of the trainer with `io`. It must return: no longjmp and no C++ exception may leave it.
    pub exchange: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            parts: *const *const c_void,
            lengths: *const usize,
            mailbox: *mut adead_mailbox,
        ) -> i32,
    >,
}

// SAFETY: as `Growing` requires; the caller vouches for the callback.
growing!(unsafe adead_transport, 40);

/// Puts the bytes that a rank has sent into the mailbox of an exchange. They are copied.
///
/// `invalid_argument` for this rank itself or one that does not exist, and if the rank's bytes are there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_mailbox_put(
    mailbox: *mut adead_mailbox,
    rank: usize,
    bytes: *const c_void,
    length: usize,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers, and `exchange` has the only one to the mailbox.
        let (mailbox, bytes) = unsafe { (exclusive(mailbox, "mailbox")?, array(bytes.cast::<u8>(), length, "bytes")?) };
        let size = mailbox.found.len();
        match mailbox.found.get_mut(rank) {
            Some(found @ None) => *found = Some(bytes.to_vec()),
            Some(Some(_)) => fail!(InvalidArgument, "the bytes of rank {rank} are in the mailbox, or it is this rank"),
            None => fail!(InvalidArgument, "there is no rank {rank} of {size}"),
        }
        Ok(())
    })
}

/// Trains together with other processes from now on, as `adead_trainer_join` does, through the caller's transport. Every rank makes the
/// call. The transport is copied; `user` must stay valid until the trainer is destroyed or joins other ranks.
///
/// `invalid_argument` if there are more ranks than shards, or if the ranks' trainings differ. `io` if a rank is lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_trainer_join_through(
    trainer: *mut adead_trainer,
    transport: *const adead_transport,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (trainer, transport) = unsafe {
            let none = adead_transport { struct_size: 0, rank: 0, size: 0, user: null_mut(), exchange: None };
            (reference(trainer, "trainer")?, options(reference(transport, "transport")?, none)?)
        };
        let (rank, size) = (transport.rank, transport.size);
        let Some(exchange) = transport.exchange else {
            fail!(InvalidArgument, "exchange of a transport must not be NULL");
        };
        if rank >= size {
            fail!(InvalidArgument, "rank {rank} of {size} ranks: ranks are counted from 0");
        }
        trainer.lock()?.join(Box::new(Foreign { rank, size, user: transport.user, exchange, broken: false }))
    })
}

type Exchange =
    unsafe extern "C" fn(*mut c_void, *const *const c_void, *const usize, mailbox: *mut adead_mailbox) -> i32;

/// The caller's transport.
struct Foreign {
    rank: usize,
    size: usize,
    user: *mut c_void,
    exchange: Exchange,
    /// Whether an exchange has failed.
    broken: bool,
}

// SAFETY: the documentation says that `exchange` runs in the thread that calls the trainer, with `user`. Only one thread at a time may use
// the trainer.
unsafe impl Send for Foreign {}

impl Foreign {
    fn try_exchange(&self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>> {
        let mut parts: Vec<Vec<u8>> = parts.iter().map(|pieces| pieces.concat()).collect();
        parts[self.rank].clear();
        let lengths: Vec<usize> = parts.iter().map(Vec::len).collect();
        let pointers: Vec<*const c_void> = parts.iter().map(|part| part.as_ptr().cast()).collect();
        let mut mailbox = adead_mailbox { found: vec![None; self.size] };
        mailbox.found[self.rank] = Some(Vec::new());
        // SAFETY: the caller's callback, called as documented.
        let code =
            unsafe { (self.exchange)(self.user, pointers.as_ptr(), lengths.as_ptr(), ptr::from_mut(&mut mailbox)) };
        if code != 0 {
            fail!(Io, "the transport's exchange failed with {code}");
        }
        let all = mailbox.found.into_iter().enumerate().map(|(rank, found)| {
            let missing =
                || Error::new(Status::Io, format!("the transport's exchange brought nothing from rank {rank}"));
            found.ok_or_else(missing)
        });
        all.collect()
    }
}

impl Transport for Foreign {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&mut self, parts: &[Vec<&[u8]>]) -> Result<Vec<Vec<u8>>> {
        if self.broken {
            fail!(Io, "the ranks can't be used any longer: an exchange has failed");
        }
        let found = self.try_exchange(parts);
        self.broken = found.is_err();
        found
    }

    fn name(&self) -> String {
        "the program's own".into()
    }

    fn leave(&mut self, _error: &Error) {
        self.broken = true;
    }
}
