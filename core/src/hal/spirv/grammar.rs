//! Which instructions a compute kernel may have, and what their operands are.
//!
//! A pattern is a letter for each operand. First the result: `T` of any type, `F` float, `I` integer, `B` bool (each a
//! scalar or a vector), `P` a pointer, followed by `R`; or `r`, a result without a type. Then:
//!
//! | | operand |
//! |---|---|
//! | `=` | a value of the result's type |
//! | `f` `i` `b` | a float, integer or bool with as many components as the result |
//! | `j` | an integer of the result's width and components |
//! | `h` | a value of the width and components of the operand before |
//! | `u` | an integer, scalar |
//! | `2` `4` | a float vector of so many components |
//! | `v` | any value |
//! | `q` | a pointer; `p` to the result's type |
//! | `c` | a constant; `k` an integer one; `e` a scope; `s` memory semantics |
//! | `t` | a type |
//! | `l` | a block of the same function |
//! | `x` | any id, defined anywhere |
//! | `d` | a number; `n` a text |
//! | `m` | memory operands; `o` image operands |
//! | `?` | what follows may be absent; `*`: the operand before repeats |
//! | `!` | the rest is checked by `check.rs` |
//!
//! Absent, and so refused: what needs the OpenCL, graphics or ray tracing environment, and decoration groups.

/// The longest pattern.
const LONGEST: usize = 10;

/// A pattern, filled up with zeros.
pub(super) type Pattern = [u8; LONGEST];

/// What is added to the numbers of the extended instructions GLSL.std.450.
pub(super) const GLSL: u32 = 0x8000;

/// Patterns of consecutive opcodes from the first on; `-` is refused, `0` has no operands.
const ROWS: &[(u32, &str)] = &[
    (0, "0 TR n dd?x?n n xn xdn rn xdd - n rn TRxd! - dd dxn?x* xd! d - r r rdd rd?d rtd rtd rtdddddd?d r rt rtk rt"),
    (30, "r?t* - rdt rt?t* - - - - - xd - BR BR TRd! TR?c* - TR - BR BR TRd! TR?c* TRd! - TRdt TR 0 TRx?v*"),
    (59, "PRd?x PRquu TRp?m qv?m qq?m?m - PRq?u* PRq?u* PRqu?u* TRqd - PRqu?u* xd! xdd!"),
    (77, "TRvu TR=vu TRvv?d* TR?v* TRv?d* TRv=?d* TR= TRv - TRvv TRvv?o TRvvo TRvvv?o TRvvvo TRvv?o TRvvo"),
    (93, "TRvvv?o TRvvvo TRvv?o TRvvv?o TRvvv?o TRvv?o vvv?o TRv - - TRvv TRv TRvv TRv TRv"),
    (109, "IRf IRf FRi FRi IRi IRi FRf FR= IRq - - PRu - - - TRv"),
    (
        126,
        "IRj FR= IRjj FR== IRjj FR== IRjj FR== IRjj IRjj FR== IRjj IRjj IRjj FR== FR== FR=v TR=v TRvv TRvv TRvv TRvv",
    ),
    (148, "FRvh TRvh TRvh TRvh TRvh - BRv BRv BRf BRf"),
    (164, "BRbb BRbb BRbb BRbb BRb TRv== BRih BRih BRih BRih BRih BRih BRih BRih BRih BRih"),
    (180, "BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh BRfh - - IRji IRji IRji IRjj IRjj IRjj IRj"),
    (201, "IRjjuu IRjuu IRjuu IRj IRi"),
    (
        224,
        "ees es - TRpes qesv TRpes= TRpess== - TRpes TRpes TRpes= TRpes= TRpes= TRpes= TRpes= TRpes= TRpes= TRpes= TRpes=",
    ),
    (245, "TR! lld?d* ld r l vll?d* vl! - 0 v 0"),
    (317, "0"),
    (330, "n xd! xd?x* BRe BRev BRev BRev TRe=u TRe= TRev BRev BRevu TRedv TRev TRev TRe=u TRe=u TRe=u TRe=u"),
    (349, "IRed=?u FRed=?u IRed=?u FRed=?u IRed=?u IRed=?u FRed=?u IRed=?u IRed=?u FRed=?u IRed=?u IRed=?u IRed=?u"),
    (362, "BRed=?u BRed=?u BRed=?u TRe=u TRe=u"),
    (400, "TRv BRqh BRqh TRqh"),
    (4421, "TRv TR="),
    (4428, "BRv BRv BRv TRe=u?u TR=u"),
    (4450, "IRvv?d IRvv?d IRvv?d IRvv=?d IRvv=?d IRvv=?d rtekkk TRqk?u?m qvk?u?m TRvv=?d TRt"),
    (5056, "TRe"),
    (5614, "FRpes= FRpes="),
    (5630, "v TR=v xdn xddn"),
    (6035, "FRpes="),
    (
        GLSL + 1,
        "FR= FR= FR= FR= IRj FR= IRj FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR= FR== FR== FR=",
    ),
    (
        GLSL + 28,
        "FR= FR= FR= FR= FR= FRv TR= FR=p TRv FR== IRjj IRjj FR== IRjj IRjj FR=== IRjjj IRjjj FR=== - FR== FR===",
    ),
    (
        GLSL + 50,
        "FR=== FR=q TRv FR=i IR4 IR4 IR2 IR2 IR2 FRv FRu FRu FRu FRu FRu TRv FRv FRvh FR== FR= FR=== FR== FR==v",
    ),
    (GLSL + 73, "IRi IRi IRi - - - FR== FR== FR==="),
];

/// The place of an opcode in the table.
const fn slot(opcode: u32) -> usize {
    let (first, slot) = match opcode {
        0..=403 => (0, 0),
        4421..=4460 => (4421, 404),
        5056 => (5056, 444),
        5614..=5615 => (5614, 445),
        5630..=5633 => (5630, 447),
        6035 => (6035, 451),
        0x8000..=0x8051 => (GLSL, 452),
        _ => return SLOTS,
    };
    (opcode - first) as usize + slot
}

const SLOTS: usize = 534;
const PATTERNS: usize = 128;

/// Every pattern once, and its number for each slot; number 0 is of what is refused.
struct Table {
    patterns: [Pattern; PATTERNS],
    numbers: [u8; SLOTS],
    used: usize,
}

static TABLE: Table = table();

const fn same(a: &Pattern, b: &Pattern) -> bool {
    let mut i = 0;
    while i < LONGEST && a[i] == b[i] {
        i += 1;
    }
    i == LONGEST
}

const fn table() -> Table {
    let mut table = Table { patterns: [[0; LONGEST]; PATTERNS], numbers: [0; SLOTS], used: 1 };
    let mut row = 0;
    while row < ROWS.len() {
        let (mut opcode, text) = (ROWS[row].0, ROWS[row].1.as_bytes());
        let mut i = 0;
        while i < text.len() {
            let (mut pattern, mut length) = ([0; LONGEST], 0);
            while i < text.len() && text[i] != b' ' {
                pattern[length] = text[i];
                length += 1;
                i += 1;
            }
            i += 1;
            let mut number = 0;
            if pattern[0] != b'-' {
                number = 1;
                while number < table.used && !same(&table.patterns[number], &pattern) {
                    number += 1;
                }
                table.patterns[number] = pattern;
                if number == table.used {
                    table.used += 1;
                }
            }
            table.numbers[slot(opcode)] = number as u8;
            opcode += 1;
        }
        row += 1;
    }
    table
}

/// The pattern of an opcode, unless compute kernels can't have it.
pub(super) fn pattern(opcode: u32) -> Option<&'static Pattern> {
    let number = *TABLE.numbers.get(slot(opcode))?;
    (number != 0).then(|| &TABLE.patterns[usize::from(number)])
}
