//! Tests of the copies that tensors keep on devices. They run on a fake CUDA driver in host memory, which computes
//! nothing and has little memory.

use super::*;
use crate::command::Command;
use crate::devices::Opened;
use crate::error::{Result, Status};
use crate::hal::Slice;
use crate::hal::cuda::CudaDevice;
use crate::hal::cuda::fake::{Card, Fake};
use crate::operand::ViewMut;
use crate::ops::Op;
use crate::profile::Reason;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const MB: usize = 1 << 20;
const ID: &str = "cuda:0";

/// Opens a fake device with this much memory.
fn card(memory: usize) -> (Fake, Arc<CudaDevice>, Arc<Opened>) {
    let fake = Fake::new(&[Card { memory, ..Card::default() }]);
    let device = Arc::new(CudaDevice::open(0, &fake.opening()).unwrap());
    let opened = Opened::new(device.clone(), Default::default()).unwrap();
    (fake, device, opened)
}

/// Checks that all memory was freed, and that no call broke the driver's rules.
fn clean(fake: &Fake, device: Arc<CudaDevice>, opened: Arc<Opened>) {
    let now = opened.cache.now();
    assert_eq!((now.tensors, now.used), (0, 0));
    drop(opened);
    assert_eq!(device.live(), 0, "memory that is still in use");
    drop(device);
    assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0));
}

fn values(seed: usize, bytes: usize) -> Vec<i32> {
    (0..bytes / 4).map(|i| (seed * 1_000_003 + i * 31) as i32).collect()
}

fn tensor(seed: usize, bytes: usize) -> Tensor {
    Tensor::new(&values(seed, bytes), &[bytes / 4]).unwrap()
}

/// Makes a tensor whose values are only on the card.
fn far(opened: &Arc<Opened>, seed: usize, bytes: usize) -> Result<Tensor> {
    let source = tensor(seed, bytes);
    let memory = opened.allocate(bytes, false)?;
    opened.with(|stream| stream.write(&*memory, 0, source.bytes()))?;
    Ok(Tensor::computed(&source.0.meta, opened.clone(), memory))
}

fn status<T>(result: Result<T>) -> Option<Status> {
    result.err().map(|error| error.status())
}

#[test]
fn who_stays_on_the_host_has_no_copies() {
    let (fake, device, opened) = card(64 * MB);
    let (near, away) = (tensor(1, 4096), far(&opened, 2, 4096).unwrap());
    opened.upload_tensor(&near.reshape(&[32, 32]).unwrap()).unwrap();
    assert_eq!((near.places(), away.places()), (vec!["cpu".to_string(), ID.into()], vec![ID.into()]));
    assert_eq!(opened.cache.now().tensors, 2);
    // Any part of a tensor can ask for it, more than once.
    near.rows(5, 3).unwrap().stay_on_host().unwrap();
    away.reshape(&[1024, 1]).unwrap().stay_on_host().unwrap();
    for tensor in [&near, &away] {
        tensor.stay_on_host().unwrap();
        opened.upload_tensor(tensor).unwrap();
        assert_eq!((tensor.places(), tensor.is_on("cpu"), tensor.is_on(ID)), (vec!["cpu".into()], true, false));
        tensor.to_cpu().unwrap();
    }
    assert_eq!(near.as_slice::<i32>().unwrap(), values(1, 4096));
    assert_eq!(away.as_slice::<i32>().unwrap(), values(2, 4096));
    // A write to the tensor's memory must be visible through its parts.
    let view = away.host().unwrap().cast::<i32>();
    // SAFETY: the element is inside the memory, and nothing else reads it during the write.
    unsafe { view.as_ptr().add(3).write(-7) };
    assert_eq!(away.rows(3, 1).unwrap().as_slice::<i32>().unwrap(), [-7]);
    drop((near, away));
    clean(&fake, device, opened);
}

#[test]
fn where_memory_ends_others_leave() {
    let (fake, device, opened) = card(64 * MB);
    opened.cache.set_budget(&*opened, u64::MAX).unwrap();
    // Three times as much as fits: half of it has its values in host memory too, half has them only on the card.
    let near: Vec<_> = (0..24).map(|seed| tensor(seed, 4 * MB)).collect();
    let mut away = Vec::new();
    for (seed, tensor) in near.iter().enumerate() {
        opened.upload_tensor(tensor).unwrap();
        assert!(tensor.is_on(ID), "the one that needed the room has it");
        away.push(far(&opened, 100 + seed, 4 * MB).unwrap());
    }
    let now = opened.cache.now();
    assert!(now.evictions > 0 && now.used <= 64 * MB as u64, "{now:?}");
    // An operation gets room for its operands and its result. It fails only because this driver has no kernels.
    let wide: Vec<_> = (0..3).map(|_| Tensor::zeros(DType::F32, &[3 * MB]).unwrap()).collect();
    for pair in wide.windows(2) {
        let inputs = [Some(pair[0].view()), Some(pair[1].view())];
        let output = ViewMut::nowhere(&pair[0].0.meta);
        let mut command = Command::new(Op::Add, Default::default(), &inputs, output).unwrap();
        assert_eq!(status(opened.compute(&mut command, Reason::Operands)), Some(Status::Internal));
        assert!(pair[0].is_on(ID) && pair[1].is_on(ID));
    }
    // A tensor larger than the device's memory gives an error, and no values are lost.
    assert_eq!(status(opened.upload_tensor(&tensor(0, 80 * MB))), Some(Status::OutOfMemory));
    assert_eq!(status(far(&opened, 0, 80 * MB)), Some(Status::OutOfMemory));
    for (seed, (near, away)) in near.iter().zip(&away).enumerate() {
        assert!(near.as_slice::<i32>().unwrap() == values(seed, 4 * MB));
        assert!(away.as_slice::<i32>().unwrap() == values(100 + seed, 4 * MB), "{seed}");
    }
    drop((near, away, wide));
    clean(&fake, device, opened);
}

#[test]
fn memory_of_what_is_gone_is_waited_for() {
    let (fake, device, opened) = card(64 * MB);
    // Queued work keeps the memory in use, and the driver makes progress only when it is asked.
    for _ in 0..40 {
        let memory = opened.allocate(8 * MB, false).unwrap();
        opened.with(|stream| stream.clear(Slice { buffer: &*memory, offset: 0, bytes: 8 * MB })).unwrap();
        drop(Tensor::computed(&Meta::new(DType::F32, Shape::new(&[2 * MB]).unwrap()), opened.clone(), memory));
    }
    assert_eq!(opened.cache.now().evictions, 0);
    clean(&fake, device, opened);
}

#[test]
fn showing_where_values_are_moves_nothing() {
    let (fake, device, opened) = card(64 * MB);
    let tensor = far(&opened, 5, 4096).unwrap();
    let part = tensor.rows(3, 9).unwrap();
    let floats = Tensor::computed(&Meta::new(DType::F32, Shape::new(&[2]).unwrap()), opened.clone(), {
        let memory = opened.allocate(8, false).unwrap();
        opened.with(|stream| stream.write(&*memory, 0, &[0; 8])).unwrap();
        memory
    });
    assert_eq!(format!("{tensor:?} {part:?} {floats:?}"), "Tensor(i32[1024]) Tensor(i32[9]) Tensor(f32[2])");
    let _ =
        (tensor.places(), tensor.is_on_host(), tensor.is_on("cpu"), tensor.dims(), tensor.clone().reshape(&[4, 256]));
    assert_eq!((fake.calls("copy_to_host"), tensor.is_on_host()), (0, false));
    // The first call starts the download, the second reads it.
    assert_eq!(part.to_cpu().unwrap().places(), [ID]);
    tensor.to_cpu().unwrap();
    assert_eq!(fake.calls("copy_to_host"), 1);
    assert_eq!(part.as_slice::<i32>().unwrap(), &values(5, 4096)[3..12]);
    assert_eq!((tensor.bytes().len(), fake.calls("copy_to_host")), (4096, 1));
    floats.host_bytes().unwrap();
    assert_eq!(format!("{floats:?}"), "Tensor(f32[2], [0.0, 0.0])");
    drop((tensor, part, floats));
    clean(&fake, device, opened);
}

#[test]
fn an_error_comes_when_values_are_read() {
    let (fake, device, opened) = card(64 * MB);
    let tensor = far(&opened, 6, 4096).unwrap();
    opened.with(|stream| stream.synchronize()).unwrap();
    for start in [false, true] {
        fake.fail("copy_to_host", 0, 1, 2);
        let read = if start { tensor.to_cpu().and_then(|tensor| tensor.to_vec::<i32>()) } else { tensor.to_vec() };
        assert_eq!((status(read), tensor.is_on_host()), (Some(Status::OutOfMemory), false));
    }
    // Eviction fails too, and the tensor keeps its copy.
    fake.fail("copy_to_host", 0, 1, 2);
    assert_eq!(status(opened.cache.set_budget(&*opened, 0)), Some(Status::OutOfMemory));
    fake.fail("copy_to_host", 0, 1, 2);
    assert_eq!((status(tensor.stay_on_host()), tensor.places()), (Some(Status::OutOfMemory), vec![ID.into()]));
    assert_eq!(tensor.to_vec::<i32>().unwrap(), values(6, 4096));
    opened.cache.set_budget(&*opened, 0).unwrap();
    assert_eq!(tensor.places(), ["cpu"]);
    drop(tensor);
    clean(&fake, device, opened);
}

#[test]
fn what_comes_again_and_again_is_listed_once() {
    let (fake, device, opened) = card(64 * MB);
    opened.cache.set_budget(&*opened, 4096).unwrap();
    let pair = [tensor(1, 4096), tensor(2, 4096)];
    for round in 0..1000 {
        opened.upload_tensor(&pair[round % 2]).unwrap();
        assert_eq!(opened.cache.now().tensors, 1);
    }
    assert_eq!(opened.cache.now().evictions, 999);
    assert!(opened.cache.listed() <= 8, "{}", opened.cache.listed());
    drop(pair);
    clean(&fake, device, opened);
}

#[test]
fn threads_drop_bring_and_evict_at_once() {
    let (fake, device, opened) = card(64 * MB);
    let shared: Vec<_> = (0..4).map(|seed| tensor(seed, 4096)).collect();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (opened, shared, ended) = (&opened, &shared, &ended);
        let workers: Vec<_> = (0..3)
            .map(|worker| {
                scope.spawn(move || {
                    for round in 0..150 {
                        let seed = worker * 1000 + round;
                        let away = far(opened, seed, 4096).unwrap();
                        let part = away.rows(10, 5).unwrap();
                        opened.upload_tensor(&shared[round % 4]).unwrap();
                        match round % 4 {
                            0 => assert!(part.as_slice::<i32>().unwrap() == &values(seed, 4096)[10..15]),
                            1 => away.stay_on_host().unwrap(),
                            2 => drop(away.to_cpu().unwrap()),
                            _ => {}
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            for round in 0.. {
                if ended.load(Relaxed) {
                    break;
                }
                opened.cache.set_budget(&**opened, [0, 8192, 1 << 20][round % 3]).unwrap();
                if round % 7 == 0 {
                    opened.cache.trim(&**opened);
                }
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        ended.store(true, Relaxed);
    });
    for (seed, tensor) in shared.iter().enumerate() {
        assert_eq!(tensor.as_slice::<i32>().unwrap(), values(seed, 4096));
    }
    drop(shared);
    clean(&fake, device, opened);
}
