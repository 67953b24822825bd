//! PTX as it is packed: a register's number is the difference to the one before of its kind, so that code that is alike is the same
//! text whatever its registers are, which packs to three quarters. `core/build.rs` writes it, and reads it back with this.

/// Numbers of registers that were met last, by kind: `%f`, `%rd`.
type Last = Vec<(Vec<u8>, i64)>;

/// The last number of a kind.
pub fn last<'a>(all: &'a mut Last, kind: &[u8]) -> &'a mut i64 {
    let at = all.iter().position(|(known, _)| known == kind).unwrap_or_else(|| {
        all.push((kind.to_vec(), 0));
        all.len() - 1
    });
    &mut all[at].1
}

/// How many of the bytes a kind has: a percent sign and small letters.
pub fn kind_of(text: &[u8]) -> usize {
    let letters = text.iter().skip(1).take_while(|byte| byte.is_ascii_lowercase()).count();
    if text.first() == Some(&b'%') && letters > 0 { 1 + letters } else { 0 }
}

/// A number, and how many bytes it has.
pub fn number_of(text: &[u8]) -> (i64, usize) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(number, count), byte| (number.wrapping_mul(10).wrapping_add((byte - b'0').into()), count + 1))
}

/// PTX with its registers' numbers: `%f+2` and `%f-1` behind `%f7` are `%f9` and `%f8`.
pub fn absolute(mut text: &[u8]) -> Vec<u8> {
    let (mut to, mut all) = (Vec::with_capacity(text.len() * 5 / 4), Last::new());
    while let Some(&first) = text.first() {
        let kind = kind_of(text);
        let sign = match text.get(kind) {
            Some(b'+') if kind > 0 => 1,
            Some(b'-') if kind > 0 => -1,
            _ => {
                to.push(first);
                text = &text[1..];
                continue;
            }
        };
        let (difference, digits) = number_of(&text[kind + 1..]);
        let last = last(&mut all, &text[..kind]);
        *last = last.wrapping_add(sign * difference);
        to.extend_from_slice(&text[..kind]);
        to.extend_from_slice(last.to_string().as_bytes());
        text = &text[kind + 1 + digits..];
    }
    to
}
