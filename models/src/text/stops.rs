//! Stop strings: texts that end an answer, wherever the borders of tokens are.

/// Looks for stop strings in text that arrives in pieces. Text that may be the beginning of a stop string waits.
#[derive(Default)]
pub(crate) struct Stops {
    stops: Vec<String>,
    waiting: String,
}

impl Stops {
    /// Looks for these; empty ones are ignored.
    pub fn new(stops: &[String]) -> Stops {
        Stops { stops: stops.iter().filter(|stop| !stop.is_empty()).cloned().collect(), waiting: String::new() }
    }

    /// Takes text. Returns what is certainly before any stop string, and whether one is complete: the text ends there.
    pub fn push(&mut self, text: &str) -> (String, bool) {
        self.waiting.push_str(text);
        if let Some(at) = self.stops.iter().filter_map(|stop| self.waiting.find(stop)).min() {
            let mut text = std::mem::take(&mut self.waiting);
            text.truncate(at);
            return (text, true);
        }
        let waits = (0..self.waiting.len()).find(|&at| {
            let end = self.waiting.get(at..);
            end.is_some_and(|end| self.stops.iter().any(|stop| stop.starts_with(end)))
        });
        let kept = self.waiting.split_off(waits.unwrap_or(self.waiting.len()));
        (std::mem::replace(&mut self.waiting, kept), false)
    }

    /// Returns the text that waited.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stops: &[&str], text: &str, size: usize) -> (String, bool) {
        let mut stream = Stops::new(&stops.iter().map(|stop| stop.to_string()).collect::<Vec<_>>());
        let (mut found, chars) = (String::new(), text.chars().collect::<Vec<_>>());
        for piece in chars.chunks(size) {
            let (text, stopped) = stream.push(&piece.iter().collect::<String>());
            found += &text;
            if stopped {
                return (found, true);
            }
        }
        (found + &stream.finish(), false)
    }

    #[test]
    fn stop_strings_are_found_across_pieces() {
        for size in 1..8 {
            assert_eq!(all(&["END"], "one ENtwo END three", size), ("one ENtwo ".into(), true), "{size}");
            assert_eq!(all(&["END", " END"], "a END", size), ("a".into(), true), "{size}");
            assert_eq!(all(&["aab"], "aaaab", size), ("aa".into(), true), "{size}");
            assert_eq!(all(&["äß"], "xäyäßz", size), ("xäy".into(), true), "{size}");
            assert_eq!(all(&["END"], "the EN", size), ("the EN".into(), false), "{size}");
            assert_eq!(all(&[""], "text", size), ("text".into(), false), "{size}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_stop_string_waits() {
        let mut stops = Stops::new(&["\n\nUser:".into()]);
        assert_eq!(stops.push("Hello.\n"), ("Hello.".into(), false));
        assert_eq!(stops.push("x"), ("\nx".into(), false));
        assert_eq!(stops.push("\n\nUse"), (String::new(), false));
        assert_eq!(stops.push("d"), ("\n\nUsed".into(), false));
    }
}
