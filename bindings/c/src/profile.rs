//! Profiles: what a context did, as text.

use crate::context::adead_context;
use crate::pointers::{Out, exclusive, fail, reference};
use crate::status::{adead_status, guard, guard_destroy};
use adead_core::Result;
use adead_core::profile::{DEFAULT_RECORDS, Profile, Report};
use std::ffi::{CString, c_char};
use std::sync::OnceLock;

/// A profile under way, or what it recorded. Once it is finished, threads may share it.
pub struct adead_profile {
    profile: Option<Profile>,
    report: Option<Report>,
    /// Table, JSON and trace, made when they are first asked for.
    texts: [OnceLock<CString>; 3],
}

/// Begins to record what a context and its streams do, in every thread: at most so many records, others are counted; 0 is
/// 65536. `invalid_argument` while another profile of the context is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_create(
    context: *const adead_context,
    records: usize,
    out: *mut *mut adead_profile,
) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointers.
        let (context, out) = unsafe { (reference(context, "context")?, Out::new(out, "out")?) };
        let profile = context.0.profile_with(if records == 0 { DEFAULT_RECORDS } else { records })?;
        out.give(adead_profile { profile: Some(profile), report: None, texts: Default::default() });
        Ok(())
    })
}

/// Gives a profile up, and ends it if it is under way; NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_destroy(profile: *mut adead_profile) {
    guard_destroy(profile);
}

/// Ends a profile, when what the context enqueued is done; streams of the caller's are to be synchronised before, as work
/// that is under way has no times. `invalid_argument` the second time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_finish(profile: *mut adead_profile) -> adead_status {
    guard(|| {
        // SAFETY: the caller vouches for the pointer.
        let profile = unsafe { exclusive(profile, "profile") }?;
        let Some(under_way) = profile.profile.take() else {
            fail!(InvalidArgument, "the profile is finished");
        };
        profile.report = Some(under_way.finish());
        Ok(())
    })
}

/// Gives one of a finished profile's texts.
unsafe fn give(
    profile: *const adead_profile,
    which: usize,
    make: fn(&Report) -> String,
    out: *mut *const c_char,
) -> adead_status {
    guard(|| -> Result<()> {
        // SAFETY: the caller vouches for the pointers.
        let (profile, out) = unsafe { (reference(profile, "profile")?, Out::new(out, "out")?) };
        let Some(report) = &profile.report else {
            fail!(InvalidArgument, "the profile is under way: finish it first");
        };
        let text = profile.texts[which]
            .get_or_init(|| CString::new(make(report).replace('\0', "\u{fffd}")).unwrap_or_default());
        out.write(text.as_ptr());
        Ok(())
    })
}

/// What a finished profile recorded as a table, with a line for each kind of work, device and reason. The text belongs to
/// the profile and goes with it. `invalid_argument` before it is finished.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_table(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { give(profile, 0, |report| report.to_string(), out) }
}

/// The same as JSON, with every record. docs/profile.md has the fields.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_json(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { give(profile, 1, Report::to_json, out) }
}

/// The same as a trace in Chrome's format, for Perfetto and chrome://tracing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn adead_profile_trace(profile: *const adead_profile, out: *mut *const c_char) -> adead_status {
    // SAFETY: the caller vouches for the pointers.
    unsafe { give(profile, 2, Report::to_trace, out) }
}
