//! What an encoder returns.

/// Embeddings: a row of f32 for each sentence, in the order of the sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embeddings {
    pub(crate) values: Vec<f32>,
    pub(crate) width: usize,
    pub(crate) truncated: Vec<usize>,
}

impl Embeddings {
    /// Sentences.
    pub fn len(&self) -> usize {
        self.values.len().checked_div(self.width).unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// A sentence's row. Panics where there is none.
    pub fn row(&self, sentence: usize) -> &[f32] {
        &self.values[sentence * self.width..][..self.width]
    }

    /// All rows behind each other.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The same, without a copy.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// The sentences that had more tokens than the model takes, of which the first were used, in ascending order.
    pub fn truncated(&self) -> &[usize] {
        &self.truncated
    }
}
