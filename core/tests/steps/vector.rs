//! The form on vectors, which is generic over the instruction set.

use crate::parse::{Expr, Function, Line};

/// Writes a function.
pub fn function(function: &Function) -> String {
    let mut text = String::new();
    for line in &function.comment {
        text += &format!("/// {line}\n");
    }
    let parameters = function.parameters.iter().map(|name| format!("{name}: S::F")).collect::<Vec<_>>().join(", ");
    let result = match function.results.len() {
        1 => "S::F".to_string(),
        count => format!("({})", vec!["S::F"; count].join(", ")),
    };
    text += &format!("#[inline(always)]\npub unsafe fn {}<S: Simd>({parameters}) -> {result} {{\n", function.name);
    text += "    // SAFETY: see the top of the file.\n    unsafe {\n";
    for line in &function.lines {
        text += &match line {
            Line::Comment(comment) => format!("        // {comment}\n"),
            Line::Let(names, x) => match names.as_slice() {
                [name] => format!("        let {name} = {};\n", value(x)),
                names => format!("        let ({}) = {};\n", names.join(", "), value(x)),
            },
        };
    }
    let results = function.results.iter().map(value).collect::<Vec<_>>().join(", ");
    text +=
        &if function.results.len() == 1 { format!("        {results}\n") } else { format!("        ({results})\n") };
    text + "    }\n}\n"
}

fn value(x: &Expr) -> String {
    match x {
        Expr::Number(x) if x.fract() == 0.0 && x.abs() < 1e7 || x.abs() == 0.5 => format!("S::splat({x:?})"),
        Expr::Number(x) => format!("c::<S>(0x{:08x})", x.to_bits()),
        Expr::Name(name) => name.clone(),
        Expr::Minus(x) => format!("neg::<S>({})", value(x)),
        Expr::Binary('>', a, b) => format!("S::lt({}, {})", value(b), value(a)),
        Expr::Binary(operator, a, b) => {
            let name = match operator {
                '+' => "add",
                '-' => "sub",
                '*' => "mul",
                '/' => "div",
                '<' => "lt",
                _ => "eq",
            };
            format!("S::{name}({}, {})", value(a), value(b))
        }
        Expr::Select(condition, yes, no) => format!("S::select({}, {}, {})", value(condition), value(yes), value(no)),
        Expr::Exact(x) => exact(x),
        Expr::Horner(x, coefficients) => {
            let bits = coefficients.iter().map(|c| format!("0x{:08x}", c.to_bits())).collect::<Vec<_>>().join(", ");
            format!("horner::<S, {}>({}, [{bits}])", coefficients.len(), value(x))
        }
        Expr::Call(name, arguments) => {
            let all = arguments.iter().map(value).collect::<Vec<_>>().join(", ");
            match name.as_str() {
                "min" | "max" => format!("S::{name}({all})"),
                "fmaz" => format!("S::fma({all})"),
                _ => format!("{name}::<S>({all})"),
            }
        }
    }
}

/// A product that is exact may be fused with the sum, so it is, where that is one instruction.
fn exact(x: &Expr) -> String {
    match x {
        Expr::Call(_, arguments) => {
            format!("S::mul_add_exact({})", arguments.iter().map(value).collect::<Vec<_>>().join(", "))
        }
        Expr::Binary(_, c, product) => {
            let Expr::Binary(_, a, b) = &**product else { unreachable!("the parser saw a product") };
            let b = match &**b {
                Expr::Number(b) => Expr::Number(-b),
                b => Expr::Minus(Box::new(b.clone())),
            };
            format!("S::mul_add_exact({}, {}, {})", value(a), value(&b), value(c))
        }
        _ => unreachable!("the parser saw a sum or a fused step"),
    }
}
