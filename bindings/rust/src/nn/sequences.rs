//! The division of a batch's rows into sequences.

use adead_core::{Error, Result, Status, Tensor};

/// Consecutive sequences of the same length.
#[derive(Clone, Debug)]
pub struct Group {
    count: usize,
    length: usize,
    /// `[count, 1, 1, length]`: 0 for a row of the sequence, −inf for padding.
    mask: Option<Tensor>,
}

impl Group {
    /// Makes a group of `count` sequences of `length` rows each, without padding.
    pub fn new(count: usize, length: usize) -> Group {
        Group { count, length, mask: None }
    }

    /// Makes a group of sequences of these lengths, each padded to `length` rows. Nothing attends to padding, so a sequence's
    /// rows have the same bits as without it. `invalid_argument` for a sequence of 0 rows or of more than `length`.
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

    /// Returns the number of sequences.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of rows of each sequence, including padding.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the number of rows of all sequences, including padding.
    pub fn rows(&self) -> usize {
        self.count * self.length
    }

    pub(super) fn mask(&self) -> Option<&Tensor> {
        self.mask.as_ref()
    }
}

/// Divides the rows of a matrix, one row for each token, into sequences: the rows of the first group come first.
#[derive(Clone, Debug, Default)]
pub struct Sequences(Vec<Group>);

impl Sequences {
    /// Makes the division from its groups, in the order of their rows.
    pub fn new(groups: Vec<Group>) -> Sequences {
        Sequences(groups)
    }

    /// Makes the sequences of a batch `[count, length, …]`, padded if `lengths` are given. `shape_mismatch` unless there are
    /// `count` lengths.
    pub(super) fn of_batch(count: usize, length: usize, lengths: Option<&[usize]>) -> Result<Sequences> {
        let Some(lengths) = lengths else { return Ok(Sequences::new(vec![Group::new(count, length)])) };
        if lengths.len() != count {
            let text = format!("attention: {} lengths for {count} sequences", lengths.len());
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        Ok(Sequences::new(vec![Group::padded(lengths, length)?]))
    }

    /// Returns the groups.
    pub fn groups(&self) -> &[Group] {
        &self.0
    }

    /// Returns the number of rows of all groups, including padding.
    pub fn rows(&self) -> usize {
        self.0.iter().map(Group::rows).sum()
    }
}
