//! Zig: enums with the error set, one method for each operation.

use super::{Enum, Kind, NOTE, Operation, Write, capital};

/// bindings/zig/src/enums.zig.
pub fn enums(enums: &[Enum]) -> String {
    let mut text = format!("// {NOTE}\nconst c = @import(\"c\");\nconst failure = @import(\"failure.zig\");\n");
    let to = &mut text;
    for found in enums {
        let (name, prefix) = (found.name(), &found.prefix);
        writeln!(to, "\n/// {}\npub const {name} = enum(c.{}) {{", capital(&found.about), found.c_type).unwrap();
        for (value, about) in &found.values {
            // `error` is a keyword; std.log has this name.
            let name = if value == "error" { "err" } else { value };
            writeln!(to, "    /// {about}\n    {name} = c.{prefix}{},", value.to_uppercase()).unwrap();
        }
        writeln!(to, "    _,\n}};").unwrap();
    }
    let statuses = &enums.iter().find(|found| found.c_type == "adead_status").unwrap().values[1..];
    let error = |name: &str| name.split('_').map(capital).collect::<String>();
    writeln!(to, "\n/// Why a call failed: one error for each status. `lastError()` has the text.").unwrap();
    writeln!(to, "pub const Error = error{{").unwrap();
    for (name, about) in statuses {
        writeln!(to, "    /// {about}\n    {},", error(name)).unwrap();
    }
    writeln!(
        to,
        "}};\n\n/// Returns the error of a status, or nothing.\npub fn check(status: c.adead_status) Error!void {{"
    )
    .unwrap();
    writeln!(to, "    if (status != c.ADEAD_OK) failure.ofLibrary();").unwrap();
    writeln!(to, "    return switch (@as(Status, @enumFromInt(status))) {{\n        .ok => {{}},").unwrap();
    for (name, _) in statuses {
        writeln!(to, "        .{name} => error.{},", error(name)).unwrap();
    }
    writeln!(
        to,
        "        // The status of a newer library; its text explains it.\n        _ => error.Internal,\n    }};\n}}"
    )
    .unwrap();
    writeln!(to, "\n/// The status of an error.\npub fn statusOf(err: Error) Status {{\n    return switch (err) {{")
        .unwrap();
    for (name, _) in statuses {
        writeln!(to, "        error.{} => .{name},", error(name)).unwrap();
    }
    writeln!(to, "    }};\n}}").unwrap();
    defaults(to);
    text
}

fn zig_type(kind: Kind) -> String {
    match kind {
        Kind::Flag => "?bool".into(),
        Kind::Number => "?f32".into(),
        Kind::Integer => "?i32".into(),
        Kind::Axes => "?[]const i32".into(),
        Kind::Word(name) => format!("?enums.{name}"),
    }
}

/// An operand as a parameter. In Zig it may not have the name of a function in the same scope.
fn parameter(name: &str, operations: &[Operation]) -> String {
    let taken = operations.iter().any(|operation| operation.op.name() == name);
    if taken { format!("{name}_") } else { name.to_string() }
}

/// bindings/zig/src/operations.zig.
pub fn operations(operations: &[Operation]) -> String {
    let mut text = format!(
        "// {NOTE}\n//\n// Every operation, as a method of Context. docs/operations.md has shapes, attributes and errors.\n\
         // A null option has the core's default.\nconst enums = @import(\"enums.zig\");\n\
         const Attrs = @import(\"tensor.zig\").Attrs;\nconst Context = @import(\"context.zig\").Context;\n\
         const Error = enums.Error;\nconst Tensor = @import(\"tensor.zig\").Tensor;\n"
    );
    let to = &mut text;
    for operation in operations.iter().filter(|operation| operation.has_options()) {
        writeln!(to, "\n/// Options of {}.", operation.op.name()).unwrap();
        writeln!(to, "pub const {} = struct {{", operation.options()).unwrap();
        for (name, kind) in operation.attributes() {
            writeln!(to, "    {name}: {} = null,", zig_type(kind)).unwrap();
        }
        for name in &operation.optional {
            writeln!(to, "    {name}: Tensor = .none,").unwrap();
        }
        writeln!(to, "}};").unwrap();
    }
    for operation in operations {
        let name = operation.op.name();
        let mut parameters = vec!["ctx: Context".to_string()];
        for operand in &operation.required {
            let of = if operation.repeated { "[]const Tensor" } else { "Tensor" };
            parameters.push(format!("{}: {of}", parameter(operand, operations)));
        }
        if operation.has_options() {
            parameters.push(format!("options: {}", operation.options()));
        }
        writeln!(to, "\n/// {}\npub fn {name}({}) Error!Tensor {{", operation.about, parameters.join(", ")).unwrap();
        let attributes = operation.attributes();
        if !attributes.is_empty() {
            writeln!(to, "    var attrs: Attrs = .{{}};\n    defer attrs.deinit();").unwrap();
        }
        for (attribute, _) in &attributes {
            writeln!(to, "    try attrs.give(.{name}, \"{attribute}\", options.{attribute});").unwrap();
        }
        let one = |(name, optional): (&str, bool)| match optional {
            true => format!("options.{name}"),
            false => parameter(name, operations),
        };
        let operands: Vec<String> = operation.operands().into_iter().map(one).collect();
        let operands = match &operands[..] {
            [list] if operation.repeated => list.clone(),
            [one] => format!("&.{{{one}}}"),
            all => format!("&.{{ {} }}", all.join(", ")),
        };
        let attrs = if attributes.is_empty() { ".{}" } else { "attrs" };
        writeln!(to, "    return ctx.run(.{name}, {operands}, {attrs});\n}}").unwrap();
    }
    text
}

/// bindings/zig/src/context.zig, with the names of Context's operations between two fixed lines.
pub fn context(found: &str, operations: &[Operation]) -> String {
    const BEGIN: &str = "    // Operations, generated as operations.zig is:\n";
    const END: &str = "    // Until here.\n";
    let (before, rest) = found.split_once(BEGIN).expect("context.zig has no line before the operations");
    let (_, after) = rest.split_once(END).expect("context.zig has no line after the operations");
    let mut text = before.to_string() + BEGIN;
    for operation in operations {
        let name = operation.op.name();
        writeln!(text, "    pub const {name} = operations.{name};").unwrap();
    }
    text + END + after
}

/// bindings/zig/tests/typed.zig: a conformance case as a call of its operation's own method.
pub fn typed(operations: &[Operation]) -> String {
    let mut text = format!(
        "// {NOTE}\nconst adead = @import(\"adead\");\nconst Tensor = adead.Tensor;\n\n\
         /// Calls an operation's own method with operands that fit; `attrs.take(name, &option)` sets an option if it is given.\n\
         pub fn typed(ctx: adead.Context, op: adead.Op, operands: []const Tensor, attrs: anytype) adead.Error!Tensor {{\n    \
         switch (op) {{\n"
    );
    for operation in operations {
        let name = operation.op.name();
        writeln!(text, "        .{name} => {{").unwrap();
        if operation.has_options() {
            writeln!(text, "            var options: adead.operations.{} = .{{}};", operation.options()).unwrap();
        }
        for (attribute, _) in operation.attributes() {
            writeln!(text, "            attrs.take(\"{attribute}\", &options.{attribute});").unwrap();
        }
        let mut arguments = Vec::new();
        for (i, (operand, optional)) in operation.operands().into_iter().enumerate() {
            match optional {
                true => {
                    writeln!(text, "            if (operands.len > {i}) options.{operand} = operands[{i}];").unwrap()
                }
                false if operation.repeated => arguments.push("operands".to_string()),
                false => arguments.push(format!("operands[{i}]")),
            }
        }
        if operation.has_options() {
            arguments.push("options".into());
        }
        writeln!(text, "            return ctx.{name}({});\n        }},", arguments.join(", ")).unwrap();
    }
    text.push_str(
        "        _ => return error.Internal,\n    }\n}\n\n\
         /// Whether an operation's own method accepts these operands: all required ones, and no surplus.\n\
         pub fn fits(op: adead.Op, operands: []const Tensor) bool {\n    const there = struct {\n        \
         fn at(all: []const Tensor, i: usize) bool {\n            return i < all.len and all[i].handle != null;\n        \
         }\n    }.at;\n    return switch (op) {\n",
    );
    for operation in operations {
        let name = operation.op.name();
        if operation.repeated {
            writeln!(text, "        .{name} => for (operands) |one| {{").unwrap();
            writeln!(text, "            if (one.handle == null) break false;\n        }} else true,").unwrap();
            continue;
        }
        let operands = operation.operands();
        let mut needs = vec![format!("operands.len <= {}", operands.len())];
        let required = operands.iter().enumerate().filter(|(_, operand)| !operand.1);
        needs.extend(required.map(|(i, _)| format!("there(operands, {i})")));
        writeln!(text, "        .{name} => {},", needs.join(" and ")).unwrap();
    }
    text.push_str("        _ => false,\n    };\n}\n");
    text
}

/// The header's `ADEAD_…_OPTIONS_INIT`, which Zig can't translate: the values in the order of the struct's fields.
fn defaults(to: &mut String) {
    let header = std::fs::read_to_string(super::root().join("include/adead.h")).unwrap();
    for line in header.lines().filter(|line| line.starts_with("#define") && line.contains("_OPTIONS_INIT {")) {
        let (_, values) = line.split_once("{ sizeof(").unwrap();
        let (c_type, values) = values.split_once("), ").unwrap();
        let body = header.split_once(&format!("}} {c_type};")).unwrap().0.rsplit_once("typedef struct {").unwrap().1;
        let fields = body.lines().map(str::trim).filter(|line| line.ends_with(';'));
        let mut names: Vec<&str> =
            fields.map(|field| field.trim_end_matches(';').rsplit([' ', '*']).next().unwrap()).collect();
        assert_eq!(names.remove(0), "struct_size");
        let values: Vec<&str> = values.trim_end_matches(" }").split(", ").collect();
        assert_eq!(names.len(), values.len(), "{c_type}");
        let name = c_type.strip_prefix("adead_").unwrap();
        writeln!(to, "\n/// The defaults of {c_type}.\npub const {name}: c.{c_type} = .{{").unwrap();
        writeln!(to, "    .struct_size = @sizeOf(c.{c_type}),").unwrap();
        for (name, value) in names.iter().zip(values) {
            let value = value.trim_start_matches("(size_t)").trim_end_matches('f').to_string();
            let value = match value.as_str() {
                "NULL" => "null".to_string(),
                constant if constant.starts_with("ADEAD_") => format!("c.{constant}"),
                _ => value,
            };
            writeln!(to, "    .{name} = {value},").unwrap();
        }
        writeln!(to, "}};").unwrap();
    }
}
