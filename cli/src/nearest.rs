//! Suggests the name that a mistyped word most likely means.

use adead::{Error, Op};

/// The device names that every machine accepts.
const DEVICES: [&str; 6] = ["auto", "cpu", "gpu", "cuda", "vulkan", "hybrid"];

/// Returns the name closest to the word. Returns `None` if none is close: one wrong letter in three.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let most = word.chars().count().div_ceil(3);
    let distances = names.into_iter().map(|name| (distance(&word, &name.to_lowercase()), name));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns the question to add to an error, or an empty text.
pub fn question<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, names).map_or(String::new(), |name| format!("; did you mean '{name}'?"))
}

/// Adds a suggestion to the library's error about an unknown device or operation.
pub fn suggest(error: &Error) -> Error {
    let message = error.message();
    let quoted = |before: &str| message.split_once(before)?.1.split('\'').next();
    let added = if let Some(device) = quoted("no device '") {
        // A number or an index stays as it was given.
        let (name, number) = device.split_at(device.find(':').unwrap_or(device.len()));
        nearest(name, DEVICES).map_or(String::new(), |name| format!("; did you mean '{name}{number}'?"))
    } else if let Some(word) = quoted("unknown opcode '").or_else(|| quoted("no operation '")) {
        question(word, Op::ALL.iter().map(|op| op.name()))
    } else {
        String::new()
    };
    Error::new(error.status(), format!("{message}{added}"))
}

/// Counts the letters to insert, remove, replace or swap with the next one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use adead::Status;

    #[test]
    fn the_closest_name_is_found() {
        assert_eq!(nearest("matmull", ["relu", "matmul", "mul"]), Some("matmul"));
        assert_eq!(nearest("CDUA", DEVICES), Some("cuda"));
        assert_eq!(nearest("nonsense", DEVICES), None);
        assert_eq!(nearest("", DEVICES), None);
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, expected) in [("", "", 0), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3), ("µ", "m", 1)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn the_librarys_errors_get_a_suggestion() {
        let suggested = |text: &str| suggest(&Error::new(Status::InvalidArgument, text)).message().to_string();
        assert_eq!(suggested("no device 'cdua:1': pass"), "no device 'cdua:1': pass; did you mean 'cuda:1'?");
        assert_eq!(suggested("unknown opcode 'rleu'"), "unknown opcode 'rleu'; did you mean 'relu'?");
        assert_eq!(suggested("no device 'zzzzzz': pass"), "no device 'zzzzzz': pass");
    }
}
