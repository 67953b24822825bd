//! Embeddings: the result of an encoder.

/// Embeddings: a row of f32 for each sentence, in the order of the sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embeddings {
    pub(crate) values: Vec<f32>,
    pub(crate) width: usize,
    pub(crate) truncated: Vec<usize>,
}

impl Embeddings {
    /// Returns the number of sentences.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Returns whether there are no sentences.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the number of values in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns a sentence's row. Panics if `sentence` is not less than `len()`.
    pub fn row(&self, sentence: usize) -> &[f32] {
        &self.values[sentence * self.width..][..self.width]
    }

    /// Returns all rows, one after another.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns all rows, one after another, without a copy.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Returns, in ascending order, the indices of sentences with more tokens than the model takes. Only their first tokens were
    /// used.
    pub fn truncated(&self) -> &[usize] {
        &self.truncated
    }
}
