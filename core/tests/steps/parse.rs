//! The language of the contract's functions: its tree, and a parser that refuses what a form could compute otherwise.

/// A value.
#[derive(Clone, PartialEq)]
pub enum Expr {
    Number(f32),
    Name(String),
    Minus(Box<Expr>),
    /// `+`, `-`, `*`, `/`, `<`, `>` or `=` for `==`.
    Binary(char, Box<Expr>, Box<Expr>),
    Call(String, Vec<Expr>),
    Horner(Box<Expr>, Vec<f32>),
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A product that is exact, and a sum with it.
    Exact(Box<Expr>),
}

/// A line of a function.
pub enum Line {
    Comment(String),
    /// Names, and the value or the values of a call.
    Let(Vec<String>, Expr),
}

/// A function: its results are the values of the last line.
pub struct Function {
    pub comment: Vec<String>,
    pub name: String,
    pub parameters: Vec<String>,
    pub lines: Vec<Line>,
    pub results: Vec<Expr>,
}

impl Expr {
    /// A name or a number, or one of them negated.
    pub fn atom(&self) -> bool {
        match self {
            Expr::Minus(x) => x.atom(),
            x => matches!(x, Expr::Name(_) | Expr::Number(_)),
        }
    }

    pub fn condition(&self) -> bool {
        matches!(self, Expr::Binary('<' | '>' | '=', ..)) || matches!(self, Expr::Call(name, _) if name == "subnormal")
    }

    /// How tightly an operator binds.
    pub fn rank(&self) -> u8 {
        match self {
            Expr::Select(..) => 0,
            Expr::Binary('<' | '>' | '=', ..) => 1,
            Expr::Binary('+' | '-', ..) => 2,
            Expr::Binary(..) => 3,
            Expr::Exact(x) => x.rank(),
            _ => 4,
        }
    }
}

/// Reads the functions in the blocks that start with "```steps".
pub fn functions(page: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    let mut comment = Vec::new();
    let mut inside = false;
    for (i, line) in page.lines().enumerate() {
        let at = || format!("docs/contract.md, line {}: {line}", i + 1);
        if line.starts_with("```") {
            inside = line == "```steps";
        } else if !inside || line.is_empty() {
        } else if let Some(text) = line.strip_prefix("# ") {
            comment.push(text.to_string());
        } else if let Some(line) = line.strip_prefix("    ") {
            let function = functions.last_mut().unwrap_or_else(|| panic!("no function's line: {}", at()));
            assert!(function.results.is_empty(), "a line behind the last one: {}", at());
            if let Some(text) = line.strip_prefix("# ") {
                function.lines.push(Line::Comment(text.to_string()));
            } else if let Some(results) = line.strip_prefix("return ") {
                let mut parser = Parser::new(results);
                function.results = parser.list("");
                let named = |x: &Expr| x.atom() || matches!(x, Expr::Call(..));
                assert!(
                    function.results.len() == 1 || function.results.iter().all(named),
                    "name the results: {}",
                    at()
                );
            } else {
                let (names, value) = line.split_once(" = ").unwrap_or_else(|| panic!("no `=`: {}", at()));
                let names: Vec<_> = names.split(", ").map(str::to_string).collect();
                for name in &names {
                    assert!(!function.names().contains(&name), "`{name}` has a value: {}", at());
                }
                function.lines.push(Line::Let(names, Parser::new(value).whole()));
            }
        } else {
            let (name, rest) = line.split_once('(').unwrap_or_else(|| panic!("no function: {}", at()));
            let parameters = rest.strip_suffix("):").unwrap_or_else(|| panic!("no `):`: {}", at()));
            functions.push(Function {
                comment: std::mem::take(&mut comment),
                name: name.to_string(),
                parameters: parameters.split(", ").map(str::to_string).collect(),
                lines: Vec::new(),
                results: Vec::new(),
            });
        }
    }
    assert!(functions.iter().all(|function| !function.results.is_empty()), "each function has results");
    functions
}

impl Function {
    fn names(&self) -> Vec<&String> {
        let lines = self.lines.iter().flat_map(|line| match line {
            Line::Let(names, _) => names.as_slice(),
            Line::Comment(_) => &[],
        });
        self.parameters.iter().chain(lines).collect()
    }
}

/// A recursive descent over one line.
struct Parser<'a> {
    line: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn new(line: &'a str) -> Self {
        Parser { line, rest: line }
    }

    fn take(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        let taken = rest.strip_prefix(token);
        self.rest = taken.unwrap_or(rest);
        taken.is_some()
    }

    fn expect(&mut self, token: &str) {
        assert!(self.take(token), "`{token}` is missing before `{}`: {}", self.rest, self.line);
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        assert!(end > 0, "a value is missing before `{rest}`: {}", self.line);
        self.rest = &rest[end..];
        &rest[..end]
    }

    fn whole(mut self) -> Expr {
        let value = self.select();
        assert!(self.rest.trim().is_empty(), "`{}` is too much: {}", self.rest, self.line);
        value
    }

    /// Values with commas between them, up to `end`.
    fn list(&mut self, end: &str) -> Vec<Expr> {
        let mut values = vec![self.select()];
        while self.take(",") {
            values.push(self.select());
        }
        self.expect(end);
        assert!(!end.is_empty() || self.rest.is_empty(), "`{}` is too much: {}", self.rest, self.line);
        values
    }

    fn select(&mut self) -> Expr {
        let condition = self.compare();
        if !self.take("?") {
            return condition;
        }
        let yes = self.sum();
        self.expect(":");
        let no = self.sum();
        // A form may compute both or one of them, with or without marks for its compiler.
        let simple = |x: &Expr| match x {
            Expr::Binary('/', a, b) => a.atom() && b.atom(),
            x => x.atom(),
        };
        assert!(simple(&yes) && simple(&no), "name both values of the choice: {}", self.line);
        Expr::Select(Box::new(condition), Box::new(yes), Box::new(no))
    }

    fn compare(&mut self) -> Expr {
        let left = self.sum();
        let operator = ["==", "<", ">"].into_iter().find(|token| self.take(token));
        match operator {
            Some(token) => Expr::Binary(token.chars().next().unwrap(), Box::new(left), Box::new(self.sum())),
            None => left,
        }
    }

    fn sum(&mut self) -> Expr {
        let mut left = self.product();
        while let Some(token) = ["+", "-"].into_iter().find(|token| self.take(token)) {
            left = Expr::Binary(token.chars().next().unwrap(), Box::new(left), Box::new(self.product()));
        }
        left
    }

    fn product(&mut self) -> Expr {
        let mut left = self.value();
        while let Some(token) = ["*", "/"].into_iter().find(|token| self.take(token)) {
            let right = self.value();
            assert!(token == "*" || right.atom(), "name the divisor: {}", self.line);
            left = Expr::Binary(token.chars().next().unwrap(), Box::new(left), Box::new(right));
        }
        left
    }

    fn value(&mut self) -> Expr {
        if self.take("-") {
            return match self.value() {
                Expr::Number(x) => Expr::Number(-x),
                x => Expr::Minus(Box::new(x)),
            };
        }
        if self.take("(") {
            let value = self.select();
            self.expect(")");
            return value;
        }
        let word = self.word();
        if self.take("(") {
            return self.call(word);
        }
        number(word).map_or_else(|| Expr::Name(word.to_string()), Expr::Number)
    }

    fn call(&mut self, name: &str) -> Expr {
        if name == "Horner" {
            let x = self.value();
            self.expect(";");
            let mut coefficients = Vec::new();
            while !self.take(")") {
                let word = self.word();
                coefficients.push(number(word).unwrap_or_else(|| panic!("`{word}` is no number: {}", self.line)));
            }
            assert!(coefficients.len() > 1 && x.atom(), "a name and two numbers or more: {}", self.line);
            return Expr::Horner(Box::new(x), coefficients);
        }
        let mut arguments = self.list(")");
        if name == "exact" {
            let value = arguments.remove(0);
            assert!(arguments.is_empty() && exact(&value), "a sum or difference with one product: {}", self.line);
            return Expr::Exact(Box::new(value));
        }
        let simple = |x: &Expr| x.atom() || matches!(x, Expr::Call(..) | Expr::Horner(..));
        assert!(arguments.iter().all(simple), "name the arguments: {}", self.line);
        if matches!(name, "min" | "max") {
            let whole = self.line.starts_with(name) && self.rest.is_empty();
            assert!(whole && arguments.iter().all(Expr::atom), "name `{name}` and its arguments: {}", self.line);
        }
        Expr::Call(name.to_string(), arguments)
    }
}

/// `a - b * c` or a fused step.
fn exact(x: &Expr) -> bool {
    let product = |x: &Expr| matches!(x, Expr::Binary('*', a, b) if a.atom() && b.atom());
    match x {
        Expr::Binary('-', a, b) => a.atom() && product(b),
        Expr::Call(name, _) => name == "fmaz",
        _ => false,
    }
}

/// Eight hexadecimal digits are the bits of a number; other numbers are decimal.
fn number(word: &str) -> Option<f32> {
    let digits = "0123456789abcdef";
    if word.len() == 8 && word.chars().all(|c| digits.contains(c)) {
        return Some(f32::from_bits(u32::from_str_radix(word, 16).unwrap()));
    }
    word.starts_with(|c: char| c.is_ascii_digit())
        .then(|| word.parse().unwrap_or_else(|_| panic!("`{word}` is no number")))
}
