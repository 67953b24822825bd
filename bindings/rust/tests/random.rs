//! Random tensors: the numbers of `docs/contract.md`, which every language draws (`tests/random/draws.txt`).

use adead::{Context, Random, Status, Tensor};

/// Returns the values of a tensor of numbers, as the file writes them.
fn hex(tensor: &Tensor) -> String {
    let size = tensor.dtype().size();
    let bytes = tensor.bytes();
    bytes
        .chunks(size)
        .map(|value| value.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn draws_are_those_of_every_language() {
    let context = Context::open("cpu").unwrap();
    let mut random = Random::new(7);
    for line in include_str!("../../../tests/random/draws.txt").lines().filter(|line| !line.starts_with('#')) {
        let (call, expected) = line.split_once(": ").unwrap();
        let drawn = match call {
            "uniform 0 1, 2×3" => random.uniform(&context, 0.0, 1.0, &[2, 3]),
            "uniform -2.5 4, 5" => random.uniform(&context, -2.5, 4.0, &[5]),
            "standard normal, 2×2" => random.standard_normal(&context, &[2, 2]),
            "normal 3 0.5, 4" => random.normal(&context, 3.0, 0.5, &[4]),
            "integers -10 to 90, 6" => random.integers(-10, 100, &[6]),
            "permutation of 8" => random.permutation(8),
            other => panic!("{other}"),
        };
        assert_eq!(hex(&drawn.unwrap()), expected, "{call}");
    }
    assert_eq!(random, Random::after(7, 6));
}

#[test]
fn a_draw_that_fails_does_not_count() {
    let context = Context::open("cpu").unwrap();
    let mut random = Random::new(1);
    let failures = [
        random.units(&[usize::MAX, 2]).unwrap_err(),
        random.normal(&context, 0.0, -1.0, &[1]).unwrap_err(),
        random.normal(&context, 0.0, f32::NAN, &[1]).unwrap_err(),
        random.integers(0, 0, &[1]).unwrap_err(),
        random.integers(i64::MAX, 2, &[1]).unwrap_err(),
        random.integers(0, (1 << 32) + 1, &[1]).unwrap_err(),
        random.permutation(usize::MAX).unwrap_err(),
    ];
    assert!(failures.iter().all(|error| error.status() == Status::InvalidArgument), "{failures:?}");
    assert_eq!(random.draws(), 0);
    assert_eq!(random.integers(i64::MIN, 1, &[2]).unwrap().as_slice::<i64>().unwrap(), [i64::MIN; 2]);
    assert_eq!(random.units(&[0, 4]).unwrap().dims(), [0, 4]);
}
