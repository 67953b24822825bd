//! Tests of copies from and to the host.

use super::*;
use crate::hal::cpu::CpuDevice;

/// Opens a device whose copies `workers` help with.
pub fn open_with(fake: &Fake, workers: &Arc<CpuDevice>) -> Arc<CudaDevice> {
    let opening = Opening { workers: Some(workers.clone()), ..fake.opening() };
    Arc::new(CudaDevice::open(0, &opening).unwrap())
}

pub fn threads(count: usize) -> Arc<CpuDevice> {
    Arc::new(CpuDevice::open(None, Some(count)).unwrap())
}

fn pattern(bytes: usize, from: usize) -> Vec<u8> {
    (from..from + bytes).map(|i| (i * 7 % 251) as u8).collect()
}

#[test]
fn long_copies_take_few_pieces_of_pinned_memory() {
    for workers in [None, Some(threads(1)), Some(threads(3))] {
        let fake = Fake::new(&[Card::default()]);
        let device = workers.as_ref().map_or_else(|| open(&fake), |workers| open_with(&fake, workers));
        let mut stream = device.clone().stream().unwrap();
        let mut bytes = pattern(48 << 20, 0);
        let buffer = device.allocate_unset(bytes.len()).unwrap();
        stream.write(&*buffer, 0, &bytes).unwrap();
        bytes.fill(0);
        stream.read(&*buffer, 0, &mut bytes).unwrap();
        assert!(bytes == pattern(48 << 20, 0));
        assert!(fake.pinned() <= 32 << 20, "{} bytes", fake.pinned());
        drop((buffer, stream));
        clean(&fake, device);
    }
}

#[test]
fn sizes_around_the_cuts_arrive_whole() {
    let fake = Fake::new(&[Card::default()]);
    let device = open_with(&fake, &threads(3));
    let mut stream = device.clone().stream().unwrap();
    let buffer = device.allocate(40 << 20).unwrap();
    let (low, high) = (512 << 10, 4 << 20);
    for size in [1, low - 1, low, low + 1, 8 * low - 3, 8 * low + 3, 8 * high - 1, 8 * high + 1, 9 * high + 12_345] {
        for offset in [0, 13] {
            stream.write(&*buffer, offset, &pattern(size, offset)).unwrap();
            let mut bytes = vec![0; size];
            stream.read(&*buffer, offset, &mut bytes).unwrap();
            assert!(bytes == pattern(size, offset), "{size} bytes at {offset}");
            let download = stream.download(Slice { buffer: &*buffer, offset, bytes: size }).unwrap();
            // A later write must not change the download.
            stream.write(&*buffer, offset, &vec![0xff; size]).unwrap();
            bytes.fill(0);
            download.take(&mut bytes).unwrap();
            assert!(bytes == pattern(size, offset), "a download of {size} bytes at {offset}");
        }
    }
    drop((buffer, stream));
    clean(&fake, device);
}

#[test]
fn several_threads_copy_at_once_with_the_same_workers() {
    let fake = Fake::new(&[Card::default()]);
    let workers = threads(3);
    let device = open_with(&fake, &workers);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (device, workers) = (&device, &workers);
            scope.spawn(move || {
                for round in 0..3 {
                    let mut stream = device.clone().stream().unwrap();
                    let bytes = pattern((5 << 20) + thread * 1000, thread + round);
                    let buffer = device.allocate_unset(bytes.len()).unwrap();
                    stream.write(&*buffer, 0, &bytes).unwrap();
                    let mut back = vec![0; bytes.len()];
                    stream.read(&*buffer, 0, &mut back).unwrap();
                    assert!(back == bytes);
                    // Dropped with copies in flight, and with workers that end.
                    stream.write(&*buffer, 0, &bytes).unwrap();
                    if thread == 0 {
                        workers.trim();
                    }
                }
            });
        }
    });
    clean(&fake, device);
}

#[test]
fn a_copy_that_fails_in_the_middle() {
    let fake = Fake::new(&[Card::default()]);
    let device = open_with(&fake, &threads(3));
    let mut stream = device.clone().stream().unwrap();
    let (bytes, buffer) = (pattern(20 << 20, 0), device.allocate(20 << 20).unwrap());
    let mut back = vec![0; 20 << 20];
    for (function, after) in [("copy_to_device", 3), ("event_record", 2), ("event_query", 3), ("host_allocate", 0)] {
        device.trim();
        // Pinned memory is requested twice.
        fake.fail(function, after, 2, 2);
        assert_eq!(status(stream.write(&*buffer, 0, &bytes)), Some(Status::OutOfMemory), "{function}");
        fake.heal();
        stream.write(&*buffer, 0, &bytes).unwrap();
        let function = if function == "copy_to_device" { "copy_to_host" } else { function };
        stream.synchronize().unwrap();
        device.trim();
        fake.fail(function, after, 2, 2);
        assert_eq!(status(stream.read(&*buffer, 0, &mut back)), Some(Status::OutOfMemory), "{function}");
        fake.heal();
        back.fill(0);
        stream.read(&*buffer, 0, &mut back).unwrap();
        assert!(back == bytes, "after {function}");
    }
    drop((buffer, stream));
    clean(&fake, device);
}
