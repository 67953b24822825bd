//! Numbers in text.

use crate::hal::cpu::default_environment;

/// A decimal f32, rounded to nearest even whatever the host process has set: the parser computes in floating point.
pub(crate) fn parse_f32(text: &str) -> Option<f32> {
    default_environment(|| text.parse().ok())
}
