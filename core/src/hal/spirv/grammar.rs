//! The instructions that a compute kernel may have, and the patterns of their operands.
//!
//! A pattern has a letter for each operand. The result comes first: a type and `R`, or `r` for a result without a type.
//! Types are `T` any; `F` float, `I` integer, `B` bool (each a scalar or a vector); `U` an integer of 32 bits, signed
//! or unsigned; `1` a bool; `2` and `4` a float vector with that many components; `P` a pointer. Among operands, these
//! letters stand for values of such types. Operands also have these letters:
//!
//! | | operand |
//! |---|---|
//! | `=` | a value of the result's type |
//! | `f` `i` `b` | a float, integer or bool with as many components as the result |
//! | `j` | an integer of the result's width and components |
//! | `h` | a value of the width and components of the operand before; `~` of its type |
//! | `u` | an integer, scalar |
//! | `W` | a vector of the result's type; `y` a component of it |
//! | `v` | any value |
//! | `q` | a pointer; `p` to the result's type. For `~` it stands for what it points to |
//! | `c` | a constant; `k` an integer one; `e` a scope; `s` memory semantics |
//! | `t` | a type |
//! | `l` | a block of the same function |
//! | `x` | any id, defined anywhere |
//! | `d` | a number; `n` a text; `m` memory operands |
//! | `?` | what follows may be absent; `*`: the operand before repeats |
//! | `!` | the rest is checked by `rules.rs` |
//!
//! Opcodes without a pattern are refused: those for OpenCL, graphics, ray tracing, images, other vendors' extensions,
//! and decoration groups. [`refused`] gives the reason. `core/tests/data/spirv-opcodes.txt` lists every opcode of
//! SPIR-V 1.6 and of the extensions whose capabilities `capability_name` knows. `spirv-opcodes.py` makes it from the
//! specification's grammar, and a test compares.

/// A pattern, padded with zeros.
pub(super) type Pattern = [u8; 8];

/// Added to the numbers of the extended instructions of GLSL.std.450.
pub(super) const GLSL: u32 = 0x1_0000;

/// The patterns of consecutive opcodes from a first one. `-` is refused; `0` has no operands.
const ROWS: &[(u32, &str)] = &[
    (0, "0 TR n dd?x?n n xn xdn rn xdd - n rn TRxd! - dd dxn?x* xd! d - r r rdd rd?d rtd rtd - - - rtk"),
    (29, "rt r?t* - rdt rt?t* - - - - - xd - 1R 1R TRd! TR?c* - TR - 1R 1R TRd! TR?c* TRd! - TRdt TR 0"),
    (57, "TRx?v*"),
    (59, "PRd?x - TRp?m q~?m qq?m?m - PRq?u* PRq?u* PRqu?u* URqd - PRqu?u* xd! xdd!"),
    (77, "TRWu TR=yu TRvv?d* TR?v* TRv?d* TRv=?d* TR= TRv"),
    (109, "IRf IRf FRi FRi IRi IRi FRf FR= IRq - - PRu - - - TRv"),
    (126, "IRj FR= IRjj FR== IRjj FR== IRjj FR== IRjj IRjj FR== IRjj IRjj IRjj FR== FR== FR=y TR=v TRvv"),
    (145, "TRvv TRvv TRvv FRWh TRIh TRIh TRIh TRIh - BRB BRB BRf BRf"),
    (164, "BRbb BRbb BRbb BRbb BRb TRv== BRih BRih BRih BRih BRih BRih BRih BRih BRih BRih BRfh BRfh BRfh"),
    (183, "BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh - - IRji IRji IRji IRjj IRjj IRjj IRj IRjjuu IRjuu"),
    (203, "IRjuu IRj IRi"),
    (224, "ees es - TRpes qesv TRpes= TRpess== - TRpes TRpes TRpes= TRpes= TRpes= TRpes= TRpes= TRpes="),
    (240, "TRpes= TRpes= TRpes="),
    (245, "TR! lld?d* ld r l 1ll?d* ul! - 0 v 0"),
    (317, "0"),
    (330, "n xd! xd?x* BRe BRev BRev BRev TRe=u TRe= TRev BRev BRevu TRedv TRev TRev TRe=u TRe=u TRe=u"),
    (348, "TRe=u IRed=?u FRed=?u IRed=?u FRed=?u IRed=?u IRed=?u FRed=?u IRed=?u IRed=?u FRed=?u IRed=?u"),
    (360, "IRed=?u IRed=?u BRed=?u BRed=?u BRed=?u TRe=u TRe=u"),
    (400, "TRv BRqh BRqh TRqh"),
    (4450, "IRvv?d IRvv?d IRvv?d IRvv=?d IRvv=?d IRvv=?d rtkkkk TRqk?u?m qvk?u?m TRvvv?d URt"),
    (5632, "xdn xddn"),
    (6035, "FRpes="),
    (GLSL + 1, "FR= FR= FR= FR= IRj FR= IRj FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR="),
    (GLSL + 25, "FR== FR== FR= FR= FR= FR= FR= FR= FRv TR= FR=p TRF FR== IRjj IRjj FR== IRjj IRjj FR=== IRjjj"),
    (GLSL + 45, "IRjjj FR=== - FR== FR=== FR=== FR=q TRF FR=i UR4 UR4 UR2 UR2 UR2 FRI 2Ru 2Ru 2Ru 4Ru 4Ru IRF FRF"),
    (GLSL + 67, "FRFh FR== FR= FR=== FR== FR==v IRi IRi IRi - - - FR== FR== FR==="),
];

/// Returns the index of an opcode in the table.
const fn slot(opcode: u32) -> usize {
    let slot = match opcode {
        0..=403 => opcode,
        0x1_0000..=0x1_0051 => opcode - GLSL + 404,
        5632 | 5633 => opcode - 5632 + 486,
        4450..=4460 => opcode - 4450 + 488,
        6035 => 499,
        _ => return SLOTS,
    };
    slot as usize
}

const SLOTS: usize = 500;
const PATTERNS: usize = 136;

/// All distinct patterns, and the pattern's index for each slot. Index 0 is for refused opcodes.
struct Table {
    patterns: [Pattern; PATTERNS],
    numbers: [u8; SLOTS],
}

static TABLE: Table = table();

const fn table() -> Table {
    let mut table = Table { patterns: [[0; 8]; PATTERNS], numbers: [0; SLOTS] };
    let (mut row, mut used) = (0, 1);
    while row < ROWS.len() {
        let (mut opcode, text) = (ROWS[row].0, ROWS[row].1.as_bytes());
        let mut i = 0;
        while i < text.len() {
            let (mut pattern, mut length) = ([0; 8], 0);
            while i < text.len() && text[i] != b' ' {
                pattern[length] = text[i];
                length += 1;
                i += 1;
            }
            i += 1;
            if pattern[0] != b'-' {
                let mut number = 1;
                while number < used && u64::from_le_bytes(table.patterns[number]) != u64::from_le_bytes(pattern) {
                    number += 1;
                }
                table.patterns[number] = pattern;
                if number == used {
                    used += 1;
                }
                table.numbers[slot(opcode)] = number as u8;
            }
            opcode += 1;
        }
        row += 1;
    }
    assert!(used <= PATTERNS);
    table
}

/// Returns the pattern of an opcode; zeros if compute kernels can't have it.
#[inline(never)]
pub(super) fn pattern(opcode: u32) -> Pattern {
    let number = TABLE.numbers.get(slot(opcode)).map_or(0, |&number| usize::from(number));
    TABLE.patterns.get(number).copied().unwrap_or_default()
}

/// Returns the reason why compute kernels can't have an opcode without a pattern. The opcode follows in the message.
#[cold]
pub(super) fn refused(opcode: u32) -> &'static str {
    match opcode {
        25..=27 | 60 | 86..=107 | 305..=308 | 313..=316 | 320 => "kernels have no images, so they can't have opcode",
        73..=75 => "decoration groups are not supported (decorate each id), so kernels can't have opcode",
        207..=215 | 218..=221 | 252 | 4416 | 5380 => "only graphics shaders have opcode",
        31 | 34..=38 | 45 | 64 | 69 | 118 | 119 | 121..=123 | 158..=163 | 231 | 256..=304 | 318 | 319 | 321..=329 => {
            "only OpenCL kernels have opcode"
        }
        _ => "compute kernels can't have opcode",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fewest words of an instruction, and whether it can have more, by its pattern.
    fn lengths(pattern: &Pattern) -> (usize, bool) {
        let least = pattern.iter().take_while(|&&letter| !matches!(letter, 0 | b'0' | b'?' | b'!')).count();
        let more = pattern.iter().any(|letter| matches!(letter, b'?' | b'*' | b'!' | b'm' | b'n'));
        (1 + least, more)
    }

    #[test]
    fn every_opcode_is_taken_or_refused_with_a_reason() {
        let (mut taken, mut known) = (0, Vec::new());
        for line in include_str!("../../../tests/data/spirv-opcodes.txt").lines().filter(|line| !line.starts_with('#'))
        {
            let fields: Vec<&str> = line.split(' ').collect();
            let [opcode, name, result, least, most] = fields[..] else { panic!("{line}") };
            let opcode: u32 = opcode.parse().unwrap();
            known.push(opcode);
            let pattern = pattern(opcode);
            if pattern[0] == 0 {
                assert_ne!(refused(opcode), refused(u32::MAX), "{name} is refused without a reason");
                continue;
            }
            taken += 1;
            assert_eq!(refused(opcode), refused(u32::MAX), "{name} is taken");
            let own = match (pattern[1], pattern[0]) {
                (b'R', _) => "typed",
                (_, b'r') => "untyped",
                _ => "none",
            };
            assert_eq!(own, result, "{name}");
            let (words, more) = lengths(&pattern);
            // A pattern may require an operand that is optional in the grammar, but not the reverse.
            assert!(words >= least.parse().unwrap(), "{name} has {words} words at least");
            assert!(more || most == "*" || words <= most.parse().unwrap(), "{name} has {words} words");
        }
        assert!(taken > 220, "{taken}");
        // No other opcode has a pattern.
        let mut others = (0..0x1_0000).filter(|opcode| pattern(*opcode)[0] != 0 && !known.contains(opcode));
        assert_eq!(others.next(), None);
    }
}
