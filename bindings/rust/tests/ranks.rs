//! Training with several ranks: the same bits with any number of them, and errors that say which rank is lost.
#![cfg(feature = "train")]

use adead::device::Isa;
use adead::train::ranks::{Nccl, Place, Tcp, Transport};
use adead::train::{Init, Network, Optimizer, Trainer, layers, losses};
use adead::{Context, ContextOptions, DType, Op, Result, Status, Tensor};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

#[path = "../../../core/tests/backend/mod.rs"]
mod backend;

const SHARDS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// The address of a port that is free.
fn address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// The contexts of ranks: other threads and instruction sets, and the GPU under test.
fn contexts() -> Vec<Context> {
    let isas: Vec<Isa> = Isa::available().collect();
    let cpu = |threads: usize, isa: Isa| {
        let options = ContextOptions { threads: Some(threads), isa: Some(isa), precision: None };
        Context::with_options("cpu", &options).unwrap()
    };
    let mut contexts: Vec<Context> = (0..4).map(|i| cpu(1 + i % 3, isas[i % isas.len()])).collect();
    if let Some(backend) = backend::named() {
        match Context::open(&format!("{backend}:0")) {
            Ok(context) => contexts[1] = context,
            Err(error) => backend::skip(&backend, &error),
        }
    }
    contexts
}

/// A network with dropout, for a shard of four rows.
fn trainer(context: &Context, optimizer: Optimizer) -> Trainer {
    cut(context, optimizer, SHARDS, false)
}

/// The same with another number of shards, and with gradients as integers.
fn cut(context: &Context, optimizer: Optimizer, shards: usize, fixed: bool) -> Trainer {
    let record = || -> Result<Trainer> {
        let mut net = Network::new(context, 7).with_fixed_gradients(fixed);
        let x = net.input(DType::F32, &[4, 6])?;
        let target = net.input(DType::I64, &[4])?;
        let h = layers::linear(&mut net, "hidden", x, 33)?;
        let h = net.op(Op::Gelu, &[h])?;
        let h = net.dropout(h, 0.2)?;
        let logits = layers::linear(&mut net, "out", h, 3)?;
        let loss = losses::cross_entropy(&mut net, logits, target)?;
        Trainer::in_shards(net, loss, optimizer, shards)
    };
    record().unwrap()
}

fn optimizer() -> Optimizer {
    Optimizer { clip_norm: Some(1.0), average: Some(0.9), ..Optimizer::adamw(0.02) }
}

/// The shards of a step's batch.
fn batch(step: u64, shards: std::ops::Range<usize>) -> [Tensor; 2] {
    let value = |i: usize| ((i as u64 * 2_654_435_761 + step * 97) % 1009) as f32 / 504.5 - 1.0;
    let x: Vec<f32> = (0..SHARDS * 24).map(value).collect();
    let targets: Vec<i64> = x.chunks(6).map(|row| (row[0] > 0.0) as i64 + (row[1] > 0.3) as i64).collect();
    let (from, rows) = (shards.start * 4, shards.len() * 4);
    let whole = [Tensor::new(&x, &[SHARDS * 4, 6]).unwrap(), Tensor::new(&targets, &[SHARDS * 4]).unwrap()];
    whole.map(|tensor| tensor.rows(from, rows).unwrap())
}

fn step(trainer: &mut Trainer) -> Result<f32> {
    let [x, targets] = batch(trainer.steps(), trainer.own_shards());
    trainer.step(&[&x, &targets])
}

/// The bits of the parameters and their averages.
fn bits(trainer: &Trainer) -> Vec<u32> {
    let all = trainer.parameters().unwrap().into_iter().chain(trainer.averages().unwrap().unwrap_or_default());
    all.flat_map(|(_, tensor)| tensor.to_vec::<f32>().unwrap()).map(f32::to_bits).collect()
}

/// Runs ranks in threads. Returns what each of them gives.
fn ranks<T: Send>(size: usize, run: impl Fn(usize, Box<dyn Transport>) -> T + Sync) -> Vec<T> {
    let (address, run) = (address(), &run);
    thread::scope(|scope| {
        let start = |rank: usize| {
            let place = Place { rank, size, address: address.clone() };
            scope.spawn(move || run(rank, Box::new(Nccl::over(Tcp::connect(&place, PATIENCE).unwrap()))))
        };
        let all: Vec<_> = (0..size).map(start).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn any_number_of_ranks_ends_in_the_same_bits() {
    let contexts = contexts();
    let mut alone = trainer(&contexts[0], optimizer());
    let losses: Vec<f32> = (0..10).map(|_| step(&mut alone).unwrap()).collect();
    for size in [1, 2, 3, 4, 8] {
        let found = ranks(size, |rank, transport| {
            let mut trainer = trainer(&contexts[rank % 4], optimizer());
            trainer.join(transport).unwrap();
            let losses: Vec<f32> = (0..10).map(|_| step(&mut trainer).unwrap()).collect();
            (losses, bits(&trainer))
        });
        for (rank, (own, weights)) in found.iter().enumerate() {
            assert!(*own == losses && *weights == bits(&alone), "rank {rank} of {size}");
        }
    }
}

#[test]
fn fixed_gradients_have_the_same_bits_in_any_number_of_ranks() {
    let contexts = contexts();
    // Also a number of shards that is no power of two.
    for shards in [6, 8] {
        let mut alone = cut(&contexts[0], optimizer(), shards, true);
        let losses: Vec<f32> = (0..10).map(|_| step(&mut alone).unwrap()).collect();
        assert!(losses[9] < losses[0], "{losses:?}");
        for size in [2, 3, 5, 6] {
            let found = ranks(size, |rank, transport| {
                let mut trainer = cut(&contexts[rank % 4], optimizer(), shards, true);
                trainer.join(transport).unwrap();
                let losses: Vec<f32> = (0..10).map(|_| step(&mut trainer).unwrap()).collect();
                (losses, bits(&trainer))
            });
            for (rank, (own, weights)) in found.iter().enumerate() {
                assert!(*own == losses && *weights == bits(&alone), "rank {rank} of {size}, {shards} shards");
            }
        }
    }
    let errors = ranks(2, |rank, transport| {
        let mut trainer = cut(&contexts[rank], optimizer(), SHARDS, rank == 1);
        trainer.join(transport).unwrap_err().message().to_owned()
    });
    assert!(errors.iter().all(|text| text.contains("gradients fixed")), "{errors:?}");
}

/// A network whose gradients are exchanged in three parts.
fn wide(context: &Context, fixed: bool) -> Trainer {
    let mut net = Network::new(context, 7).with_fixed_gradients(fixed);
    let x = net.input(DType::F32, &[4, 6]).unwrap();
    let targets = net.input(DType::I64, &[4]).unwrap();
    let mut y = layers::linear(&mut net, "in", x, 64).unwrap();
    // Tables cost little work for so many parameters.
    for name in ["a", "b", "c"] {
        let table = net.parameter(name, &[1 << 14, 64], &Init::Normal(0.1)).unwrap();
        let row = net.op(Op::Embedding, &[table, targets]).unwrap();
        y = net.op(Op::Add, &[y, row]).unwrap();
        y = net.op(Op::Gelu, &[y]).unwrap();
    }
    let y = layers::linear(&mut net, "out", y, 3).unwrap();
    let loss = losses::cross_entropy(&mut net, y, targets).unwrap();
    Trainer::in_shards(net, loss, Optimizer::sgd(0.5, 0.0), SHARDS).unwrap()
}

#[test]
fn gradients_in_parts_have_the_same_bits() {
    let contexts = contexts();
    for fixed in [false, true] {
        let mut alone = wide(&contexts[0], fixed);
        let losses: Vec<f32> = (0..2).map(|_| step(&mut alone).unwrap()).collect();
        let found = ranks(3, |rank, transport| {
            let mut trainer = wide(&contexts[rank + 1], fixed);
            trainer.join(transport).unwrap();
            let losses: Vec<f32> = (0..2).map(|_| step(&mut trainer).unwrap()).collect();
            (losses, bits(&trainer))
        });
        for (rank, (own, weights)) in found.iter().enumerate() {
            assert!(*own == losses && *weights == bits(&alone), "rank {rank}, fixed: {fixed}");
        }
    }
}

#[test]
fn a_rank_that_leaves_between_two_parts_is_named() {
    let context = Context::open("cpu").unwrap();
    let found = ranks(2, |rank, transport| {
        let mut trainer = wide(&context, false);
        trainer.join(transport).unwrap();
        step(&mut trainer).unwrap();
        let shards = trainer.own_shards();
        let [x, targets] = batch(1, shards);
        trainer.accumulate(&[&x, &targets]).unwrap();
        if rank == 1 {
            return None;
        }
        // The last part's sums are missing, or the other rank has left before it sent all of the others.
        let before = bits(&trainer);
        let error = trainer.apply().unwrap_err();
        assert!(bits(&trainer) == before && trainer.steps() == 1 && trainer.accumulated() == 0);
        let again = step(&mut trainer).unwrap_err().to_string();
        assert!(again.contains("the ranks can't be used any longer: rank 1"), "{again}");
        Some((error.status(), error.to_string()))
    });
    let (status, text) = found[0].as_ref().unwrap();
    assert!(*status == Status::Io && text.contains("rank 1 has left the training"), "{text}");
}

#[test]
fn a_training_goes_on_with_another_number_of_ranks() {
    let contexts = contexts();
    let mut whole = trainer(&contexts[0], optimizer());
    (0..8).for_each(|_| assert!(step(&mut whole).unwrap().is_finite()));
    let name = format!("adead-ranks-{}.safetensors", std::process::id());
    let file = File(std::env::temp_dir().join(name));
    ranks(4, |rank, transport| {
        let mut trainer = trainer(&contexts[rank], optimizer());
        trainer.join(transport).unwrap();
        (0..5).for_each(|_| assert!(step(&mut trainer).unwrap().is_finite()));
        if rank == 0 {
            trainer.save(&file.0).unwrap();
        }
    });
    // Rank 0 alone reads the file; the others take its state.
    let found = ranks(3, |rank, transport| {
        let mut trainer = trainer(&contexts[rank], optimizer());
        if rank == 0 {
            trainer.load(&file.0).unwrap();
        }
        trainer.join(transport).unwrap();
        assert_eq!(trainer.steps(), 5);
        (0..3).for_each(|_| assert!(step(&mut trainer).unwrap().is_finite()));
        bits(&trainer)
    });
    assert!(found.iter().all(|found| *found == bits(&whole)));
}

#[test]
fn ranks_that_train_something_else_are_told() {
    let context = Context::open("cpu").unwrap();
    let found = ranks(2, |rank, transport| {
        let mut trainer = trainer(&context, Optimizer::sgd(0.5 + rank as f64, 0.0));
        trainer.join(transport).unwrap_err()
    });
    for error in found {
        let text = error.to_string();
        assert_eq!(error.status(), Status::InvalidArgument);
        assert!(text.contains("rank 0 has 'Optimizer") && text.contains("rate: 1.5"), "{text}");
    }
    let found = ranks(2, |_, transport| {
        let mut net = Network::new(&context, 7);
        let x = net.input(DType::F32, &[4, 1]).unwrap();
        let y = layers::linear(&mut net, "out", x, 1).unwrap();
        let loss = losses::mse(&mut net, y, x).unwrap();
        let mut trainer = Trainer::new(net, loss, optimizer()).unwrap();
        trainer.join(transport).unwrap_err().to_string()
    });
    assert!(found.iter().all(|text| text.contains("2 ranks for a batch of 1 shards")), "{found:?}");
}

#[test]
fn a_rank_that_leaves_is_named_and_nothing_changes() {
    let context = Context::open("cpu").unwrap();
    let found = ranks(3, |rank, transport| {
        let mut trainer = trainer(&context, optimizer());
        trainer.join(transport).unwrap();
        step(&mut trainer).unwrap();
        if rank == 2 {
            return None;
        }
        let before = bits(&trainer);
        let error = step(&mut trainer).unwrap_err();
        assert!(bits(&trainer) == before && trainer.steps() == 1 && trainer.accumulated() == 0);
        let again = step(&mut trainer).unwrap_err().to_string();
        assert!(again.contains("the ranks can't be used any longer: rank"), "{again}");
        // Alone, it would need all shards: so it is made anew, from its own checkpoint.
        Some((error.status(), error.to_string()))
    });
    for (rank, found) in found.iter().enumerate().take(2) {
        let (status, text) = found.as_ref().unwrap();
        assert_eq!(*status, Status::Io);
        // One of the two may learn of the end from the other, which gives up first.
        assert!(text.contains("has left the training"), "rank {rank}: {text}");
    }
    assert!(found.iter().flatten().any(|(_, text)| text.contains("rank 2 has left the training")), "{found:?}");
}

#[test]
fn ranks_that_do_not_fit_are_refused() {
    let connect = |place: String, patience: u64| {
        Tcp::connect(&place.parse().unwrap(), Duration::from_millis(patience)).err().unwrap()
    };
    // Nobody comes.
    let alone = connect(format!("0/3@{}", address()), 50);
    assert_eq!(alone.status(), Status::Io);
    assert!(alone.to_string().contains("1 of 3 ranks came to 127.0.0.1:"), "{alone}");
    let nobody = connect(format!("1/2@{}", address()), 50).to_string();
    assert!(nobody.contains("rank 1: rank 0 at 127.0.0.1:") && nobody.contains("can't be reached"), "{nobody}");
    // Two that say they are rank 1, and one that counts other ranks.
    for (other, expected) in
        [("1/3", "two processes say that they are rank 1 of 3"), ("2/4", "rank 2 says that there are 4")]
    {
        let at = address();
        let start = |place: &str| {
            let place = format!("{place}@{at}").parse().unwrap();
            thread::spawn(move || Tcp::connect(&place, PATIENCE).err().unwrap().to_string())
        };
        // Nobody waits for the other two: one that comes after rank 0 has given up tries for the whole time.
        let [first, ..] = ["0/3", "1/3", other].map(start);
        let error = first.join().unwrap();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_is_no_rank_is_dropped() {
    let at = address();
    thread::scope(|scope| {
        let first = scope.spawn(|| Tcp::connect(&format!("0/2@{at}").parse().unwrap(), PATIENCE).map(drop));
        let mut scanner = loop {
            if let Ok(stream) = TcpStream::connect(&at) {
                break stream;
            }
        };
        scanner.write_all(b"GET / HTTP/1.1\r\nHost: adead\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = scanner.read_to_end(&mut answer);
        assert!(answer.is_empty());
        Tcp::connect(&format!("1/2@{at}").parse().unwrap(), PATIENCE).unwrap();
        first.join().unwrap().unwrap();
    });
}

#[test]
fn an_exchange_gives_every_rank_its_part() {
    let found = ranks(3, |rank, mut transport| {
        assert_eq!((transport.rank(), transport.size()), (rank, 3));
        let wrong = transport.exchange(&vec![vec![]; 2]).unwrap_err();
        assert_eq!(wrong.status(), Status::InvalidArgument);
        // Parts that fill the sockets' buffers in both directions.
        let parts: Vec<Vec<u8>> = (0..3).map(|to| vec![(10 * rank + to) as u8; 3_000_000 + to]).collect();
        let pieces: Vec<Vec<&[u8]>> = parts.iter().map(|part| part.chunks(1_000_000).collect()).collect();
        transport.exchange(&pieces).unwrap()
    });
    for (to, parts) in found.iter().enumerate() {
        for (from, part) in parts.iter().enumerate() {
            let expected = if from == to { vec![] } else { vec![(10 * from + to) as u8; 3_000_000 + to] };
            assert!(*part == expected, "from {from} to {to}");
        }
    }
}

/// Contexts on two CUDA GPUs, if there are two. `ADEAD_TEST_GPUS` says that there are.
fn two_gpus() -> Option<[Context; 2]> {
    backend::named().filter(|backend| backend == "cuda")?;
    let both = ["cuda:0", "cuda:1"].map(Context::open);
    if let Some(error) = both.iter().find_map(|context| context.as_ref().err()) {
        assert!(std::env::var_os("ADEAD_TEST_GPUS").is_none(), "{error}");
        println!("skipped: {error}");
        return None;
    }
    Some(both.map(Result::unwrap))
}

#[test]
fn gpus_exchange_gradients_through_nccl() {
    let Some([first, second]) = two_gpus() else { return };
    let cpu = Context::open("cpu").unwrap();
    let mut alone = trainer(&cpu, optimizer());
    let losses: Vec<f32> = (0..10).map(|_| step(&mut alone).unwrap()).collect();
    // A rank on a processor, and two ranks on one GPU, exchange over TCP.
    let cases: [(&[&Context], &str); 3] =
        [(&[&first, &second], "NCCL"), (&[&first, &second, &cpu], "TCP"), (&[&second, &second], "TCP")];
    for (contexts, name) in cases {
        let found = ranks(contexts.len(), |rank, transport| {
            let mut trainer = trainer(contexts[rank], optimizer());
            assert_eq!(trainer.transport(), None);
            trainer.join(transport).unwrap();
            let losses: Vec<f32> = (0..10).map(|_| step(&mut trainer).unwrap()).collect();
            (losses, bits(&trainer), trainer.transport().unwrap())
        });
        for (rank, (own, weights, transport)) in found.iter().enumerate() {
            assert!(*own == losses && *weights == bits(&alone), "rank {rank} over {transport}");
            assert!(transport.starts_with(name), "{transport} instead of {name}");
        }
    }
}

#[test]
fn gpus_exchange_parts_through_nccl() {
    let Some(contexts) = two_gpus() else { return };
    let mut alone = wide(&Context::open("cpu").unwrap(), false);
    let losses: Vec<f32> = (0..2).map(|_| step(&mut alone).unwrap()).collect();
    let found = ranks(2, |rank, transport| {
        let mut trainer = wide(&contexts[rank], false);
        trainer.join(transport).unwrap();
        assert!(trainer.transport().unwrap().starts_with("NCCL"));
        let losses: Vec<f32> = (0..2).map(|_| step(&mut trainer).unwrap()).collect();
        (losses, bits(&trainer))
    });
    let expected = (losses, bits(&alone));
    assert!(found.iter().all(|found| *found == expected));
}

#[test]
fn a_gpu_that_leaves_is_named() {
    let Some(contexts) = two_gpus() else { return };
    let found = ranks(2, |rank, transport| {
        let mut trainer = trainer(&contexts[rank], optimizer());
        trainer.join(transport).unwrap();
        let before = (0..if rank == 0 { 3 } else { 2 }).map(|_| step(&mut trainer)).last().unwrap();
        (before.map_err(|error| (error.status(), error.to_string())), trainer.steps())
    });
    let Err((status, text)) = &found[0].0 else { panic!("rank 0 made a step alone") };
    assert!(*status == Status::Io && text.contains("rank 1 has left the training"), "{text}");
    assert_eq!((found[0].1, found[1].1), (2, 2));
}
