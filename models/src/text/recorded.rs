//! A step of few rows on a GPU: what is between the attention of two layers is recorded once and replayed, because starting each
//! kernel by itself takes longer than the kernel.

use super::config::Config;
use super::layer::Layer;
use adead::pipeline::{Compiled, Pipeline, Value};
use adead::{Context, DType, Result, Tensor};

/// The most rows of a step that is recorded: more keep a GPU busy by themselves.
pub(crate) const MOST: usize = 8;

/// A decoder's layers, recorded for a number of rows.
pub(crate) struct Recorded {
    first: Compiled,
    /// Between a layer's attention and the next one's.
    between: Vec<Compiled>,
    last: Compiled,
}

/// Rows, and their queries, keys and values for the next attention.
pub(crate) struct Rows {
    pub x: Tensor,
    pub parts: [Tensor; 3],
}

/// The values of a pipeline that every step passes.
struct Given {
    x: Value,
    attended: Value,
}

impl Recorded {
    pub fn new(context: &Context, config: &Config, layers: &[Layer], rows: usize) -> Result<Recorded> {
        let Config { width, heads, head_width, .. } = *config;
        let angles = |pipeline: &mut Pipeline| -> Result<[Value; 2]> {
            let dims = [rows, 1, head_width / 2];
            Ok([pipeline.input(DType::F32, &dims)?, pipeline.input(DType::F32, &dims)?])
        };
        let given = |pipeline: &mut Pipeline| -> Result<Given> {
            let x = pipeline.input(DType::F32, &[rows, width])?;
            Ok(Given { x, attended: pipeline.input(DType::F32, &[rows, heads * head_width])? })
        };
        let before = |pipeline: &mut Pipeline, layer: &Layer, x: Value, [cos, sin]: [Value; 2]| -> Result<()> {
            layer
                .before(pipeline, config, rows, &x, [&cos, &sin])?
                .into_iter()
                .try_for_each(|part| pipeline.output(part))
        };
        let mut pipeline = context.pipeline();
        let x = pipeline.input(DType::F32, &[rows, width])?;
        let turned = angles(&mut pipeline)?;
        before(&mut pipeline, &layers[0], x, turned)?;
        let first = pipeline.compile()?;
        let mut between = Vec::new();
        for pair in layers.windows(2) {
            let mut pipeline = context.pipeline();
            let Given { x, attended } = given(&mut pipeline)?;
            let turned = angles(&mut pipeline)?;
            let x = pair[0].behind(&mut pipeline, config, &x, &attended)?;
            pipeline.output(x)?;
            before(&mut pipeline, &pair[1], x, turned)?;
            between.push(pipeline.compile()?);
        }
        let mut pipeline = context.pipeline();
        let Given { x, attended } = given(&mut pipeline)?;
        let x = layers[layers.len() - 1].behind(&mut pipeline, config, &x, &attended)?;
        pipeline.output(x)?;
        Ok(Recorded { first, between, last: pipeline.compile()? })
    }

    /// Begins with rows at positions with these cosines and sines.
    pub fn first(&self, x: Tensor, [cos, sin]: [&Tensor; 2]) -> Result<Rows> {
        let parts = self.first.run(&[&x, cos, sin])?;
        Ok(Rows { x, parts: three(parts) })
    }

    /// Goes on from a layer's attention to the next one's.
    pub fn next(&self, layer: usize, x: &Tensor, attended: &Tensor, [cos, sin]: [&Tensor; 2]) -> Result<Rows> {
        let mut found = self.between[layer].run(&[x, attended, cos, sin])?;
        let parts = three(found.split_off(1));
        Ok(Rows { x: found.swap_remove(0), parts })
    }

    /// Ends with the last layer.
    pub fn last(&self, x: &Tensor, attended: &Tensor) -> Result<Tensor> {
        Ok(self.last.run(&[x, attended])?.swap_remove(0))
    }
}

fn three(parts: Vec<Tensor>) -> [Tensor; 3] {
    <[Tensor; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three outputs were recorded"))
}
