//! How the rows of a batch are divided into sequences.

use adead_core::{Error, Result, Status, Tensor};

/// Sequences of one length whose rows follow each other.
#[derive(Clone, Debug)]
pub struct Group {
    count: usize,
    length: usize,
    /// `[count, 1, 1, length]`: 0 where a row is one of the sequence, −inf where it is padding.
    mask: Option<Tensor>,
}

impl Group {
    /// So many sequences of so many rows, all of them their own.
    pub fn new(count: usize, length: usize) -> Group {
        Group { count, length, mask: None }
    }

    /// Sequences of these lengths, each padded to `length` rows, which nothing attends to: what comes out for the rows of a
    /// sequence has the bits that it has without padding. `invalid_argument` for a longer one, or one of 0 rows.
    pub fn padded(lengths: &[usize], length: usize) -> Result<Group> {
        if let Some(wrong) = lengths.iter().find(|own| !(1..=length).contains(own)) {
            let text = format!("a sequence of {wrong} rows can't be padded to {length}");
            return Err(Error::new(Status::InvalidArgument, text));
        }
        if lengths.iter().all(|&own| own == length) {
            return Ok(Group::new(lengths.len(), length));
        }
        let added =
            lengths.iter().flat_map(|&own| (0..length).map(move |at| if at < own { 0.0 } else { f32::NEG_INFINITY }));
        let mask = Tensor::new(&added.collect::<Vec<f32>>(), &[lengths.len(), 1, 1, length])?;
        Ok(Group { count: lengths.len(), length, mask: Some(mask) })
    }

    /// Sequences.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Rows of each.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Rows of all of them.
    pub fn rows(&self) -> usize {
        self.count * self.length
    }

    pub(super) fn mask(&self) -> Option<&Tensor> {
        self.mask.as_ref()
    }
}

/// The sequences of a matrix whose rows are their tokens, group behind group.
#[derive(Clone, Debug, Default)]
pub struct Sequences(Vec<Group>);

impl Sequences {
    /// Sequences in groups of one length.
    pub fn new(groups: Vec<Group>) -> Sequences {
        Sequences(groups)
    }

    /// The sequences of a batch `[count, length, …]`, padded where lengths are given. `shape_mismatch` unless there are as many.
    pub(super) fn of_batch(count: usize, length: usize, lengths: Option<&[usize]>) -> Result<Sequences> {
        let Some(lengths) = lengths else { return Ok(Sequences::new(vec![Group::new(count, length)])) };
        if lengths.len() != count {
            let text = format!("attention: {} lengths for {count} sequences", lengths.len());
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        Ok(Sequences::new(vec![Group::padded(lengths, length)?]))
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.0
    }

    /// Rows of all of them.
    pub fn rows(&self) -> usize {
        self.0.iter().map(Group::rows).sum()
    }
}
