//! A tensor's entry in a file.

use super::kind::Kind;
use std::fmt;
use std::ops::Range;

/// A tensor of the file: its name, shape, kind, and where its bytes are.
#[derive(Clone)]
pub struct TensorInfo {
    pub(super) name: Box<str>,
    /// The first `rank` count.
    pub(super) dims: [usize; 4],
    pub(super) rank: u8,
    pub(super) kind: Kind,
    /// The offset in the file of what it says about the tensor.
    pub(super) described: usize,
    /// The offset of the tensor's bytes: from the beginning of all tensors' bytes while the file is read, then from the
    /// file's.
    pub(super) start: usize,
    /// The number of its bytes. Of an unknown kind they are known last.
    pub(super) bytes: usize,
}

impl TensorInfo {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the 1 to 4 dimensions, outermost first, as in `adead`'s shapes. The file stores them innermost first. The last one
    /// is a multiple of the kind's block.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..usize::from(self.rank)]
    }

    /// Returns how the values are stored.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of values.
    pub fn elements(&self) -> usize {
        self.dims().iter().product()
    }

    /// Returns the number of the tensor's bytes in the file. If the block size of the kind is unknown, it is the distance to the
    /// next tensor, including padding.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Returns where the tensor's bytes are, counted from the file's beginning.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes
    }
}

impl fmt::Debug for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}{:?} at {:?}", self.name, self.kind, self.dims(), self.range())
    }
}
