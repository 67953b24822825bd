//! The forms with infix operators: scalar Rust and GLSL.

use crate::parse::{Expr, Function, Line};

#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Rust,
    Glsl,
}

/// Writes a function.
pub fn function(form: Form, function: &Function) -> String {
    let mut text = String::new();
    for line in &function.comment {
        text += if form == Form::Rust { "/// " } else { "// " };
        text += line;
        text += "\n";
    }
    let count = function.results.len();
    let parameters = function.parameters.iter().map(|name| match form {
        Form::Rust => format!("{name}: f32"),
        Form::Glsl => format!("const float {name}"),
    });
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    text += &match (form, count) {
        (Form::Rust, 1) => format!("pub fn {}({parameters}) -> f32 {{\n", function.name),
        (Form::Rust, _) => {
            format!("pub fn {}({parameters}) -> ({}) {{\n", function.name, vec!["f32"; count].join(", "))
        }
        (Form::Glsl, 1) => format!("float {}({parameters}) {{\n", function.name),
        (Form::Glsl, _) => format!("vec{count} {}({parameters}) {{\n", function.name),
    };
    for line in &function.lines {
        text += &match line {
            Line::Comment(comment) => format!("    // {comment}\n"),
            Line::Let(names, value) => form.statement(names, value),
        };
    }
    let results = function.results.iter().map(|x| form.value(x)).collect::<Vec<_>>().join(", ");
    text += &match (form, count) {
        (Form::Rust, 1) => format!("    {results}\n}}\n"),
        (Form::Rust, _) => format!("    ({results})\n}}\n"),
        // Only a variable can be `precise`.
        (Form::Glsl, 1) => form.statement(&["result".to_string()], &function.results[0]) + "    return result;\n}\n",
        (Form::Glsl, _) => format!("    return vec{count}({results});\n}}\n"),
    };
    text
}

impl Form {
    fn statement(self, names: &[String], value: &Expr) -> String {
        let text = self.value(value);
        match (self, names) {
            (Form::Rust, [name]) => format!("    let {name} = {text};\n"),
            (Form::Rust, _) => format!("    let ({}) = {text};\n", names.join(", ")),
            (Form::Glsl, [name]) => match value {
                // A quotient can take long, so it is computed only where it counts.
                Expr::Select(condition, yes, no) if yes.rank() == 3 || no.rank() == 3 => {
                    let (condition, yes, no) = (self.value(condition), self.value(yes), self.value(no));
                    format!(
                        "    precise float {name};\n    if ({condition}) {{\n        {name} = {yes};\n    }} else {{\n        \
                         {name} = {no};\n    }}\n"
                    )
                }
                value if value.condition() => format!("    bool {name} = {text};\n"),
                _ => format!("    precise float {name} = {text};\n"),
            },
            (Form::Glsl, _) => {
                let all = names.concat();
                let parts = names.iter().zip(["x", "y", "z"]).map(|(name, part)| format!("{name} = {all}.{part}"));
                let parts = parts.collect::<Vec<_>>().join(", ");
                format!("    vec{} {all} = {text};\n    float {parts};\n", names.len())
            }
        }
    }

    fn number(self, x: f32) -> String {
        // Short decimals are clearer, and bits are what the page says.
        match self {
            Form::Rust if x.fract() == 0.0 && x.abs() < 1e7 || x.abs() == 0.5 => format!("{x:?}"),
            Form::Rust => format!("{}c(0x{:08x})", if x < 0.0 { "-" } else { "" }, x.abs().to_bits()),
            Form::Glsl => format!("{x:?}f"),
        }
    }

    /// The value as an operand of an operator of this rank.
    fn operand(self, x: &Expr, rank: u8) -> String {
        let text = self.value(x);
        if x.rank() < rank { format!("({text})") } else { text }
    }

    fn value(self, x: &Expr) -> String {
        match x {
            Expr::Number(x) => self.number(*x),
            Expr::Name(name) => name.clone(),
            Expr::Minus(x) => format!("-{}", self.operand(x, 4)),
            Expr::Exact(x) => self.value(x),
            Expr::Binary('/', a, b) if self == Form::Glsl => match &**a {
                Expr::Number(1.0) => format!("inverse({})", self.value(b)),
                // Doubling is exact, so it can follow.
                Expr::Number(2.0) => format!("2.0f * inverse({})", self.value(b)),
                a => format!("divide({}, {})", self.value(a), self.value(b)),
            },
            Expr::Binary(operator, a, b) => {
                let (a, b) = (self.operand(a, x.rank()), self.operand(b, x.rank() + 1));
                let operator = if *operator == '=' { "==" } else { &operator.to_string() };
                format!("{a} {operator} {b}")
            }
            Expr::Select(condition, yes, no) => {
                let (condition, yes, no) = (self.value(condition), self.value(yes), self.value(no));
                self.choice(&condition, &yes, &no)
            }
            Expr::Horner(x, coefficients) => self.horner(&self.value(x), coefficients),
            Expr::Call(name, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(|x| self.value(x)).collect();
                self.call(name, &arguments)
            }
        }
    }

    fn choice(self, condition: &str, yes: &str, no: &str) -> String {
        match self {
            Form::Rust => format!("if {condition} {{ {yes} }} else {{ {no} }}"),
            Form::Glsl => format!("{condition} ? {yes} : {no}"),
        }
    }

    fn horner(self, x: &str, coefficients: &[f32]) -> String {
        match self {
            Form::Rust => {
                let bits = coefficients.iter().map(|c| format!("0x{:08x}", c.to_bits()));
                format!("horner({x}, [{}])", bits.collect::<Vec<_>>().join(", "))
            }
            Form::Glsl => {
                let mut steps = coefficients.iter().rev().map(|c| self.number(*c));
                let highest = steps.next().unwrap();
                steps.fold(highest, |q, c| format!("multiply_add({q}, {x}, {c})"))
            }
        }
    }

    fn call(self, name: &str, arguments: &[String]) -> String {
        let all = arguments.join(", ");
        match (self, name) {
            (_, "min") => self.choice(&format!("{} > {}", arguments[0], arguments[1]), &arguments[1], &arguments[0]),
            (_, "max") => self.choice(&format!("{} < {}", arguments[0], arguments[1]), &arguments[1], &arguments[0]),
            (Form::Rust, "abs") => format!("{all}.abs()"),
            (Form::Rust, "subnormal") => format!("{all} < f32::MIN_POSITIVE"),
            (Form::Rust, "scale_down") => format!("scale({all})"),
            (Form::Rust, _) => format!("{name}({all})"),
            // Kernels have variables with these names.
            (Form::Glsl, "abs") => format!("magnitude_of({all})"),
            (Form::Glsl, "exponent" | "mantissa" | "power") => format!("{name}_of({all})"),
            (Form::Glsl, "scale" | "scale_down") => format!("scale_by_power({all})"),
            (Form::Glsl, "upper") => format!("upper_half({all})"),
            (Form::Glsl, "fmaz") => format!("multiply_add({all})"),
            // A device's comparison may treat a subnormal number as zero.
            (Form::Glsl, "subnormal") => format!("floatBitsToUint({all}) < 0x800000u"),
            (Form::Glsl, _) => format!("{name}({all})"),
        }
    }
}
