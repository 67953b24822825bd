//! Batches through a device, several at once: order, errors, early ends, memory. The tests run on the CPU and on the
//! GPU that `ADEAD_TEST_BACKEND` names.

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

use adead::gpu::{Buffer, Operand};
use adead::overlap::{Brought, Lanes, MAX_DEPTH, Stage};
use adead::{Attrs, Context, DType, DataLoader, Error, Meta, Op, Result, Shape, Status};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

fn contexts() -> Vec<Context> {
    let mut names = vec!["cpu".to_string()];
    names.extend(backend::named());
    let open = |name: &String| match Context::open(name) {
        Ok(ctx) => Some(ctx),
        Err(error) if error.status() == Status::BackendUnavailable => {
            backend::skip(name, &error);
            None
        }
        Err(error) => panic!("{error}"),
    };
    names.iter().filter_map(open).collect()
}

fn row(n: usize) -> Meta {
    Meta::new(DType::F32, Shape::new(&[n]).unwrap())
}

fn run(stage: &mut Stage<'_>, op: Op, inputs: &[&Buffer], output: &Buffer) -> Result<()> {
    let meta = row(output.size() / 4);
    let operand = |buffer| Operand { buffer, offset: 0, meta: &meta };
    let inputs: Vec<_> = inputs.iter().map(|input| Some(operand(input))).collect();
    stage.run(op, &Attrs::default(), &inputs, operand(output))
}

/// The stage of most tests: it doubles the batch.
fn doubled(stage: &mut Stage<'_>) -> Result<Arc<Buffer>> {
    let x = stage.input();
    let y = stage.buffer(x.size())?;
    run(stage, Op::Add, &[&x, &x], &y)?;
    Ok(y)
}

fn batch(n: usize, elements: usize) -> Vec<f32> {
    (0..elements).map(|i| (n * 1000 + i) as f32).collect()
}

fn twice(n: usize, elements: usize) -> Vec<f32> {
    batch(n, elements).iter().map(|x| x + x).collect()
}

fn allocations(ctx: &Context) -> u64 {
    ctx.memory().unwrap().allocations
}

#[test]
fn results_come_in_order_at_every_depth() {
    for ctx in contexts() {
        let before = allocations(&ctx);
        for depth in 1..=5 {
            for count in [0, 1, 2, 7] {
                let results = adead::overlap(&ctx, (0..count).map(|n| batch(n, 300)), depth, doubled).unwrap();
                let results: Vec<_> = results.map(Result::unwrap).collect();
                assert_eq!(results.len(), count);
                for (n, result) in results.iter().enumerate() {
                    assert_eq!((result.index(), result.to_vec::<f32>().unwrap()), (n, twice(n, 300)), "depth {depth}");
                }
            }
        }
        assert_eq!(allocations(&ctx), before);
    }
}

#[test]
fn results_that_are_kept_keep_their_bytes() {
    for ctx in contexts() {
        let results = adead::overlap(&ctx, (0..30).map(|n| batch(n, 700)), 3, doubled).unwrap();
        // These are more results than stay in the memory of their downloads.
        let kept: Vec<_> = results.map(Result::unwrap).collect();
        let sent = std::thread::spawn(move || {
            for (n, result) in kept.iter().enumerate() {
                assert_eq!((result.index(), result.as_slice::<f32>().unwrap()), (n, &twice(n, 700)[..]));
                assert_eq!(result.len(), 2800);
            }
        });
        sent.join().unwrap();
    }
}

#[test]
fn sizes_may_change_and_be_zero() {
    const SIZES: [usize; 9] = [10, 1000, 10, 0, 0, 100_000, 3, 3, 1];
    for ctx in contexts() {
        let batches = SIZES.into_iter().enumerate().map(|(n, size)| batch(n, size));
        let results = adead::overlap(&ctx, batches, 3, doubled).unwrap();
        for (n, result) in results.enumerate() {
            let result = result.unwrap();
            assert_eq!(result.as_slice::<f32>().unwrap(), twice(n, SIZES[n]));
            assert_eq!(result.len(), 4 * SIZES[n]);
        }
    }
}

#[test]
fn buffers_are_used_again_unless_somebody_keeps_them() {
    for ctx in contexts() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (see, keep) = (seen.clone(), kept.clone());
        let batches = (0..20).map(|n| batch(n, 64));
        let results = adead::overlap(&ctx, batches, 2, move |stage| {
            let y = doubled(stage)?;
            see.lock().unwrap().push((Arc::as_ptr(&stage.input()) as usize, Arc::as_ptr(&y) as usize));
            if stage.index() < 2 {
                keep.lock().unwrap().push(y.clone());
            }
            Ok(y)
        });
        for (n, result) in results.unwrap().enumerate() {
            let result = result.unwrap();
            assert_eq!(result.as_slice::<f32>().unwrap(), twice(n, 64));
        }
        let seen = seen.lock().unwrap();
        let distinct = |mut list: Vec<usize>| {
            list.sort_unstable();
            list.dedup();
            list.len()
        };
        assert_eq!(distinct(seen.iter().map(|pair| pair.0).collect()), 2, "a lane has one buffer for its batches");
        assert_eq!(distinct(seen.iter().map(|pair| pair.1).collect()), 4, "two were kept, so two more were made");
        for (n, kept) in kept.lock().unwrap().iter().enumerate() {
            assert_eq!(kept.to_vec::<f32>().unwrap(), twice(n, 64), "a buffer that is kept stays as it is");
        }
    }
}

#[test]
fn batches_may_share_state() {
    // A running sum that every batch changes, and that is the result itself.
    for ctx in contexts() {
        for depth in [1, 3, 5] {
            let sum = Arc::new(ctx.buffer(&vec![0.0f32; 5000]).unwrap());
            let state = sum.clone();
            let batches = (0..24).map(|n| vec![n as f32; 5000]);
            let results = adead::overlap(&ctx, batches, depth, move |stage| {
                let x = stage.input();
                let next = stage.buffer(x.size())?;
                run(stage, Op::Add, &[&x, &state], &next)?;
                stage.copy((&next, 0), (&state, 0), 20_000)?;
                Ok(state.clone())
            });
            for (n, result) in results.unwrap().enumerate() {
                let expected = (n * (n + 1) / 2) as f32;
                assert!(result.unwrap().as_slice::<f32>().unwrap().iter().all(|&found| found == expected), "batch {n}");
            }
            assert_eq!(sum.to_vec::<f32>().unwrap()[4999], 276.0);
        }
    }
}

#[test]
fn an_error_comes_in_its_place_and_ends_everything() {
    for ctx in contexts() {
        let before = allocations(&ctx);
        for depth in 1..=5 {
            for bad in [0, 3] {
                let (asked, staged) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
                let counts = (asked.clone(), staged.clone());
                let batches = (0..100).map(move |n| {
                    counts.0.fetch_add(1, SeqCst);
                    batch(n, 50)
                });
                let mut results = adead::overlap(&ctx, batches, depth, move |stage| {
                    counts.1.fetch_add(1, SeqCst);
                    if stage.index() == bad {
                        return Err(Error::new(Status::InvalidArgument, "batch is bad"));
                    }
                    doubled(stage)
                })
                .unwrap();
                for n in 0..bad {
                    assert_eq!(results.next().unwrap().unwrap().to_vec::<f32>().unwrap(), twice(n, 50));
                }
                assert_eq!(results.next().unwrap().unwrap_err().message(), "batch is bad");
                assert!(results.next().is_none() && results.next().is_none());
                assert_eq!((asked.load(SeqCst), staged.load(SeqCst)), (bad + 1, bad + 1), "nothing more is started");
            }
        }
        assert_eq!(allocations(&ctx), before);
    }
}

#[test]
fn an_error_that_the_device_finds_is_its_batch_s() {
    const IDS: [[i32; 2]; 4] = [[1, 0], [2, 1], [7, 0], [0, 0]];
    for ctx in contexts() {
        let table = ctx.buffer(&[10.0f32, 11.0, 12.0]).unwrap();
        let results = adead::overlap(&ctx, IDS, 2, move |stage| {
            let meta = |dtype, dims: &[usize]| Ok::<_, Error>(Meta::new(dtype, Shape::new(dims)?));
            let (three, ids, two) = (meta(DType::F32, &[3])?, meta(DType::I32, &[2])?, meta(DType::F32, &[2])?);
            let (x, y) = (stage.input(), stage.buffer(8)?);
            let inputs = [
                Some(Operand { buffer: &table, offset: 0, meta: &three }),
                Some(Operand { buffer: &x, offset: 0, meta: &ids }),
            ];
            stage.run(Op::Embedding, &Attrs::default(), &inputs, Operand { buffer: &y, offset: 0, meta: &two })?;
            Ok(y)
        });
        let mut results = results.unwrap();
        assert_eq!(results.next().unwrap().unwrap().as_slice::<f32>().unwrap(), [11.0, 10.0]);
        assert_eq!(results.next().unwrap().unwrap().as_slice::<f32>().unwrap(), [12.0, 11.0]);
        let error = results.next().unwrap().unwrap_err();
        assert_eq!(error.message(), "embedding: id 7 at position 0 is outside the table's 3 rows");
        assert!(results.next().is_none());
    }
}

#[test]
fn panics_are_errors() {
    for ctx in contexts() {
        let before = allocations(&ctx);
        let batches = (0..9).map(|n| if n < 2 { batch(n, 8) } else { panic!("no batch {n}") });
        let mut results = adead::overlap(&ctx, batches, 3, doubled).unwrap();
        assert!(results.by_ref().take(2).all(|result| result.is_ok()));
        let error = results.next().unwrap().unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::Internal, "overlap panicked: no batch 2"));
        assert!(results.next().is_none());

        let work = |stage: &mut Stage<'_>| if stage.index() == 0 { panic!("no work") } else { doubled(stage) };
        let mut results = adead::overlap(&ctx, [batch(0, 8)], 3, work).unwrap();
        assert_eq!(results.next().unwrap().unwrap_err().message(), "overlap panicked: no work");
        assert_eq!(allocations(&ctx), before);
    }
}

/// Counts its live instances.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Counted {
        count.fetch_add(1, SeqCst);
        Counted(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn an_early_drop_leaves_nothing() {
    for ctx in contexts() {
        let before = allocations(&ctx);
        for depth in 1..=5 {
            for taken in [0, 1, 4] {
                let threads = Arc::new(AtomicUsize::new(0));
                let counted = (Counted::new(&threads), Counted::new(&threads));
                let batches = (0..).map(move |n| {
                    let _inside = &counted.0;
                    batch(n, 2000)
                });
                let mut results = adead::overlap(&ctx, batches, depth, move |stage| {
                    let _inside = &counted.1;
                    doubled(stage)
                })
                .unwrap();
                for n in 0..taken {
                    assert_eq!(results.next().unwrap().unwrap().to_vec::<f32>().unwrap(), twice(n, 2000));
                }
                drop(results);
                assert_eq!(threads.load(SeqCst), 0, "the thread is gone with what it had");
                assert_eq!(allocations(&ctx), before);
            }
        }
    }
}

#[test]
fn no_more_batches_are_asked_for_than_there_are_lanes() {
    for ctx in contexts() {
        for depth in [1, 2, 4] {
            let (asked, taken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let (ask, most) = (asked.clone(), Arc::new(AtomicUsize::new(0)));
            let (seen, done) = (most.clone(), taken.clone());
            let batches = (0..40).map(move |n| {
                // A result is counted after it was taken, so one more may be in flight.
                let under_way = ask.fetch_add(1, SeqCst) + 1 - done.load(SeqCst);
                seen.fetch_max(under_way, SeqCst);
                batch(n, 16)
            });
            for result in adead::overlap(&ctx, batches, depth, doubled).unwrap() {
                result.unwrap();
                taken.fetch_add(1, SeqCst);
            }
            assert_eq!((asked.load(SeqCst), taken.load(SeqCst)), (40, 40));
            assert!(most.load(SeqCst) <= depth + 1, "{} under way at depth {depth}", most.load(SeqCst));
        }
    }
}

#[test]
fn a_loader_feeds_it_and_its_error_comes_through() {
    for ctx in contexts() {
        let producer =
            (0..9).map(|n| if n < 5 { Ok(batch(n, 100)) } else { Err(std::io::Error::other("end of tape")) });
        let loader = DataLoader::new(producer, 2).unwrap();
        let mut results = adead::overlap(&ctx, loader, 2, doubled).unwrap();
        for n in 0..5 {
            assert_eq!(results.next().unwrap().unwrap().to_vec::<f32>().unwrap(), twice(n, 100));
        }
        let error = results.next().unwrap().unwrap_err();
        assert_eq!((error.status(), error.message()), (Status::Io, "end of tape"));
        assert!(results.next().is_none());
    }
}

#[test]
fn parts_of_buffers_and_nothing_come_back() {
    use adead::overlap::Part;
    for ctx in contexts() {
        let batches = (0..6).map(|n| batch(n, 10));
        let part = |stage: &mut Stage<'_>| Ok(Part::new(doubled(stage)?, 8, 12));
        for (n, result) in adead::overlap(&ctx, batches, 2, part).unwrap().enumerate() {
            assert_eq!(result.unwrap().as_slice::<f32>().unwrap(), &twice(n, 10)[2..5]);
        }
        let nothing = |stage: &mut Stage<'_>| doubled(stage).map(drop);
        let results = adead::overlap(&ctx, (0..6).map(|n| batch(n, 10)), 2, nothing).unwrap();
        assert_eq!(results.map(|result| result.unwrap().len()).collect::<Vec<_>>(), [0; 6]);
        // Bytes beyond a buffer can't be downloaded.
        let beyond = |stage: &mut Stage<'_>| Ok(Part::new(doubled(stage)?, 8, 40));
        let mut results = adead::overlap(&ctx, [batch(0, 10)], 2, beyond).unwrap();
        assert_eq!(results.next().unwrap().unwrap_err().status(), Status::InvalidArgument);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for ctx in contexts() {
        for depth in [0, MAX_DEPTH + 1, usize::MAX] {
            let error = adead::overlap(&ctx, [batch(0, 1)], depth, doubled).err().unwrap();
            assert_eq!(error.message(), format!("overlap: the depth is {depth}; it must be from 1 to 64"));
        }
        let mut results = adead::overlap(&ctx, [adead::Bytes([1u8, 2, 3])], 1, |stage| Ok(stage.input())).unwrap();
        let result = results.next().unwrap().unwrap();
        assert_eq!(&*result, [1, 2, 3]);
        assert_eq!(result.as_slice::<f32>().unwrap_err().message(), "a result of 3 bytes is not an array of f32s of 4");
    }
}

#[test]
fn work_of_one_device_waits_for_another_s() {
    let contexts = contexts();
    for (a, b) in contexts.iter().zip(contexts.iter().rev()) {
        let (x, y) = (a.buffer(&batch(1, 500)).unwrap(), b.buffer_zeroed(2000).unwrap());
        let mut from = a.stream().unwrap();
        let bytes = from.download(&x, 0, 2000).unwrap();
        let event = from.event().unwrap();
        let after = adead::after(&event, b.stream().unwrap(), move |stream| {
            stream.upload(&y, 0, &bytes.to_bytes()?)?;
            Ok(y)
        });
        let (mut to, y) = after.unwrap().join();
        to.synchronize().unwrap();
        assert_eq!(y.unwrap().to_vec::<f32>().unwrap(), batch(1, 500));
        // The stream comes back even if the work fails.
        let refuse = |_: &mut adead::gpu::Stream| Err::<(), _>(Error::new(Status::Unsupported, "not today"));
        let (to, outcome) = adead::after(&event, to, refuse).unwrap().join();
        assert_eq!(outcome.unwrap_err().message(), "not today");
        let (mut to, outcome) = adead::after::<()>(&event, to, |_| panic!("no")).unwrap().join();
        assert_eq!(outcome.unwrap_err().message(), "the work after an event panicked: no");
        assert!(to.query().unwrap());
    }
}

/// Without a thread: batches start while there is room, results come in order, and no batch starts after an error.
#[test]
fn lanes_of_ones_own() {
    for ctx in contexts() {
        assert_eq!(Lanes::new(&ctx, MAX_DEPTH + 1).err().unwrap().status(), Status::InvalidArgument);
        let mut lanes = Lanes::new(&ctx, 2).unwrap();
        let start = |lanes: &mut Lanes, n: u8| {
            lanes.start(&[n; 4], |stage| match n {
                3 => Err(Error::new(Status::Io, "no more tape")),
                _ => Ok(Brought::Part(stage.input(), 0, 4)),
            })
        };
        let arrives = |lanes: &mut Lanes, n: u8| {
            let arrived = lanes.finish().unwrap().unwrap();
            assert_eq!((arrived.index(), arrived.bytes().unwrap()), (usize::from(n), &[n; 4][..]));
        };
        assert!(lanes.finish().is_none());
        start(&mut lanes, 0).unwrap();
        assert!(lanes.has_room());
        start(&mut lanes, 1).unwrap();
        assert!(!lanes.has_room());
        assert_eq!(start(&mut lanes, 2).unwrap_err().status(), Status::NotReady);
        arrives(&mut lanes, 0);
        start(&mut lanes, 2).unwrap();
        arrives(&mut lanes, 1);
        assert_eq!(start(&mut lanes, 3).unwrap_err().message(), "no more tape");
        assert!(!lanes.has_room());
        assert_eq!(start(&mut lanes, 4).unwrap_err().status(), Status::NotReady);
        arrives(&mut lanes, 2);
        assert!(lanes.finish().is_none() && !lanes.has_room());
    }
}
