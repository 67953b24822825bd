//! Every conformance case, for every instruction set of the machine and several thread counts.

use adead::device::Isa;
use adead::{Context, ContextOptions};
use adead_conformance::{cases, run_all};

fn check(isa: Isa, threads: usize) {
    let ctx = Context::with_options("cpu", &ContextOptions { isa: Some(isa), threads: Some(threads), precision: None })
        .unwrap();
    let summary = run_all(&ctx, |id, text| println!("FAIL {id}: {text}")).unwrap();
    println!("{} with {threads} threads: {summary}", isa.name());
    assert!(summary.ran >= 600, "{summary}");
    assert_eq!(summary.failed, 0, "{} with {threads} threads: {summary}", isa.name());
}

#[test]
fn ids_are_unique_and_begin_with_their_file() {
    let all = cases().unwrap();
    let mut ids: Vec<_> = all.iter().map(|case| case.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len());
}

#[test]
fn every_isa_and_thread_count_gives_the_expected_bits() {
    for isa in Isa::available() {
        // The portable form emulates every multiply-add in scalar code, so one thread count is enough to show its bits.
        let counts: &[usize] = if isa == Isa::Portable { &[2] } else { &[1, 2, 3, 7] };
        for &threads in counts {
            check(isa, threads);
        }
    }
}
