//! Matrices packed once for many products.

use crate::options::Call;
use crate::tensor::Value;
use adead::{Op, Result, Tensor, View};
use napi::bindgen_prelude::{ObjectFinalize, Unknown};
use napi::{Env, JsValue};
use napi_derive::napi;
use std::ptr::null_mut;
use std::sync::Arc;

/// A matrix that `Context.pack` packed for products.
#[napi(custom_finalize)]
pub struct Packed {
    inner: Arc<adead::Packed>,
}

impl Packed {
    /// Wraps a packed matrix and reports its memory to V8.
    pub fn new(env: Env, packed: adead::Packed) -> napi::Result<Packed> {
        env.adjust_external_memory(packed.bytes() as i64)?;
        Ok(Packed { inner: Arc::new(packed) })
    }
}

impl ObjectFinalize for Packed {
    fn finalize(self, env: Env) -> napi::Result<()> {
        env.adjust_external_memory(-(self.inner.bytes() as i64)).map(|_| ())
    }
}

#[napi]
impl Packed {
    /// The shape as an operand: `[K, N]`, also if `transB` was given.
    #[napi(getter)]
    pub fn dims(&self) -> Vec<f64> {
        self.inner.shape().dims().iter().map(|&dim| dim as f64).collect()
    }

    /// The dtype of the matrix that was packed.
    #[napi(getter, ts_return_type = "DType")]
    pub fn dtype(&self) -> &'static str {
        self.inner.dtype().name()
    }

    /// The memory that the packed matrix takes, in bytes.
    #[napi(getter)]
    pub fn bytes(&self) -> f64 {
        self.inner.bytes() as f64
    }
}

/// A product with a packed matrix.
pub struct Product {
    a: Tensor,
    b: Arc<adead::Packed>,
    call: Call,
}

impl Product {
    /// Reads the call's arguments. The options are those of `matmul`.
    pub fn new(env: Env, Value(a): Value, b: &Packed, options: Option<Unknown<'_>>) -> napi::Result<Product> {
        // A missing options argument counts as one that is undefined.
        let options = options.map_or(null_mut(), |options| options.raw());
        let call = Call::optional(env.raw(), Op::Matmul, options)?;
        Ok(Product { a, b: b.inner.clone(), call })
    }

    /// Computes the product.
    pub fn run(&self, context: &adead::Context) -> Result<Tensor> {
        let mut inputs: Vec<Option<View<'_>>> =
            self.call.operands.iter().map(|operand| operand.as_ref().map(Tensor::view)).collect();
        inputs[0] = Some(self.a.view());
        inputs[1] = Some(View::packed(&self.b));
        context.run_views(Op::Matmul, &self.call.attrs, &inputs)
    }
}
