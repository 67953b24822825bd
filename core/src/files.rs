//! Reading whole files.

use crate::error::{Error, Result, Status};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes read from a source without a size: a pipe, a terminal, a device such as `/dev/zero`.
pub const MOST_STREAMED: u64 = 256 << 20;

/// Reads a file. Errors contain its name. A source without a size is read to its end, at most [`MOST_STREAMED`] bytes.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.to_string_lossy();
    let file = File::open(path).map_err(|error| failed(&name, error))?;
    match file.metadata() {
        // Files that the system generates when they are read (/proc) have the length 0.
        Ok(data) if data.is_file() && data.len() > 0 => read_most(file, u64::MAX, data.len(), &name),
        _ => read_stream(file, &name),
    }
}

/// Reads a stream to its end, at most [`MOST_STREAMED`] bytes. Errors contain its name.
pub fn read_stream(stream: impl Read, name: &str) -> Result<Vec<u8>> {
    let bytes = read_most(stream, MOST_STREAMED + 1, 0, name)?;
    if bytes.len() as u64 > MOST_STREAMED {
        let text = format!("{name} gives more than {MOST_STREAMED} bytes; pass a larger input as a file");
        return Err(Error::new(Status::Io, text));
    }
    Ok(bytes)
}

fn read_most(stream: impl Read, most: u64, expected: u64, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let expected = usize::try_from(expected).unwrap_or(usize::MAX);
    if bytes.try_reserve_exact(expected).is_err() {
        return Err(Error::new(
            Status::OutOfMemory,
            format!("{name} has {expected} bytes, and that much memory is not free"),
        ));
    }
    match stream.take(most).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(failed(name, error)),
    }
}

fn failed(name: &str, error: io::Error) -> Error {
    let status = if error.kind() == io::ErrorKind::OutOfMemory { Status::OutOfMemory } else { Status::Io };
    let own = Error::new(status, format!("{name}: {error}"));
    #[cfg(feature = "details")]
    let own = own.with_detail(error);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let error = read_stream(io::repeat(0), "zeros").unwrap_err();
        assert_eq!(error.status(), Status::Io);
        assert!(error.message().starts_with("zeros gives more than 268435456 bytes"), "{error}");
        assert_eq!(read_stream(&b"abc"[..], "three").unwrap(), b"abc");
        #[cfg(unix)]
        assert_eq!(read(Path::new("/dev/zero")).unwrap_err().status(), Status::Io);
        assert_eq!(read(Path::new("no such file")).unwrap_err().status(), Status::Io);
    }
}
