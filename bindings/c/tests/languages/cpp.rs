//! C++: enums with their exceptions, one method for each operation, and the code by which its tests call them by name.

use adead_core::OpKind;

use super::{Enum, Kind, NOTE, Operation, Write, capital};

/// Appends an underscore to a keyword of C++.
fn safe(name: &str) -> String {
    if name == "virtual" || name == "bool" { format!("{name}_") } else { name.to_string() }
}

/// include/adead/enums.hpp.
pub fn enums(enums: &[Enum]) -> String {
    let mut text = format!(
        "// {NOTE}\n#ifndef ADEAD_ENUMS_HPP\n#define ADEAD_ENUMS_HPP\n\n#include <adead/base.hpp>\n\n\
         namespace adead {{\ninline namespace ADEAD_HPP_MODE {{\n"
    );
    let to = &mut text;
    for found in enums {
        let (name, prefix) = (found.name(), &found.prefix);
        writeln!(to, "\n/// {}\nenum class {name} : {} {{", capital(&found.about), found.c_type).unwrap();
        for (value, about) in &found.values {
            writeln!(to, "  /// {about}\n  {} = {prefix}{},", safe(value), value.to_uppercase()).unwrap();
        }
        writeln!(to, "}};").unwrap();
        match name.as_str() {
            // The library has names for these.
            "Status" | "DType" | "Op" | "Family" => {
                let function = format!("{}_name", found.c_type);
                writeln!(to, "\n/// Returns the name; NULL for an unknown number.").unwrap();
                writeln!(to, "inline const char *name({name} value) noexcept {{").unwrap();
                writeln!(to, "  return {function}(static_cast<{}>(value));\n}}", found.c_type).unwrap();
            }
            _ => {
                writeln!(to, "\n/// Returns the name; NULL for an unknown number.").unwrap();
                writeln!(to, "constexpr const char *name({name} value) noexcept {{\n  switch (value) {{").unwrap();
                for (value, _) in &found.values {
                    writeln!(to, "    case {name}::{}: return \"{value}\";", safe(value)).unwrap();
                }
                writeln!(to, "  }}\n  return nullptr;\n}}").unwrap();
            }
        }
    }
    let statuses = &enums.iter().find(|found| found.c_type == "adead_status").unwrap().values[1..];
    to.push_str(
        "\n/// Why a call failed: a status and the library's text. Calls throw the class of the status. Without exceptions,\n\
         /// they return this in a Result.\nclass Error : public std::runtime_error {\n public:\n  \
         Error(Status status, const char *text) : std::runtime_error(text), status_(status) {}\n  \
         Status status() const noexcept { return status_; }\n\n private:\n  Status status_;\n};\n",
    );
    let class = |name: &str| name.split('_').map(capital).collect::<String>();
    for (name, about) in statuses {
        writeln!(to, "\n/// {about}\nclass {} : public Error {{\n public:", class(name)).unwrap();
        writeln!(to, "  explicit {}(const char *text) : Error(Status::{name}, text) {{}}\n}};", class(name)).unwrap();
    }
    to.push_str(
        "\n#ifndef ADEAD_NO_EXCEPTIONS\nnamespace detail {\n[[noreturn]] inline void raise(adead_status status, \
         const char *text) {\n  switch (static_cast<Status>(status)) {\n    case Status::ok: break;\n",
    );
    for (name, _) in statuses {
        writeln!(to, "    case Status::{name}: throw {}(text);", class(name)).unwrap();
    }
    to.push_str("  }\n  throw Error(static_cast<Status>(status), text);\n}\n}  // namespace detail\n#endif\n");
    to.push_str("\n}  // namespace ADEAD_HPP_MODE\n}  // namespace adead\n\n#endif\n");
    text
}

fn cpp_type(kind: Kind) -> String {
    match kind {
        Kind::Flag => "std::optional<bool>".into(),
        Kind::Number => "std::optional<float>".into(),
        Kind::Integer => "std::optional<std::int32_t>".into(),
        Kind::Axes => "Permutation".into(),
        Kind::Word(name) => format!("std::optional<{name}>"),
    }
}

/// The parameters of an operation's method.
fn parameters(operation: &Operation, default: &str) -> String {
    let operand = |name: &&str| match operation.repeated {
        true => format!("Array<std::reference_wrapper<const Tensor>> {name}"),
        false => format!("const Tensor &{name}"),
    };
    let mut all: Vec<String> = operation.required.iter().map(operand).collect();
    if operation.has_options() {
        all.push(format!("const {} &options{default}", operation.options()));
    }
    all.join(", ")
}

/// The parameters of an operation's method of a tensor, which is the first operand.
fn more_parameters(operation: &Operation, default: &str) -> String {
    parameters(&Operation { required: operation.required[1..].to_vec(), ..operation.clone() }, default)
}

/// Whether the second operand may be a number.
fn takes_number(operation: &Operation) -> bool {
    matches!(operation.op.kind(), OpKind::Binary | OpKind::Comparison)
}

/// include/adead/options.hpp.
pub fn options(operations: &[Operation]) -> String {
    let mut text = format!(
        "// {NOTE}\n#ifndef ADEAD_OPTIONS_HPP\n#define ADEAD_OPTIONS_HPP\n\n#include <adead/result.hpp>\n\n\
         namespace adead {{\ninline namespace ADEAD_HPP_MODE {{\n\nclass Tensor;\n"
    );
    let to = &mut text;
    for operation in operations.iter().filter(|operation| operation.has_options()) {
        let name = operation.op.name();
        writeln!(to, "\n/// Options of {name}. An option that is left out has the core's default.").unwrap();
        writeln!(to, "struct {} {{", operation.options()).unwrap();
        for (name, kind) in operation.attributes() {
            writeln!(to, "  {} {name} = {{}};", cpp_type(kind)).unwrap();
        }
        for name in &operation.optional {
            writeln!(to, "  const Tensor *{name} = nullptr;").unwrap();
        }
        writeln!(to, "}};").unwrap();
    }
    to.push_str(
        "\n/// Operations as methods of Tensor, which is the first operand: `x.matmul(w).relu()`. They compute on the tensor's\n\
         /// context. A number is rounded to the tensor's dtype. docs/operations.md has shapes, attributes and errors.\nclass TensorMethods {\n public:\n",
    );
    for operation in operations.iter().filter(|operation| !operation.repeated) {
        let (name, parameters) = (operation.op.name(), more_parameters(operation, " = {}"));
        writeln!(to, "  /// {}\n  Returned<Tensor> {name}({parameters}) const;", operation.about).unwrap();
        if takes_number(operation) {
            writeln!(to, "  Returned<Tensor> {name}(double number) const;").unwrap();
        }
    }
    to.push_str(
        "\n private:\n  friend class Tensor;\n  TensorMethods() noexcept = default;\n};\n\n\
         }  // namespace ADEAD_HPP_MODE\n}  // namespace adead\n\n#endif\n",
    );
    text
}

/// include/adead/operations.hpp.
pub fn operations(operations: &[Operation]) -> String {
    let mut text = format!(
        "// {NOTE}\n#ifndef ADEAD_OPERATIONS_HPP\n#define ADEAD_OPERATIONS_HPP\n\n#include <adead/operators.hpp>\n\n\
         namespace adead {{\ninline namespace ADEAD_HPP_MODE {{\n"
    );
    let to = &mut text;
    to.push_str(
        "\n/// Every operation, as a method of Context. docs/operations.md has shapes, attributes and errors.\n\
         class Operations {\n public:\n",
    );
    for operation in operations {
        let (name, parameters) = (operation.op.name(), parameters(operation, " = {}"));
        writeln!(to, "  /// {}\n  Returned<Tensor> {name}({parameters}) const;", operation.about).unwrap();
    }
    to.push_str(
        "\n  /// Runs any operation. NULL is an absent optional operand.\n  \
         Returned<Tensor> run(Op op, Array<const Tensor *> operands, const Attrs &attrs = {}) const {\n    \
         std::vector<const adead_tensor *> handles;\n    \
         for (const Tensor *tensor : operands) handles.push_back(detail::raw(tensor));\n    \
         return run(ADEAD_OK, op, attrs, handles.data(), handles.size());\n  }\n\n protected:\n  \
         friend class TensorMethods;\n  \
         explicit Operations(detail::Shared context) noexcept : context_(std::move(context)) {}\n  \
         Returned<Tensor> run(adead_status status, Op op, const Attrs &attrs, const adead_tensor *const *operands,\n                       \
         std::size_t count) const {\n    \
         adead_tensor *out = nullptr;\n    \
         if (!status) status = adead_op_run(context_.get(), static_cast<adead_op>(op), operands, count, attrs.get(), &out);\n    \
         return detail::done(status, Tensor(out, context_));\n  }\n  detail::Shared context_;\n};\n",
    );
    for operation in operations {
        let (name, parameters) = (operation.op.name(), parameters(operation, ""));
        writeln!(to, "\ninline Returned<Tensor> Operations::{name}({parameters}) const {{").unwrap();
        let operands = if operation.repeated {
            let list = operation.required[0];
            writeln!(to, "  std::vector<const adead_tensor *> operands;").unwrap();
            writeln!(to, "  for (const Tensor &one : {list}) operands.push_back(detail::raw(&one));").unwrap();
            "operands.data(), operands.size()".to_string()
        } else {
            let one = |(name, optional): (&str, bool)| match optional {
                true => format!("detail::raw(options.{name})"),
                false => format!("detail::raw(&{name})"),
            };
            let all: Vec<String> = operation.operands().into_iter().map(one).collect();
            writeln!(to, "  const adead_tensor *operands[] = {{{}}};", all.join(", ")).unwrap();
            format!("operands, {}", all.len())
        };
        let attributes = operation.attributes();
        let status = if attributes.is_empty() {
            "ADEAD_OK"
        } else {
            writeln!(to, "  Attrs attrs;\n  adead_status status = ADEAD_OK;").unwrap();
            for (attribute, _) in &attributes {
                writeln!(to, "  attrs.give(status, Op::{name}, \"{attribute}\", options.{attribute});").unwrap();
            }
            "status"
        };
        let attrs = if attributes.is_empty() { "{}" } else { "attrs" };
        writeln!(to, "  return run({status}, Op::{name}, {attrs}, {operands});\n}}").unwrap();
    }
    for operation in operations.iter().filter(|operation| !operation.repeated) {
        let (name, parameters) = (operation.op.name(), more_parameters(operation, ""));
        let mut passed = vec!["self"];
        passed.extend(&operation.required[1..]);
        passed.extend(operation.has_options().then_some("options"));
        writeln!(to, "\ninline Returned<Tensor> TensorMethods::{name}({parameters}) const {{").unwrap();
        writeln!(to, "  const Tensor &self = static_cast<const Tensor &>(*this);").unwrap();
        writeln!(to, "  return Operations(self.context()).{name}({});\n}}", passed.join(", ")).unwrap();
        if takes_number(operation) {
            writeln!(to, "inline Returned<Tensor> TensorMethods::{name}(double number) const {{").unwrap();
            writeln!(to, "  return detail::apply(Op::{name}, static_cast<const Tensor &>(*this), number);\n}}")
                .unwrap();
        }
    }
    to.push_str("\n}  // namespace ADEAD_HPP_MODE\n}  // namespace adead\n\n#endif\n");
    text
}

/// The arms of a switch that call operations' own methods on `on`, a context or a pipeline.
fn calls(operations: &[Operation], on: &str) -> String {
    let mut text = String::new();
    let recorded = on == "pipeline";
    for operation in operations {
        let name = operation.op.name();
        writeln!(text, "    case adead::Op::{name}: {{").unwrap();
        let mut arguments: Vec<String> = Vec::new();
        if operation.repeated {
            let (element, first) = match recorded {
                true => ("adead::PipelineOperand", 1), // The previous result is the first one.
                false => ("std::reference_wrapper<const adead::Tensor>", 0),
            };
            writeln!(text, "      std::vector<{element}> all;").unwrap();
            writeln!(text, "      for (std::size_t i = {first}; i < count; i++) all.push_back(*in(i));").unwrap();
            arguments.push("all".into());
        }
        if operation.has_options() {
            writeln!(text, "      adead::{} options;", operation.options()).unwrap();
        }
        for (attribute, _) in operation.attributes() {
            writeln!(text, "      attr(\"{attribute}\", options.{attribute});").unwrap();
        }
        for (i, (operand, optional)) in operation.operands().into_iter().enumerate() {
            match optional {
                true if recorded => {
                    writeln!(text, "      if (in({i}) && !in({i})->tensor()) return false;").unwrap();
                    writeln!(text, "      options.{operand} = in({i}) ? in({i})->tensor() : nullptr;").unwrap();
                }
                true => writeln!(text, "      options.{operand} = in({i});").unwrap(),
                false if operation.repeated => {}
                false => arguments.push(format!("*in({i})")),
            }
        }
        if operation.has_options() {
            arguments.push("options".into());
        }
        let arguments = arguments.join(", ");
        match recorded {
            true => {
                let begin = if operation.repeated { "pipeline.begin(*in(0))" } else { "pipeline" };
                writeln!(text, "      return said() && (void({begin}.{name}({arguments})), true);\n    }}").unwrap();
            }
            false => {
                if !operation.repeated {
                    let rest = arguments.strip_prefix("*in(0)").unwrap().trim_start_matches(", ");
                    writeln!(text, "      if (of_tensor) return in(0)->{name}({rest});").unwrap();
                }
                writeln!(text, "      return {on}.{name}({arguments});\n    }}").unwrap();
            }
        }
    }
    text
}

/// bindings/cpp/tests/typed.hpp: a conformance case as a call of its operation's own method.
pub fn typed(operations: &[Operation]) -> String {
    let mut text = format!(
        "// {NOTE}\n#ifndef TYPED_HPP\n#define TYPED_HPP\n\n#include <adead.hpp>\n\n\
         /// Calls an operation's own method. `in(i)` is operand i, or NULL; `attr(name, to)` sets an attribute if it is given.\n\
         /// The method is that of the first operand if `of_tensor` says so, else that of the context.\n\
         template <class In, class Attr>\n\
         adead::Returned<adead::Tensor> typed(const adead::Context &context, adead::Op op, std::size_t count, In in, Attr attr,\n                                     \
         bool of_tensor) {{\n  \
         (void)count;\n  (void)attr;\n  switch (op) {{\n"
    );
    text.push_str(&calls(operations, "context"));
    text.push_str(
        "  }\n  return context.run(op, {});\n}\n\n\
         /// Records an operation by its own method. Returns false if only `op` can record it: an optional operand is not a tensor,\n\
         /// or `said` refuses the attributes.\n\
         template <class In, class Attr, class Said>\n\
         bool recorded(adead::Pipeline &pipeline, adead::Op op, std::size_t count, In in, Attr attr, Said said) {\n  \
         (void)count;\n  (void)attr;\n  switch (op) {\n",
    );
    text.push_str(&calls(operations, "pipeline"));
    text.push_str(
        "  }\n  return false;\n}\n\n\
         /// Whether an operation's own method accepts these operands: all required ones, and no surplus.\n\
         template <class In>\nbool fits(adead::Op op, std::size_t count, In in) {\n  switch (op) {\n",
    );
    for operation in operations {
        let name = operation.op.name();
        if operation.repeated {
            writeln!(text, "    case adead::Op::{name}:").unwrap();
            writeln!(text, "      for (std::size_t i = 0; i < count; i++) {{\n        if (!in(i)) return false;")
                .unwrap();
            writeln!(text, "      }}\n      return true;").unwrap();
            continue;
        }
        let operands = operation.operands();
        let mut needs = vec![format!("count <= {}", operands.len())];
        needs.extend(operands.iter().enumerate().filter(|(_, operand)| !operand.1).map(|(i, _)| format!("in({i})")));
        writeln!(text, "    case adead::Op::{name}: return {};", needs.join(" && ")).unwrap();
    }
    text.push_str("  }\n  return false;\n}\n\n#endif\n");
    text
}

/// include/adead/pipeline.hpp.
pub fn pipeline(operations: &[Operation]) -> String {
    let mut text = format!(
        "// {NOTE}\n#ifndef ADEAD_PIPELINE_HPP\n#define ADEAD_PIPELINE_HPP\n\n#include <adead/recorder.hpp>\n\n\
         namespace adead {{\ninline namespace ADEAD_HPP_MODE {{\n\n\
         /// Records operations and runs them as a whole: docs/pipelines.md. Each method takes the previous result. The first\n\
         /// names all operands, or follows begin() or input(). After an error, methods do nothing, and execute() or\n\
         /// compile() returns it. One thread at a time may use it.\n\
         class Pipeline : public Recorder {{\n public:\n  \
         explicit Pipeline(detail::Shared context) : Recorder(std::move(context)) {{}}\n\n  \
         /// Continues with a tensor or an earlier value.\n  \
         Pipeline &begin(const PipelineOperand &operand) {{ return Recorder::begin(operand), *this; }}\n  \
         /// Continues with a tensor that is passed at each run.\n  \
         Pipeline &input(DType dtype, Array<std::size_t> dims) {{ return Recorder::input(dtype, dims), *this; }}\n  \
         /// Reshapes the value.\n  \
         Pipeline &reshape(Array<std::size_t> dims) {{ return Recorder::reshape(dims), *this; }}\n  \
         /// Makes the value an output. Compiled::run_all returns all outputs.\n  \
         Pipeline &output() {{ return Recorder::output(), *this; }}\n  \
         /// Calls a function when gradients() records the gradient of the current value. The gradient is then this pipeline's\n  \
         /// current value, and the value that the function leaves takes its place. The pipeline must not move meanwhile.\n  \
         Pipeline &hook(std::function<void(Pipeline &)> function) {{\n    \
         Recorder::hook([function = std::move(function)](Recorder &self) {{ function(static_cast<Pipeline &>(self)); }});\n    \
         return *this;\n  }}\n  \
         /// Records any operation, with all operands in its order; Value() is an absent one. Needed for an optional\n  \
         /// operand that is itself computed.\n  \
         Pipeline &op(Op what, Array<PipelineOperand> operands, const Attrs &attrs = {{}}) {{\n    \
         return Recorder::op(what, operands, attrs), *this;\n  }}\n  \
         /// Adds a row to a matrix product, as a part of it.\n  \
         Pipeline &bias(const PipelineOperand &row) {{ return add(row); }}\n"
    );
    let to = &mut text;
    for operation in operations {
        let name = operation.op.name();
        // The previous result is the first operand. If there is none, the overload with all operands starts with it.
        let rest = if operation.repeated { &operation.required[..] } else { &operation.required[1..] };
        let operand = |name: &&str| match operation.repeated {
            true => format!("Array<PipelineOperand> {name}"),
            false => format!("const PipelineOperand &{name}"),
        };
        let list = |names: &[&'static str], options: bool| {
            let mut all: Vec<String> = names.iter().map(operand).collect();
            if options && operation.has_options() {
                all.push(format!("const {} &options = {{}}", operation.options()));
            }
            all.join(", ")
        };
        writeln!(to, "\n  /// {}\n  Pipeline &{name}({}) {{", operation.about, list(rest, true)).unwrap();
        let attributes = operation.attributes();
        let (status, attrs) = if attributes.is_empty() { ("ADEAD_OK", "{}") } else { ("status", "attrs") };
        if !attributes.is_empty() {
            writeln!(to, "    Attrs attrs;\n    adead_status status = ADEAD_OK;").unwrap();
            for (attribute, _) in &attributes {
                writeln!(to, "    attrs.give(status, Op::{name}, \"{attribute}\", options.{attribute});").unwrap();
            }
        }
        if operation.repeated {
            writeln!(to, "    std::vector<Value> all;").unwrap();
            writeln!(to, "    for (const PipelineOperand &one : {}) all.push_back(of(one));", rest[0]).unwrap();
            writeln!(to, "    return then({status}, Op::{name}, {attrs}, all), *this;\n  }}").unwrap();
            continue;
        }
        let value = |(name, optional)| if optional { format!("of(options.{name})") } else { format!("of({name})") };
        let all: Vec<String> = operation.operands().into_iter().skip(1).map(value).collect();
        writeln!(to, "    return then({status}, Op::{name}, {attrs}, {{{}}}), *this;\n  }}", all.join(", ")).unwrap();
        let first = operation.required[0];
        let options = if operation.has_options() { "options" } else { "" };
        let passed: Vec<&str> = rest.iter().copied().chain(Some(options).filter(|name| !name.is_empty())).collect();
        let parameters = list(&operation.required, true);
        writeln!(to, "  Pipeline &{name}({parameters}) {{").unwrap();
        writeln!(to, "    return begin({first}).{name}({});\n  }}", passed.join(", ")).unwrap();
    }
    to.push_str("};\n\n}  // namespace ADEAD_HPP_MODE\n}  // namespace adead\n\n#endif\n");
    text
}
