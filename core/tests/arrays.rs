//! Typed arrays, on the CPU and on the machine's first GPU (also a software one), through Vulkan or the backend in
//! `ADEAD_TEST_BACKEND`.

mod backend;

use adead_core::gpu::GpuArray;
use adead_core::{Attrs, Context, Op, Status, Tensor};

fn contexts() -> Vec<Context> {
    let mut all = vec![Context::open("cpu").unwrap()];
    let backend = backend::backend();
    match Context::open(&backend) {
        Ok(gpu) => all.push(gpu),
        Err(error) if error.status() == Status::BackendUnavailable => backend::skip(&backend, &error),
        Err(error) => panic!("{error}"),
    }
    all
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.37).sin()).collect()
}

#[test]
fn what_is_uploaded_is_there() {
    for ctx in contexts() {
        let a = ctx.alloc_upload(&values(12), &[3, 4]).unwrap();
        assert_eq!((a.shape().dims(), a.len(), a.is_empty()), (&[3, 4][..], 12, false));
        assert_eq!(a.to_vec().unwrap(), values(12));
        assert_eq!(a.to_tensor().unwrap().to_vec::<f32>().unwrap(), values(12));
        assert_eq!(format!("{a:?}"), format!("f32 [3, 4] on {}", a.buffer().device().id));
        a.write(&[2.0; 12]).unwrap();
        let mut into = [0.0; 12];
        a.read(&mut into).unwrap();
        assert_eq!(into, [2.0; 12]);
        let a = a.reshape(&[2, 6]).unwrap();
        assert_eq!((a.shape().dims(), a.to_vec().unwrap()), (&[2, 6][..], vec![2.0; 12]));
        assert_eq!(ctx.alloc_zeros::<i64>(&[5]).unwrap().to_vec().unwrap(), [0; 5]);
        assert_eq!(ctx.alloc_ones::<u32>(&[2, 2]).unwrap().to_vec().unwrap(), [1; 4]);
        assert_eq!(ctx.alloc_ones::<f32>(&[3]).unwrap().to_vec().unwrap(), [1.0; 3]);
        assert_eq!(ctx.alloc::<i32>(&[7]).unwrap().to_vec().unwrap(), [0; 7]);
        let none = ctx.alloc_upload::<f32>(&[], &[0, 3]).unwrap();
        assert!(none.is_empty() && none.to_vec().unwrap().is_empty());
    }
}

#[test]
fn operations_on_arrays_have_the_bits_of_those_on_tensors() {
    let cpu = Context::open("cpu").unwrap();
    let (a, b) = (values(6 * 8), values(8 * 5));
    let tensors = (Tensor::new(&a, &[6, 8]).unwrap(), Tensor::new(&b, &[8, 5]).unwrap());
    let product = cpu.matmul(&tensors.0, &tensors.1).unwrap();
    let soft = cpu.softmax(&product, -1).unwrap().to_vec::<f32>().unwrap();
    for ctx in contexts() {
        let (a, b) = (ctx.alloc_upload(&a, &[6, 8]).unwrap(), ctx.alloc_upload(&b, &[8, 5]).unwrap());
        let attrs = Attrs::default();
        let product: GpuArray<f32> =
            ctx.run_array(Op::Matmul, &attrs, &[Some(a.operand()), Some(b.operand())]).unwrap();
        let made: GpuArray<f32> = ctx.run_array(Op::Softmax, &attrs, &[Some(product.operand())]).unwrap();
        let best: GpuArray<i64> = ctx.run_array(Op::Argmax, &attrs, &[Some(made.operand())]).unwrap();
        let most = soft.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        // Dropped arrays stay until the work that uses them is done.
        drop((a, b, product));
        let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(made.to_vec().unwrap()), bits(soft.clone()));
        assert_eq!(best.to_vec().unwrap(), [most as i64]);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    fn status<T>(result: adead_core::Result<T>) -> Option<Status> {
        result.err().map(|error| error.status())
    }
    for ctx in contexts() {
        let a = ctx.alloc_upload(&values(6), &[2, 3]).unwrap();
        assert_eq!(status(ctx.alloc_upload(&values(6), &[2, 2])), Some(Status::ShapeMismatch));
        assert_eq!(status(a.write(&[1.0; 5])), Some(Status::ShapeMismatch));
        assert_eq!(status(a.read(&mut [1.0; 7])), Some(Status::ShapeMismatch));
        assert_eq!(status(ctx.alloc_zeros::<f32>(&[usize::MAX / 8, 4])), Some(Status::InvalidArgument));
        assert_eq!(status(ctx.alloc_ones::<i64>(&[1 << 45])), Some(Status::OutOfMemory));
        let operands = [Some(a.operand()), Some(a.operand())];
        assert_eq!(status(ctx.run_array::<f32>(Op::Matmul, &Attrs::default(), &operands)), Some(Status::ShapeMismatch));
        assert_eq!(status(ctx.run_array::<i32>(Op::Add, &Attrs::default(), &operands)), Some(Status::DtypeMismatch));
        assert_eq!(a.to_vec().unwrap(), values(6), "nothing was changed");
        assert_eq!(status(a.reshape(&[5])), Some(Status::ShapeMismatch));
    }
}
