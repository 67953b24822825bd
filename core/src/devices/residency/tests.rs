//! Reads of values that a device has not written yet: a caller can interrupt the wait.

use super::*;
use crate::gpu::Download as UserDownload;
use crate::hal::Device;
use crate::hal::cuda::CudaDevice;
use crate::hal::cuda::api::code::NOT_READY;
use crate::hal::cuda::fake::{Card, Fake};
use crate::interrupt::Interrupt;
use crate::operand::Meta;
use crate::{DType, Shape};

#[test]
fn reading_ends_early_and_what_is_read_later_is_whole() {
    let fake = Fake::new(&[Card::default()]);
    let device: Arc<dyn Device> = Arc::new(CudaDevice::open(0, &fake.opening()).unwrap());
    let opened = Opened::with_guards(device, Default::default(), None).unwrap();
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let memory = opened.allocate(bytes.len(), false).unwrap();
    opened.with(|stream| stream.write(&*memory, 0, &bytes)).unwrap();
    let meta = Meta::new(DType::F32, Shape::new(&[1000]).unwrap());
    let made = || Tensor::computed(&meta, opened.clone(), memory.clone());
    let part = || Slice { buffer: &*memory, offset: 0, bytes: bytes.len() };
    let ended = Interrupt::new();
    ended.set(true);

    // The device makes no progress, as during long work.
    fake.fail("event_query", 0, usize::MAX, NOT_READY);
    // A tensor whose download was not requested before, and one whose download is under way.
    let (tensor, coming) = (made(), made());
    coming.to_cpu().unwrap();
    for tensor in [&tensor, &coming] {
        let error = ended.run(|| tensor.to_vec::<f32>()).unwrap_err();
        assert_eq!(error.status(), Status::NotReady, "{error}");
        assert!(error.message().contains("interrupted"), "{error}");
    }
    let mut downloads = Vec::new();
    for _ in 0..2 {
        downloads.push(UserDownload::of(opened.with(|stream| stream.download(part())).unwrap()));
    }
    let (mut into, last) = (vec![7; bytes.len()], downloads.pop().unwrap());
    assert_eq!(ended.run(|| last.take(&mut into)).unwrap_err().status(), Status::NotReady);
    assert!(into.iter().all(|&byte| byte == 7));
    let first = &downloads[0];
    assert_eq!(ended.run(|| first.bytes().map(<[u8]>::len)).unwrap_err().status(), Status::NotReady);

    fake.heal();
    assert_eq!(ended.run(|| first.bytes().map(<[u8]>::to_vec)).unwrap(), bytes);
    for tensor in [tensor, coming] {
        assert_eq!(ended.run(|| tensor.to_vec::<f32>()).unwrap(), values);
    }
}
