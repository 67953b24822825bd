//! The packed form of PTX: each register's or label's number is replaced by the difference to the previous one of its
//! kind at the same place in a line. Similar code then becomes equal text with any registers, and packs to half the
//! size. `core/build.rs` includes this file too, to write the form and to check that it reads back.

/// The last number of each kind (`%f`, `%rd`, `$L__BB0_`) at each place in a line.
#[derive(Default)]
pub struct Last {
    all: Vec<(Vec<u8>, usize, i64)>,
    place: usize,
}

impl Last {
    /// Skips a byte that is not part of a number.
    pub fn pass(&mut self, byte: u8) {
        if byte == b'\n' {
            self.place = 0;
        }
    }

    /// Returns the last number of the kind at the next place in the line.
    pub fn of(&mut self, kind: &[u8]) -> &mut i64 {
        self.place += 1;
        let place = self.place;
        let at = self.all.iter().position(|(known, at, _)| *at == place && known == kind).unwrap_or_else(|| {
            self.all.push((kind.to_vec(), place, 0));
            self.all.len() - 1
        });
        &mut self.all[at].2
    }
}

/// Returns the length of the kind: a percent sign and lower-case letters, or a dollar sign and a label up to its
/// number.
pub fn kind_of(text: &[u8]) -> usize {
    let of_label = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let name = match text.first() {
        Some(b'%') => text[1..].iter().take_while(|byte| byte.is_ascii_lowercase()).count(),
        Some(b'$') => {
            let all = text[1..].iter().take_while(of_label).count();
            all - text[1..1 + all].iter().rev().take_while(|byte| byte.is_ascii_digit()).count()
        }
        _ => 0,
    };
    if name > 0 { 1 + name } else { 0 }
}

/// Returns a number and the count of its digits.
pub fn number_of(text: &[u8]) -> (i64, usize) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(number, count), byte| (number.wrapping_mul(10).wrapping_add((byte - b'0').into()), count + 1))
}

/// Restores the numbers of registers and labels.
pub fn absolute(mut text: &[u8]) -> Vec<u8> {
    let (mut to, mut last) = (Vec::with_capacity(text.len() * 5 / 4), Last::default());
    while let Some(&first) = text.first() {
        let kind = kind_of(text);
        let sign = match text.get(kind) {
            Some(b'+') if kind > 0 => 1,
            Some(b'-') if kind > 0 => -1,
            _ => {
                last.pass(first);
                to.push(first);
                text = &text[1..];
                continue;
            }
        };
        let (difference, digits) = number_of(&text[kind + 1..]);
        let number = last.of(&text[..kind]);
        *number = number.wrapping_add(sign * difference);
        to.extend_from_slice(&text[..kind]);
        to.extend_from_slice(number.to_string().as_bytes());
        text = &text[kind + 1 + digits..];
    }
    to
}
