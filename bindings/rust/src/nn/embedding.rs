//! Embedding layers.

use super::{Layer, Weights, placed};
use adead_core::{Context, Error, Result, Status, Tensor};

/// Looks up rows of a table `[count, width]` by id. Ids are i32, i64 or u32, of any shape.
#[derive(Clone)]
pub struct Embedding {
    context: Context,
    table: Tensor,
}

impl Embedding {
    /// Loads the layer from the table `PREFIX.weight`, `[count, width]`.
    pub fn load(weights: &Weights, prefix: &str, count: usize, width: usize, context: &Context) -> Result<Embedding> {
        Embedding::new(&weights.tensor(&format!("{prefix}.weight"), &[count, width])?, context)
    }

    /// Makes the layer from a table. `shape_mismatch` unless it is a matrix.
    pub fn new(table: &Tensor, context: &Context) -> Result<Embedding> {
        if table.dims().len() != 2 {
            let text = format!("embedding: the table is {}; it must be [count, width]", table.shape());
            return Err(Error::new(Status::ShapeMismatch, text));
        }
        Ok(Embedding { context: context.clone(), table: placed(context, table)? })
    }

    /// Returns the number of rows of the table.
    pub fn count(&self) -> usize {
        self.table.dims()[0]
    }

    /// Returns the number of values of a row.
    pub fn width(&self) -> usize {
        self.table.dims()[1]
    }
}

impl Layer for Embedding {
    /// Returns the rows for the ids. `invalid_argument` for an id outside the table.
    fn forward(&self, ids: &Tensor) -> Result<Tensor> {
        self.context.embedding(&self.table, ids)
    }
}
