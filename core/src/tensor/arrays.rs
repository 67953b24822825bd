//! Conversions between tensors and the crate ndarray's arrays.

use super::{Element, Tensor};
use crate::error::{Error, Result, Status};
use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

/// Copies the elements of an array, a transposed or sliced one too. Errors as for [`Tensor::new`].
impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Tensor {
    type Error = Error;

    fn try_from(array: &ArrayBase<S, D>) -> Result<Tensor> {
        match array.as_slice() {
            Some(values) => Tensor::new(values, array.shape()),
            None => Tensor::new(&array.iter().copied().collect::<Vec<T>>(), array.shape()),
        }
    }
}

/// Copies the elements. Errors as for [`Tensor::as_slice`].
impl<T: Element> TryFrom<&Tensor> for ArrayD<T> {
    type Error = Error;

    fn try_from(tensor: &Tensor) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(tensor.dims()), tensor.to_vec()?)
            .map_err(|error| Error::new(Status::Unsupported, format!("ndarray refuses {}: {error}", tensor.shape())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, arr0, arr2, s};

    #[test]
    fn arrays_become_tensors_and_back() {
        let array = arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        let tensor = Tensor::try_from(&array).unwrap();
        assert_eq!((tensor.dims(), tensor.to_vec::<f32>().unwrap()), (&[2, 3][..], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(ArrayD::<f32>::try_from(&tensor).unwrap(), array.clone().into_dyn());
        let turned = Tensor::try_from(&array.t()).unwrap();
        assert_eq!((turned.dims(), turned.to_vec::<f32>().unwrap()), (&[3, 2][..], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
        let back = Tensor::try_from(&array.slice(s![.., ..;-2])).unwrap();
        assert_eq!(back.to_vec::<f32>().unwrap(), [3.0, 1.0, 6.0, 4.0]);
        let scalar: Tensor = (&arr0(7i64)).try_into().unwrap();
        assert_eq!((scalar.dims().len(), ArrayD::<i64>::try_from(&scalar).unwrap()), (0, arr0(7).into_dyn()));
        let none = Tensor::try_from(&Array1::<u32>::zeros(0)).unwrap();
        assert_eq!(ArrayD::<u32>::try_from(&none).unwrap().shape(), [0]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let tensor = Tensor::new(&[1.0f32], &[1]).unwrap();
        assert_eq!(ArrayD::<i32>::try_from(&tensor).unwrap_err().status(), Status::DtypeMismatch);
        let deep = ArrayD::<f32>::zeros(IxDyn(&[1; 9]));
        assert_eq!(Tensor::try_from(&deep).unwrap_err().status(), Status::InvalidArgument);
    }

    #[cfg(feature = "half")]
    #[test]
    fn halves_are_elements() {
        let values = [half::bf16::from_f32(1.5), half::bf16::from_f32(-2.0)];
        let tensor = Tensor::new(&values, &[2]).unwrap();
        assert_eq!((tensor.dtype(), tensor.bytes()), (crate::DType::BF16, &[0xc0, 0x3f, 0, 0xc0][..]));
        assert_eq!(tensor.to_vec::<half::bf16>().unwrap(), values);
        assert_eq!(tensor.to_vec::<half::f16>().unwrap_err().status(), Status::DtypeMismatch);
        assert_eq!(ArrayD::<half::bf16>::try_from(&tensor).unwrap()[[1]].to_f32(), -2.0);
    }
}
