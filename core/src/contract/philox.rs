//! Philox4x32-10: random numbers that are a function of a key and a counter. Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
//! as easy as 1, 2, 3", 2011.

/// The multipliers, and what a round adds to the key.
const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const KEY_STEPS: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// Returns the four words of a counter under a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [a, b, c, d] = counter;
        let (first, second) = (u64::from(MULTIPLIERS[0]) * u64::from(a), u64::from(MULTIPLIERS[1]) * u64::from(c));
        counter = [(second >> 32) as u32 ^ b ^ key[0], second as u32, (first >> 32) as u32 ^ d ^ key[1], first as u32];
        key = [key[0].wrapping_add(KEY_STEPS[0]), key[1].wrapping_add(KEY_STEPS[1])];
    }
    counter
}

/// Returns the number in [0, 1), a multiple of 2⁻²⁴, at a position of a sequence: the first word of the counter
/// (position, the sequence's low and high word, 0) under the key (the seed's low and high word).
pub fn uniform(seed: u64, sequence: u64, position: u32) -> f32 {
    let words = |number: u64| [number as u32, (number >> 32) as u32];
    let [low, high] = words(sequence);
    let [word, ..] = philox([position, low, high, 0], words(seed));
    // 24 bits are exact in f32.
    (word >> 8) as f32 * (1.0 / (1 << 24) as f32)
}

/// Returns the words of a stream: word i is word i mod 4 of the counter (i / 4, `stream`) under the seed. There are 2³⁴ of them.
pub fn words(seed: u64, stream: [u32; 3]) -> impl Iterator<Item = u32> {
    let key = [seed as u32, (seed >> 32) as u32];
    let [a, b, c] = stream;
    (0..=u32::MAX).flat_map(move |block| philox([block, a, b, c], key))
}

/// Returns the numbers below `count` in a drawn order: from the last on, each is swapped with one that a word chooses among
/// those up to it.
pub fn drawn_order(mut words: impl Iterator<Item = u32>, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let word = words.next().unwrap_or_default();
        // Below last + 1: the upper half of the product.
        let other = (u64::from(word) * (last as u64 + 1)) >> 32;
        order.swap(last, other as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_random123() {
        let all = u32::MAX;
        for (counter, key, expected) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([all; 4], [all; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox(counter, key), expected, "{counter:x?} {key:x?}");
        }
    }

    #[test]
    fn words_come_four_to_a_block() {
        let found: Vec<u32> = words(7 | 9 << 32, [1, 2, 3]).take(6).collect();
        let key = [7, 9];
        assert_eq!(found[..4], philox([0, 1, 2, 3], key));
        assert_eq!(found[4..], philox([1, 1, 2, 3], key)[..2]);
        let mut order = drawn_order(words(7, [0; 3]), 1000);
        assert_ne!(order, (0..1000).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..1000).collect::<Vec<_>>());
        assert!(drawn_order(words(7, [0; 3]), 0).is_empty());
    }

    #[test]
    fn a_number_depends_on_every_word_and_is_below_one() {
        let plain = uniform(7, 0, 0);
        assert_eq!(plain, uniform(7, 0, 0));
        let others =
            [uniform(8, 0, 0), uniform(7 | 1 << 40, 0, 0), uniform(7, 1, 0), uniform(7, 1 << 40, 0), uniform(7, 0, 1)];
        assert!(others.iter().all(|&other| other != plain), "{plain} {others:?}");
        assert_eq!(uniform(0, 0, 0), (0x6627_e8d5u32 >> 8) as f32 / 16_777_216.0);
        let most = (0..100_000).map(|position| uniform(1, 2, position)).fold(0.0, f32::max);
        assert!((0.999..1.0).contains(&most), "{most}");
    }
}
