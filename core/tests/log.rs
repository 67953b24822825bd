//! The runtime's messages, received by a logger of the crate `log`. A process has only one logger, so this is one test.

use adead_core::config::Config;
use adead_core::dispatch::calibration;
use adead_core::{Context, ContextOptions, Family, Tensor};
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::sync::Mutex;
use std::{env, fs, process};

/// Stores the messages.
struct Keeper(Mutex<Vec<(Level, String, String)>>);

static KEEPER: Keeper = Keeper(Mutex::new(Vec::new()));

impl Log for Keeper {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let message = (record.level(), record.target().to_string(), record.args().to_string());
        self.0.lock().unwrap().push(message);
    }

    fn flush(&self) {}
}

/// Returns the messages since the last call.
fn told() -> Vec<(Level, String, String)> {
    std::mem::take(&mut *KEEPER.0.lock().unwrap())
}

/// The only message of a level and target. Other messages don't matter.
fn only(all: &[(Level, String, String)], level: Level, target: &str) -> String {
    let found: Vec<_> = all.iter().filter(|message| message.0 == level && message.1 == target).collect();
    assert_eq!(found.len(), 1, "{level} {target}: {all:?}");
    found[0].2.clone()
}

#[test]
fn what_is_told() {
    log::set_logger(&KEEPER).unwrap();
    log::set_max_level(LevelFilter::Trace);
    let folder = env::temp_dir().join(format!("adead-log-{}", process::id()));
    let config = Config { cache_dir: Some(folder.clone()), ..Config::default() };
    let open = || Context::configured(Some("cpu"), &ContextOptions::default(), &config).unwrap();
    let context = open();
    let all = told();
    let opened = only(&all, Level::Info, "adead::devices");
    let info = context.device_info();
    assert!(opened.starts_with(&format!("opened cpu: {}, {}, {} units", info.name, info.arch, info.units)), "{opened}");
    assert!(all.iter().all(|message| message.0 != Level::Warn), "{all:?}");

    // An invalid calibration, then a valid one.
    fs::create_dir_all(&folder).unwrap();
    let machine = calibration::machine(info);
    fs::write(calibration::file(&folder, &machine), "nonsense").unwrap();
    open();
    let ignored = only(&told(), Level::Warn, "adead::dispatch");
    assert!(
        ignored.starts_with("figures of cpu: ") && ignored.ends_with("line 1: key with no value, expected `=`"),
        "{ignored}"
    );
    let path = calibration::store(&folder, &machine, context.dispatcher().profiles()).unwrap();
    let calibrated = open();
    let all = told();
    assert!(all.contains(&(
        Level::Debug,
        "adead::dispatch".into(),
        format!("figures of cpu are those of {}", path.display())
    )));
    assert!(all.iter().all(|message| message.0 != Level::Warn), "{all:?}");
    fs::remove_dir_all(&folder).unwrap();

    calibrated.dispatcher().set_threshold(Family::Matmul, Some(4096));
    assert_eq!(only(&told(), Level::Debug, "adead::dispatch"), "the threshold of matmul is 4096 elements");
    calibrated.dispatcher().set_threshold(Family::Matmul, None);
    assert_eq!(only(&told(), Level::Debug, "adead::dispatch"), "matmul has no threshold");
    calibrated.dispatcher().force(Some("cpu")).unwrap();
    assert_eq!(only(&told(), Level::Debug, "adead::dispatch"), "forced device: cpu");

    // Calls write no messages.
    let x = Tensor::new(&[0.5f32; 64], &[8, 8]).unwrap();
    for _ in 0..3 {
        context.matmul(&x, &x).unwrap();
        context.relu(&x).unwrap();
    }
    assert_eq!(told(), []);

    // A pipeline is compiled once, and the 33rd evicts the first.
    let run = |rows: usize| {
        let x = Tensor::new(&vec![0.5f32; rows * 8], &[rows, 8]).unwrap();
        context.pipeline().matmul(&x, &x.reshape(&[8, rows]).unwrap()).relu().execute().unwrap();
    };
    run(1);
    assert_eq!(only(&told(), Level::Debug, "adead::pipeline"), "compiled 2 operations to 1 steps for cpu");
    run(1);
    assert_eq!(told(), []);
    (2..=32).for_each(run);
    assert!(told().iter().all(|message| message.2.starts_with("compiled")));
    run(33);
    let all = told();
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[1].2, "evicted 1: at most 32 are kept");
}
