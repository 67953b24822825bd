//! Reads of values that a device has not written yet: a caller can interrupt the wait. Values that go from one GPU to another.

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

#[test]
fn values_go_from_gpu_to_gpu_without_the_host() {
    let fake = Fake::new(&[Card::default(), Card::default()]);
    let [first, second] = [0, 1].map(|index| {
        let device: Arc<dyn Device> = Arc::new(CudaDevice::open(index, &fake.opening()).unwrap());
        Opened::with_guards(device, Default::default(), None).unwrap()
    });
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let memory = first.allocate(bytes.len(), false).unwrap();
    first.with(|stream| stream.write(&*memory, 0, &bytes)).unwrap();
    let tensor = Tensor::computed(&Meta::new(DType::F32, Shape::new(&[1000]).unwrap()), first.clone(), memory);
    // A part is brought with all of its origin.
    let part = tensor.reshape(&[10, 100]).unwrap().rows(3, 2).unwrap();
    second.upload_tensor(&part).unwrap();
    second.upload_tensor(&tensor).unwrap();
    assert_eq!((fake.calls("copy_from_peer"), fake.calls("copy_to_host")), (1, 0));
    assert!(tensor.if_on_host().is_none());
    let (copy, mut there) = (tensor.copy_on(&*second).unwrap(), vec![0; bytes.len()]);
    second.with(|stream| stream.read(&*copy, 0, &mut there)).unwrap();
    assert_eq!(there, bytes);
    assert_eq!(part.to_vec::<f32>().unwrap(), values[300..500]);
    // Values that are on the host come from another device too, as long as that works.
    let other = Tensor::new(&values, &[1000]).unwrap();
    first.upload_tensor(&other).unwrap();
    second.upload_tensor(&other).unwrap();
    assert_eq!(fake.calls("copy_from_peer"), 2);
    let other = Tensor::new(&values, &[1000]).unwrap();
    first.upload_tensor(&other).unwrap();
    fake.fail("copy_from_peer", 0, 1, 1);
    second.upload_tensor(&other).unwrap();
    let (copy, mut there) = (other.copy_on(&*second).unwrap(), vec![0; bytes.len()]);
    second.with(|stream| stream.read(&*copy, 0, &mut there)).unwrap();
    assert_eq!((there, fake.calls("copy_from_peer")), (bytes, 3));
    drop((tensor, part, other, copy, first, second));
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[test]
fn values_in_pieces_are_read_whole_and_gathered_once() {
    let fake = Fake::new(&[Card::default(), Card::default()]);
    let gpus = [0, 1].map(|index| {
        let device: Arc<dyn Device> = Arc::new(CudaDevice::open(index, &fake.opening()).unwrap());
        Opened::with_guards(device, Default::default(), None).unwrap()
    });
    // A piece that is read alone, and pieces that are read at once.
    for count in [1000, 1 << 20] {
        let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let meta = Meta::new(DType::F32, Shape::new(&[count]).unwrap());
        let cut = 4 * (count / 4);
        let scattered = || {
            let pieces = [0..cut, cut..4 * count].into_iter().zip(&gpus).map(|(range, gpu)| {
                let memory = gpu.allocate(range.len(), false).unwrap();
                gpu.with(|stream| stream.write(&*memory, 0, &bytes[range.clone()])).unwrap();
                Piece { keeper: gpu.clone() as Arc<dyn Keeper>, memory, bytes: range }
            });
            Tensor::in_pieces(&meta, pieces)
        };
        let used = || gpus.each_ref().map(|gpu| gpu.cache.now().used as usize);
        let tensor = scattered();
        assert_eq!((used(), tensor.places()), ([cut, 4 * count - cut], vec!["cuda:0".into(), "cuda:1".into()]));
        assert_eq!(tensor.rows(1, count - 1).unwrap().to_vec::<f32>().unwrap(), values[1..]);
        assert_eq!(tensor.rows(0, 2).unwrap().to_cpu().unwrap().to_vec::<f32>().unwrap(), values[..2]);
        // Downloads that begin before the read.
        drop(tensor);
        let tensor = scattered();
        tensor.to_cpu().unwrap();
        assert_eq!(tensor.to_vec::<f32>().unwrap(), values);
        // Each part is where it is; all of it comes to a device once.
        drop(tensor);
        let tensor = scattered();
        assert!(tensor.part_on(&*gpus[1], cut + 4..4 * count).is_some_and(|(_, at)| at == 4));
        assert!(tensor.part_on(&*gpus[1], cut - 4..4 * count).is_none() && tensor.copy_on(&*gpus[0]).is_none());
        let copies = fake.calls("copy_from_peer");
        gpus[0].upload_tensor(&tensor).unwrap();
        gpus[0].upload_tensor(&tensor).unwrap();
        assert_eq!((fake.calls("copy_from_peer"), used()), (copies + 1, [4 * count, 4 * count - cut]));
        let (copy, mut there) = (tensor.copy_on(&*gpus[0]).unwrap(), vec![0; 4 * count]);
        gpus[0].with(|stream| stream.read(&*copy, 0, &mut there)).unwrap();
        assert_eq!(there, bytes);
        // A part without values leaves a piece without bytes, which is no beginning of all values.
        let empty = Tensor::new(&values, &[count]).unwrap();
        gpus[0].upload_part(&empty, 0..0).unwrap();
        assert_eq!((empty.pieces().len(), empty.to_vec::<f32>().unwrap() == values), (0, true));
        drop(empty);
        // A device that needs the room: the values are read first, and what is left is not taken for all of them.
        drop((tensor, copy));
        let tensor = scattered();
        gpus[1].cache.shrink(&*gpus[1], 0, u64::MAX).unwrap();
        assert_eq!((tensor.to_vec::<f32>().unwrap(), tensor.pieces().len()), (values, 0));
        drop(tensor);
        assert_eq!(used(), [0, 0]);
    }
    drop(gpus);
    assert_eq!(fake.violations(), Vec::<String>::new());
}

#[test]
fn memory_that_another_device_copies_is_not_used_again_before() {
    let fake = Fake::new(&[Card::default(), Card::default()]);
    let [first, second] = [0, 1].map(|index| {
        let device: Arc<dyn Device> = Arc::new(CudaDevice::open(index, &fake.opening()).unwrap());
        Opened::with_guards(device, Default::default(), None).unwrap()
    });
    let meta = Meta::new(DType::F32, Shape::new(&[1000]).unwrap());
    let memory = first.memory_of_result(meta.bytes()).unwrap();
    let address = memory.device_address();
    first.with(|stream| stream.write(&*memory, 0, &[7; 4000])).unwrap();
    let tensor = Tensor::computed(&meta, first.clone(), memory);
    second.upload_tensor(&tensor).unwrap();
    let copy = tensor.copy_on(&*second).unwrap();
    drop(tensor);
    assert_ne!(first.memory_of_result(meta.bytes()).unwrap().device_address(), address, "the copy is under way");
    let mut there = vec![0; 4000];
    second.with(|stream| stream.read(&*copy, 0, &mut there)).unwrap();
    assert_eq!(there, [7; 4000]);
    let [one, other] = [(); 2].map(|()| first.memory_of_result(meta.bytes()).unwrap());
    assert!([&one, &other].iter().any(|memory| memory.device_address() == address), "it is used again");
    drop((one, other, copy, first, second));
    assert_eq!(fake.violations(), Vec::<String>::new());
}
