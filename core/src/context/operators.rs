//! Operators on tensors, which compute on the process's shared context.

use super::{Context, ContextOptions};
use crate::config::Config;
use crate::error::Result;
use crate::tensor::Tensor;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::OnceLock;

impl Context {
    /// Returns the process's shared context. The first call opens it on the device of the environment or `adead.toml`, or else
    /// `"auto"`. A call that fails leaves none, so the next one tries again.
    pub fn shared() -> Result<&'static Context> {
        static SHARED: OnceLock<Context> = OnceLock::new();
        if let Some(context) = SHARED.get() {
            return Ok(context);
        }
        let context = Context::configured(None, &ContextOptions::default(), &Config::load()?)?;
        Ok(SHARED.get_or_init(|| context))
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident),*) => {$(
        #[doc = concat!("Calls [`Context::", stringify!($method), "`] of [`Context::shared`].")]
        impl $operator<&Tensor> for &Tensor {
            type Output = Result<Tensor>;

            fn $method(self, other: &Tensor) -> Result<Tensor> {
                Context::shared()?.$method(self, other)
            }
        }
    )*};
}
operators!(Add add, Sub sub, Mul mul, Div div);

/// Calls [`Context::neg`] of [`Context::shared`].
impl Neg for &Tensor {
    type Output = Result<Tensor>;

    fn neg(self) -> Result<Tensor> {
        Context::shared()?.neg(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;

    #[test]
    fn operators_are_operations() {
        let [a, b] = [[1.0f32, 2.0, -3.0], [4.0, 8.0, 2.0]].map(|values| Tensor::new(&values, &[3]).unwrap());
        let values = |result: Result<Tensor>| result.unwrap().to_vec::<f32>().unwrap();
        assert_eq!(values(&a + &b), [5.0, 10.0, -1.0]);
        assert_eq!(values(&a - &b), [-3.0, -6.0, -5.0]);
        assert_eq!(values(&a * &b), [4.0, 16.0, -6.0]);
        assert_eq!(values(&b / &a)[..2], [4.0, 4.0]);
        assert_eq!(values(-&a), [-1.0, -2.0, 3.0]);
        let wide = Tensor::new(&[0.0f32; 4], &[4]).unwrap();
        assert_eq!((&a + &wide).unwrap_err().status(), Status::ShapeMismatch);
    }
}
