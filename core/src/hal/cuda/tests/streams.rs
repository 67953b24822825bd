//! Tests of order, recordings, faults, contexts and the failure of every function.

use super::super::kernels::Function;
use super::*;
use crate::hal::Priority;
use crate::hal::cpu::CpuDevice;

#[test]
fn recordings() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let (buffer, copy) = (upload(&device, &mut *stream, &[1, 10, 100]), device.allocate(12).unwrap());
    let bump = device.kernel(&entry("bump")).unwrap();
    stream.start_recording().unwrap();
    stream.dispatch(&*bump, &[whole(&*buffer)], &bump_by(2, 5), [1, 1, 1]).unwrap();
    stream.copy(whole(&*buffer), whole(&*copy)).unwrap();
    let mut byte = [0];
    let refused = [
        stream.read(&*buffer, 0, &mut byte),
        stream.write(&*buffer, 0, &byte),
        stream.synchronize(),
        stream.event().map(drop),
        stream.timestamp().map(drop),
        stream.start_recording(),
        stream.download(whole(&*buffer)).map(drop),
    ];
    for (i, refused) in refused.into_iter().enumerate() {
        assert_eq!(status(refused), Some(Status::InvalidArgument), "refusal {i}");
    }
    let recording = stream.finish_recording().unwrap();
    assert_eq!(status(stream.finish_recording()), Some(Status::InvalidArgument));
    assert_eq!(words(&mut *stream, &*copy), [0; 3], "recording runs nothing");
    for _ in 0..100 {
        stream.replay(&*recording).unwrap();
    }
    assert_eq!(words(&mut *stream, &*copy), [501, 510, 100]);
    let mut other = device.clone().stream().unwrap();
    other.replay(&*recording).unwrap();
    // The recording keeps its memory and kernel until its work is done.
    drop((recording, bump, buffer));
    assert_eq!(words(&mut *other, &*copy), [506, 515, 100]);
    // A recording that is never finished, and one that the driver rejects.
    other.start_recording().unwrap();
    other.clear(whole(&*copy)).unwrap();
    drop(other);
    fake.fail("capture_end", 0, 1, 901);
    stream.start_recording().unwrap();
    stream.clear(whole(&*copy)).unwrap();
    assert_eq!(status(stream.finish_recording()), Some(Status::Internal));
    drop((stream, copy));
    clean(&fake, device);
}

/// Makes the error of a fault's words.
fn explain(words: [u32; 4]) -> Error {
    Error::new(Status::InvalidArgument, format!("{words:?} is wrong"))
}

#[test]
fn faults_that_kernels_find() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let source = entry("complain");
    let module = UserKernel::new(&device.shared, &KernelSource { workgroup: Some([1, 1, 1]), ..source }).unwrap();
    let mut stream = CudaStream::new(&device.shared, Priority::Normal).unwrap();
    // The kernel's buffer is the four words of the stream.
    let complain = |stream: &mut CudaStream, word: u32| -> Result<()> {
        let words = stream.fault_words(explain)?;
        let parameters = [&words.to_ne_bytes()[..], &word.to_ne_bytes()].concat();
        let entered = stream.shared.enter()?;
        // SAFETY: the function takes a pointer and a word.
        unsafe {
            stream.launch(
                Function { handle: module.function(), waits: false },
                [1, 1, 1],
                [1, 1, 1],
                0,
                &parameters,
                &entered,
            )?
        };
        stream.close_if_full()
    };
    complain(&mut stream, 0).unwrap();
    stream.synchronize().unwrap();
    // The first of several faults is returned, once.
    for word in [0, 7, 8, 0] {
        complain(&mut stream, word).unwrap();
    }
    let error = stream.synchronize().unwrap_err();
    assert_eq!(error.message(), "[7, 1, 2, 3] is wrong");
    stream.synchronize().unwrap();
    // More faults than a batch has commands.
    for i in 0..200 {
        complain(&mut stream, if i == 150 { 150 } else { 0 }).unwrap();
    }
    assert_eq!(stream.synchronize().unwrap_err().message(), "[150, 1, 2, 3] is wrong");
    // Bytes that may result from invalid data are not copied.
    let buffer = device.allocate(4).unwrap();
    complain(&mut stream, 9).unwrap();
    let mut bytes = [0xaa; 4];
    assert_eq!(status(stream.read(&*buffer, 0, &mut bytes)), Some(Status::InvalidArgument));
    assert_eq!(bytes, [0xaa; 4]);
    stream.read(&*buffer, 0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 4]);
    // Each replay finds its own fault, in any stream.
    stream.start_recording().unwrap();
    complain(&mut stream, 0).unwrap();
    complain(&mut stream, 5).unwrap();
    let recording = stream.finish_recording().unwrap();
    stream.synchronize().unwrap();
    let mut other = CudaStream::new(&device.shared, Priority::Normal).unwrap();
    for stream in [&mut stream, &mut other] {
        for _ in 0..2 {
            stream.replay(&*recording).unwrap();
            assert_eq!(stream.synchronize().unwrap_err().message(), "[5, 1, 2, 3] is wrong");
            stream.synchronize().unwrap();
        }
    }
    drop((stream, other, recording, buffer, module));
    clean(&fake, device);
}

#[test]
fn events_order_streams_and_memory_outlives_its_work() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let (mut a, mut b) = (device.clone().stream().unwrap(), device.clone().stream().unwrap());
    let bump = device.kernel(&entry("bump")).unwrap();
    let result = device.allocate(400).unwrap();
    {
        let buffer = upload(&device, &mut *a, &[3; 100]);
        for _ in 0..300 {
            a.dispatch(&*bump, &[whole(&*buffer)], &bump_by(100, 1), [1, 1, 1]).unwrap();
        }
        let event = a.event().unwrap();
        assert!(!event.is_done().unwrap());
        assert_eq!(status(event.wait(0)), Some(Status::NotReady));
        assert!(!a.is_idle().unwrap());
        b.wait(&*event).unwrap();
        b.copy(whole(&*buffer), whole(&*result)).unwrap();
    }
    // Dropped memory isn't reused before its work is done.
    let others: Vec<_> = (0..50).map(|i| upload(&device, &mut *b, &[i; 100])).collect();
    let mut bytes = [0; 400];
    let download = b.download(whole(&*result)).unwrap();
    b.clear(whole(&*result)).unwrap();
    assert!(!download.is_done().unwrap());
    download.take(&mut bytes).unwrap();
    assert_eq!(bytes, *[303u32.to_ne_bytes(); 100].as_flattened());
    assert_eq!(words(&mut *b, &*others[49]), [49; 100]);
    assert!(a.is_idle().unwrap() && b.is_idle().unwrap());
    b.flush().unwrap();
    // A timestamp can't be read before the device reaches it.
    a.clear(whole(&*result)).unwrap();
    let time = a.timestamp().unwrap();
    assert_eq!(status(time.nanoseconds()), Some(Status::NotReady));
    a.synchronize().unwrap();
    assert!(time.nanoseconds().unwrap() > 0);
    // Events and recordings of another opening are refused.
    let second = open(&fake);
    let mut foreign = second.clone().stream().unwrap();
    let event = foreign.event().unwrap();
    assert_eq!(status(a.wait(&*event)), Some(Status::InvalidArgument));
    assert_eq!(status(foreign.clear(whole(&*result))), Some(Status::InvalidArgument));
    assert_eq!(status(foreign.dispatch(&*bump, &[], &[], [1, 1, 1])), Some(Status::InvalidArgument));
    drop((foreign, event, time, others, result, bump, a, b, second));
    clean(&fake, device);
}

#[test]
fn the_current_context_is_whose_it_was() {
    let fake = Fake::new(&[Card::default(), Card::default()]);
    let (first, second) = (open(&fake), Arc::new(CudaDevice::open(1, &fake.opening()).unwrap()));
    let api = &fake.driver().api;
    let current = || {
        let mut context = std::ptr::null_mut();
        // SAFETY: the call writes one handle.
        unsafe { (api.context_current)(&mut context) };
        context
    };
    let entered = second.shared.enter().unwrap();
    let before = current();
    assert!(!before.is_null());
    let (mut a, mut b) = (first.clone().stream().unwrap(), second.clone().stream().unwrap());
    let (x, y) = (upload(&first, &mut *a, &[1, 2]), upload(&second, &mut *b, &[3, 4]));
    assert_eq!((words(&mut *a, &*x), words(&mut *b, &*y)), (vec![1, 2], vec![3, 4]));
    let pushes = fake.calls("context_push");
    b.clear(whole(&*y)).unwrap();
    assert_eq!((fake.calls("context_push"), current()), (pushes, before), "its own context was there");
    assert_eq!(status(a.copy(whole(&*y), whole(&*x))), Some(Status::InvalidArgument));
    drop((x, y, a, b, entered));
    assert!(current().is_null());
    // Several threads, none with a current context.
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (first, second) = (&first, &second);
            scope.spawn(move || {
                for device in [first, second].repeat(5) {
                    let mut stream = device.clone().stream().unwrap();
                    let buffer = upload(device, &mut *stream, &[i; 1000]);
                    assert_eq!(words(&mut *stream, &*buffer), [i; 1000]);
                }
            });
        }
    });
    drop(second);
    clean(&fake, first);
}

#[test]
fn a_device_copies_from_another_ones_memory() {
    let fake = Fake::new(&[Card::default(), Card::default()]);
    let (first, second) = (open(&fake), Arc::new(CudaDevice::open(1, &fake.opening()).unwrap()));
    let (mut a, mut b) = (first.clone().stream().unwrap(), second.clone().stream().unwrap());
    let (x, y) = (upload(&first, &mut *a, &[1, 2, 3]), second.allocate(12).unwrap());
    assert_eq!([first.reaches(&*y), first.reaches(&*x), second.reaches(&*x)], [true, false, true]);
    // The copy waits for what the other stream was given before.
    let after = a.event().unwrap();
    b.copy_from(whole(&*x), &*after, whole(&*y)).unwrap();
    // The stream keeps the source until the copy is done, and the way is opened once.
    drop((x, after));
    assert_eq!(words(&mut *b, &*y), [1, 2, 3]);
    let part = |buffer| Slice { buffer, offset: 4, bytes: 8 };
    let x = upload(&first, &mut *a, &[7, 8, 9]);
    let after = a.event().unwrap();
    b.copy_from(part(&*x), &*after, part(&*y)).unwrap();
    assert_eq!(words(&mut *b, &*y), [1, 8, 9]);
    assert_eq!((fake.calls("copy_from_peer"), fake.calls("context_peer")), (2, 1));
    // Memory or an event of the same device, lengths that differ, a part beyond the end, a recording.
    let own = b.event().unwrap();
    let wrong = [
        b.copy_from(whole(&*y), &*after, whole(&*y)),
        b.copy_from(whole(&*x), &*own, whole(&*y)),
        b.copy_from(part(&*x), &*after, whole(&*y)),
        b.copy_from(Slice { buffer: &*x, offset: 8, bytes: 8 }, &*after, part(&*y)),
        b.copy_from(whole(&*x), &*after, whole(&*x)),
    ];
    wrong.into_iter().for_each(|result| assert_eq!(status(result), Some(Status::InvalidArgument)));
    b.start_recording().unwrap();
    assert_eq!(status(b.copy_from(whole(&*x), &*after, whole(&*y))), Some(Status::InvalidArgument));
    b.finish_recording().unwrap();
    assert_eq!((words(&mut *b, &*y), fake.calls("copy_from_peer")), (vec![1, 8, 9], 2));
    fake.fail("copy_from_peer", 0, 1, 1);
    assert!(b.copy_from(whole(&*x), &*after, whole(&*y)).is_err());
    drop((x, y, after, own, a, b, second));
    clean(&fake, first);
}

#[test]
fn intermediate_memory_is_used_again_by_the_next_command() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = CudaStream::new(&device.shared, Priority::Normal).unwrap();
    let x = device.allocate(1 << 20).unwrap();
    let command = |stream: &mut CudaStream, sizes: &[u64]| {
        stream.scratch.next();
        let taken: Vec<u64> = sizes.iter().map(|&bytes| stream.scratch(bytes).unwrap()).collect();
        stream.clear(whole(&*x)).unwrap();
        taken
    };
    let first = command(&mut stream, &[1000, 1000, 100_000]);
    assert!(first[0] != first[1]);
    let mut second = command(&mut stream, &[1000, 1000, 90_000]);
    second[..2].sort();
    let mut sorted = first.clone();
    sorted[..2].sort();
    assert_eq!(second, sorted);
    // Much larger memory is left, and a recording has its own.
    assert!(!first.contains(&command(&mut stream, &[10, 10, 10])[2]));
    stream.start_recording().unwrap();
    let recorded = command(&mut stream, &[90_000, 1000]);
    assert!(!recorded.iter().any(|memory| first.contains(memory)));
    let mut again = command(&mut stream, &[1000, 80_000]);
    again.reverse();
    assert_eq!(again, recorded);
    let recording = stream.finish_recording().unwrap();
    assert!(!command(&mut stream, &[90_000, 1000]).iter().any(|memory| recorded.contains(memory)));
    drop(recording);
    // What no work uses is the driver's or another stream's again.
    stream.synchronize().unwrap();
    let used = device.memory().used;
    for _ in 0..2 {
        command(&mut stream, &[5000, 5000]);
        assert!(device.memory().used > used);
    }
    stream.synchronize().unwrap();
    assert_eq!(device.memory().used, used);
    drop((stream, x));
    clean(&fake, device);
}

#[test]
fn what_one_call_asks_of_the_driver() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let bump = device.kernel(&entry("bump")).unwrap();
    let buffer = upload(&device, &mut *stream, &[0; 16]);
    let run = |stream: &mut dyn Stream| {
        stream.dispatch(&*bump, &[whole(&*buffer)], &bump_by(16, 1), [1, 1, 1]).unwrap();
    };
    stream.synchronize().unwrap();
    // The context is pushed and popped once per call, and nothing else is called, not even by a flush.
    let before = fake.all_calls();
    (0..50).for_each(|_| run(&mut *stream));
    stream.flush().unwrap();
    assert_eq!((fake.all_calls() - before, fake.calls("event_record")), (4 * 50, 0));
    // If the context is current, not even that.
    let entered = device.shared.enter().unwrap();
    let before = fake.all_calls();
    run(&mut *stream);
    assert_eq!(fake.all_calls() - before, 2);
    drop(entered);
    // A wait for the whole stream needs no event; a point needs one.
    stream.synchronize().unwrap();
    assert_eq!(fake.calls("event_record"), 0);
    assert!(stream.is_idle().unwrap());
    run(&mut *stream);
    let event = stream.event().unwrap();
    assert_eq!((fake.calls("event_record"), event.is_done().unwrap()), (1, false));
    // Once the stream has finished, earlier events are done without a call.
    stream.synchronize().unwrap();
    let before = fake.all_calls();
    event.wait(0).unwrap();
    assert!(event.is_done().unwrap() && stream.is_idle().unwrap() && stream.event().unwrap().is_done().unwrap());
    assert_eq!(fake.all_calls(), before);
    // A replay is one call of the driver.
    stream.start_recording().unwrap();
    (0..5).for_each(|_| run(&mut *stream));
    let recording = stream.finish_recording().unwrap();
    let before = fake.all_calls();
    (0..10).for_each(|_| stream.replay(&*recording).unwrap());
    assert_eq!((fake.all_calls() - before, fake.calls("graph_launch")), (4 * 10, 10));
    assert_eq!(words(&mut *stream, &*buffer), [50 + 1 + 1 + 50; 16]);
    drop((event, recording, bump, buffer, stream));
    clean(&fake, device);
}

#[test]
fn a_driver_that_collects_work_is_asked() {
    for collects in [false, true] {
        let fake = Fake::of(&[Card::default()], |_| {}, collects);
        let device = open(&fake);
        let mut stream = device.clone().stream().unwrap();
        let buffer = upload(&device, &mut *stream, &[5; 16]);
        stream.flush().unwrap();
        assert_eq!(fake.calls("stream_query"), usize::from(collects));
        assert_eq!(words(&mut *stream, &*buffer), [5; 16]);
        // With nothing enqueued, no driver call is needed.
        let calls = fake.all_calls();
        stream.flush().unwrap();
        assert_eq!(fake.all_calls(), calls);
        drop((buffer, stream));
        clean(&fake, device);
    }
}

#[test]
fn long_waits_sleep() {
    const NOT_READY: i32 = 600;
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let mut stream = device.clone().stream().unwrap();
    let buffer = device.allocate(1 << 16).unwrap();
    for round in 0..3 {
        // The stream never reports that it is done, so the wait sleeps on an event.
        fake.fail("stream_query", 0, usize::MAX, NOT_READY);
        let sleeps = fake.calls("event_synchronize");
        stream.write(&*buffer, 0, &[round; 1000]).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(fake.calls("event_synchronize"), sleeps + 1);
        assert_eq!(device.live(), 1, "what the work used went back");
        // Reads wait in the same way.
        let mut bytes = [0; 1000];
        stream.read(&*buffer, 0, &mut bytes).unwrap();
        assert_eq!(bytes, [round; 1000]);
        // If the sleep fails too, the work stays and can be waited for again.
        fake.fail("event_synchronize", 0, 1, 1);
        stream.clear(whole(&*buffer)).unwrap();
        assert_eq!(status(stream.synchronize()), Some(Status::Internal));
        fake.heal();
        stream.synchronize().unwrap();
        assert_eq!(words(&mut *stream, &*buffer), vec![0; 1 << 14]);
    }
    // A wait for an event that takes long sleeps as well.
    fake.fail("event_query", 0, usize::MAX, NOT_READY);
    stream.clear(whole(&*buffer)).unwrap();
    let event = stream.event().unwrap();
    let sleeps = fake.calls("event_synchronize");
    event.wait(u64::MAX).unwrap();
    assert_eq!((fake.calls("event_synchronize"), event.is_done().unwrap()), (sleeps + 1, true));
    fake.heal();
    drop((event, buffer, stream));
    clean(&fake, device);
}

/// Uses something of every function.
fn everything(fake: &Fake, workers: &Arc<CpuDevice>) -> Result<()> {
    let opening = Opening { workers: Some(workers.clone()), ..fake.opening() };
    let device = Arc::new(CudaDevice::open(0, &opening)?);
    let (mut a, mut b) = (device.clone().stream()?, device.clone().stream()?);
    let (x, y) = (device.allocate(4096)?, device.allocate_unset(9 << 20)?);
    let bump = device.kernel(&entry("bump"))?;
    a.write(&*x, 0, &[1; 4096])?;
    a.write(&*y, 0, &vec![2; 9 << 20])?;
    a.dispatch(&*bump, &[whole(&*x)], &bump_by(10, 1), [1, 1, 1])?;
    let event = a.event()?;
    b.wait(&*event)?;
    let begin = b.timestamp()?;
    let download = b.download(whole(&*x))?;
    b.start_recording()?;
    b.copy(whole(&*x), Slice { bytes: 4096, ..whole(&*y) })?;
    b.dispatch(&*bump, &[whole(&*x)], &bump_by(10, 1), [1, 1, 1])?;
    let recording = b.finish_recording()?;
    b.replay(&*recording)?;
    b.clear(whole(&*x))?;
    let mut bytes = vec![0; 9 << 20];
    b.read(&*y, 0, &mut bytes)?;
    assert_eq!((bytes[0], bytes[4], bytes[40], bytes[4096]), (2, 2, 1, 2));
    download.take(&mut bytes[..4096])?;
    assert_eq!((bytes[0], bytes[40]), (2, 1));
    assert!(begin.nanoseconds()? > 0);
    a.synchronize()?;
    b.flush()?;
    b.synchronize()?;
    event.wait(1)?;
    device.trim();
    Ok(())
}

#[test]
fn every_function_may_fail_at_any_time() {
    let (fake, workers) = (Fake::new(&[Card::default()]), transfers::threads(2));
    everything(&fake, &workers).unwrap();
    assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0));
    let mut failed = 0;
    for function in [
        "device_count",
        "device_get",
        "device_memory",
        "context_retain",
        "context_current",
        "memory_allocate",
        "host_allocate",
        "copy_to_device",
        "copy_to_host",
        "copy_on_device",
        "set_words",
        "stream_create",
        "stream_synchronize",
        "stream_query",
        "stream_wait",
        "capture_begin",
        "capture_end",
        "event_create",
        "event_record",
        "event_query",
        "event_synchronize",
        "event_elapsed",
        "module_load",
        "module_function",
        "function_attribute",
        "launch",
        "graph_instantiate",
        "graph_launch",
    ] {
        let before = fake.calls(function);
        everything(&fake, &workers).unwrap();
        let calls = fake.calls(function) - before;
        for after in (0..calls).step_by(1 + calls / 12) {
            for result in [1, 2, 719, 999] {
                fake.fail(function, after, 1, result);
                let outcome = everything(&fake, &workers);
                fake.heal();
                failed += usize::from(outcome.is_err());
                let lost = outcome.is_err_and(|error| error.status() == Status::DeviceLost);
                let context = function.starts_with("context") || function.starts_with("device");
                assert!(lost || result != 719 || context, "{function} after {after} calls");
                let what = format!("{function} after {after} calls gives {result}");
                assert_eq!((fake.violations(), fake.live()), (Vec::new(), 0), "{what}");
                everything(&fake, &workers).unwrap_or_else(|error| panic!("{what}, and then {error}"));
            }
        }
    }
    assert!(failed > 200, "{failed}");
}

#[test]
fn streams_have_the_priority_asked_for() {
    let fake = Fake::new(&[Card::default()]);
    let device = open(&fake);
    let before = fake.priorities().len();
    let _normal = device.clone().stream().unwrap();
    let _high = device.clone().stream_with(Priority::High).unwrap();
    // The driver's numbers: lower is earlier and 0 the last. A number out of range becomes the nearest one.
    assert!(matches!(fake.priorities()[before..], [0, i32::MIN..=-5]), "{:?}", fake.priorities());
}
