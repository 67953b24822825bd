/*
 * adead/profile.h: what a profile recorded, as texts. MIT license.
 *
 * A library of its own over adead.h's functions, `libadead_profile`: docs/profile.md. The texts are byte for byte those of the
 * Rust crate's Report. Rules are adead.h's. The text of an error is adead_last_error()'s; where there is no memory for a text
 * it is ADEAD_OUT_OF_MEMORY and leaves that as it is.
 */
#ifndef ADEAD_PROFILE_H
#define ADEAD_PROFILE_H

#include <adead.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A table of a finished profile with a line for each kind of work, device and reason, what took longest first, and what the
/// devices did. The text is the caller's and goes back through adead_profile_text_destroy.
ADEAD_API adead_status adead_profile_table(const adead_profile *profile, char **out);

/// A finished profile as JSON: an object with ns, busy_ns, overlapped_ns, overlap, dropped, and lists devices, totals and
/// records. As above.
ADEAD_API adead_status adead_profile_json(const adead_profile *profile, char **out);

/// A finished profile as a trace in Chrome's format, for Perfetto and chrome://tracing. As above.
ADEAD_API adead_status adead_profile_trace(const adead_profile *profile, char **out);

/// Gives a text up; NULL is fine.
ADEAD_API void adead_profile_text_destroy(char *text);

#ifdef __cplusplus
}
#endif

#endif
