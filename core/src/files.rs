//! Files that are read whole.

use crate::error::{Result, fail};
use std::path::Path;

/// A file's bytes; the error has its name.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) => fail!(Io, "{}: {error}", path.to_string_lossy()),
    }
}
