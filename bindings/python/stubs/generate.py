"""Writes python/adead/_adead.pyi: _adead.pyi.in with the operations and errors that the module has, and the properties in its sources.

    python generate.py          writes it
    python generate.py --check  compares it instead; exits with 1 where it differs
"""

import argparse
import inspect
import pathlib
import re
import sys

import adead

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "python/adead/_adead.pyi"

# What an attribute is, by its name in core's table. None is core's default.
ATTRIBUTES = {
    "trans_a": "bool",
    "trans_b": "bool",
    "keepdim": "bool",
    "keepdims": "bool",
    "causal": "bool",
    "interleaved": "bool",
    "alpha": "float",
    "beta": "float",
    "eps": "float",
    "scale": "float",
    "min": "float",
    "max": "float",
    "axis": "_Axis",
    "reduced": "_Axis | Sequence[int]",
    "k": "int",
    "axes": "Sequence[int]",
    "dtype": "_AnyDType",
    "form": 'Literal["erf", "tanh"]',
    "activation": "_Activation",
    "precision": 'Literal["f32", "fixed24", "fixed16"]',
    "format": "_BlockFormat",
    "perm": "Sequence[int]",
    "start": "Sequence[int]",
    "stop": "Sequence[int]",
    "step": "Sequence[int]",
    "before": "Sequence[int]",
    "after": "Sequence[int]",
}


# The methods of Pipeline and their operations.
PIPELINE = [*zip(adead.OPERATIONS, adead.OPERATIONS), ("bias", "add")]


# The axes of reductions that take several at once, and the operands that may be numbers.
REDUCED = [(op, "axis") for op in ("sum", "mean", "max", "min", "prod")]
NUMBERS = [(op, name) for op in "add sub mul div maximum minimum pow equal not_equal less less_equal greater greater_equal where".split() for name in "ab"]


# The types of properties that say more than those in Rust, by the property's name, or by its class's and its own.
PROPERTIES = {
    "dtype": "_DType",
    "family": "_Family",
    "shape": "tuple[int, ...]",
    "Tensor.dtype": "_DTypeObject",
    "Packed.shape": "tuple[int, int]",
    "Compiled.inputs": "list[_Described]",
    "Compiled.outputs": "list[_Described]",
    "Device.contract": 'Literal["native", "emulated"]',
    "Device.kind": 'Literal["cpu", "discrete", "integrated", "virtual", "software"]',
    "Outcome.outputs": "dict[str, Tensor]",
    "Program.format": 'Literal["adead", "agpu", "hex", "ahyb", "text"]',
    "Program.symbols": "dict[str, int]",
    "precision": ATTRIBUTES["precision"],
    "Slot.direction": 'Literal["in", "out", "both"]',
    "Survey.alone_ns": "dict[str, float]",
}

# Python's types for Rust's.
TYPES = {"String": "str", "str": "str", "OsString": "str", "bool": "bool", "f32": "float", "f64": "float"}
TYPES |= dict.fromkeys(("usize", "u8", "u16", "u32", "u64", "i32", "i64"), "int")

CLASS = re.compile(
    r'#\[pyclass\(([^\]]*)name = "(\w+)"[^\]]*\)\]\n(?:#\[derive[^\n]*\n)?pub struct (\w+)( \{\n.*?^\})?', re.M | re.S
)
METHODS = re.compile(r"#\[pymethods\]\nimpl (\w+) \{\n(.*?)^\}", re.M | re.S)
GETTER = re.compile(r"#\[getter(?:\((\w+)\))?\]\n    fn (\w+)[^(]*\([^)]*\) -> (.+) \{")
SETTER = re.compile(r"#\[setter\]\n    fn set_(\w+)")
FIELD = re.compile(r"^    (?:pub )?(\w+): (.+),", re.M)


def python(rust, classes):
    """Python's type for one of Rust's."""
    rust = re.sub(r"&('\w+ )?|'\w+, ", "", rust.strip())
    if rust in classes:
        return classes[rust]
    if rust.startswith("("):
        return f"tuple[{', '.join(python(part, classes) for part in rust[1:-1].split(','))}]"
    outer, _, inner = rust.partition("<")
    if not inner:
        return TYPES[rust]
    inner = python(inner[:-1], classes)
    return {"Vec": f"list[{inner}]", "Option": f"{inner} | None"}.get(outer, inner)


def properties():
    """The properties of each class, from the module's sources."""
    texts = [path.read_text() for path in sorted((HERE.parent / "src").rglob("*.rs"))]
    found = [match for text in texts for match in CLASS.findall(text)]
    classes = {rust: name for _, name, rust, _ in found}
    listed = {name: FIELD.findall(fields) if "get_all" in kind else [] for kind, name, _, fields in found}
    settable = set()
    for rust, body in (methods for text in texts for methods in METHODS.findall(text)):
        listed[classes[rust]] += [(named or function, result) for named, function, result in GETTER.findall(body)]
        settable |= {(classes[rust], name) for name in SETTER.findall(body)}

    def line(owner, name, rust):
        kind = PROPERTIES.get(f"{owner}.{name}") or PROPERTIES.get(name) or python(rust, classes)
        if (owner, name) in settable:
            return f"    {name}: {kind}\n"
        return f"    @property\n    def {name}(self) -> {kind}: ...\n"

    return {owner: "".join(line(owner, *each) for each in members) for owner, members in listed.items()}


def literal(words):
    return "Literal[" + ", ".join(f'"{word}"' for word in words) + "]"


def named_only(parameter, parts):
    """What stands before the first parameter that only has a name."""
    return ["*"] if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts else []


def written(default):
    """A default as the stub has it, in double quotes."""
    return f'"{default}"' if isinstance(default, str) else repr(default)


def kind(op, name, parameter, operand="_Operand"):
    """The type of a parameter, where an operand may be of that type."""
    if (op, name) in REDUCED:
        name = "reduced"
    # layernorm's beta is an operand, matmul's an attribute; attention's k is one, topk's an attribute.
    if name in ATTRIBUTES and (op, name) not in (("layernorm", "beta"), ("attention", "k")):
        return ATTRIBUTES[name] + " | None"
    if op == "concat":
        return f"Sequence[{operand}]"
    # What is packed is no constant of a pipeline.
    if (op, name) == ("matmul", "b") and operand == "_Operand":
        operand = "_Operand | Packed"
    if (op, name) in NUMBERS and operand == "_Operand":
        operand = "_Operand | _Number"
    # ffn's first bias may be None, but something must stand there.
    optional = parameter.default is None or (op, name) == ("ffn", "b1")
    return operand + " | None" if optional else operand


def function(op, owner, indent):
    """The definition of an operation in a class, or in the module."""
    parameters = inspect.signature(getattr(owner, op)).parameters
    parts = ["self"] if indent else []
    for name, parameter in parameters.items():
        if name != "self":
            parts += named_only(parameter, parts)
            default = "" if parameter.default is parameter.empty else f" = {written(parameter.default)}"
            parts.append(f"{name}: {kind(op, name, parameter)}{default}")
    return definition(op, parts, "Tensor", indent)


def definition(name, parts, result, indent):
    line = f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."
    if len(line) <= 120:
        return line
    rows = "".join(f"\n{indent}    {part}," for part in parts)
    return f"{indent}def {name}({rows}\n{indent}) -> {result}: ..."


def recorded(name, op):
    """The definitions of an operation in Pipeline: behind a value, and with all operands where there is none."""
    parts = []
    for parameter in inspect.signature(getattr(adead.Context, op)).parameters.values():
        if parameter.name != "self":
            parts += named_only(parameter, parts)
            default = "" if parameter.default is parameter.empty else f" = {written(parameter.default)}"
            parts.append(f"{parameter.name}: {kind(op, parameter.name, parameter, '_Recorded')}{default}")
    if op == "concat":
        return definition(name, ["self", *parts], "Pipeline", "    ")
    forms = [["self", *parts[1:]], ["self", *parts]]
    return "\n".join("    @overload\n" + definition(name, form, "Pipeline", "    ") for form in forms)


def functions(owner, indent=""):
    return "\n".join(function(op, owner, indent) for op in adead.OPERATIONS if hasattr(owner, op))


def errors():
    classes = [getattr(adead, name) for name in adead.__all__ if name.endswith("Error")]
    classes.sort(key=lambda error: error.status)
    return "\n".join(
        f"class {error.__name__}({', '.join(base.__name__ for base in error.__bases__)}):\n"
        + ("    status: ClassVar[int]\n    code: ClassVar[str]\n" if error is adead.Error else "    ...\n")
        for error in classes
    )


def stub():
    text = (HERE / "_adead.pyi.in").read_text()
    words = "\n".join(
        f"type {name} = {literal(values)}"
        for name, values in [("_DType", adead.DTYPES), ("_Family", adead.FAMILIES), ("_Activation", adead.ACTIVATIONS), ("_BlockFormat", adead.BLOCK_FORMATS)]
    )
    names = "\n".join(f'    "{name}",' for name in adead._adead.__all__)
    replacements = {
        "# all:\n": f"__all__ = [\n{names}\n]\n",
        "# words:\n": words + "\n",
        "# errors:\n": errors(),
        "    # operations: Tensor\n": functions(adead.Tensor, "    ") + "\n",
        "    # operations: Pipeline\n": "\n".join(recorded(*names) for names in PIPELINE) + "\n",
        "    # operations: Context\n": functions(adead.Context, "    ") + "\n",
        "# operations: module\n": functions(adead) + "\n",
    }
    for marker, replacement in replacements.items():
        if text.count(marker) != 1:
            sys.exit(f"_adead.pyi.in: '{marker.strip()}' must be there once")
        text = text.replace(marker, replacement)
    for owner, each in properties().items():
        # A class of the template has its properties first; one of properties alone is not in it.
        head = re.search(rf"^class _?{owner}\b.*:\n", text, re.M)
        if head:
            text = text[: head.end()] + each + text[head.end() :]
        elif each:
            text += f"\n@final\nclass {owner}:\n{each}"
    first = "# Made by stubs/generate.py of _adead.pyi.in and the module; edit those.\n"
    return first + text[text.index("\n") + 1 :]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    made = stub()
    if not parser.parse_args().check:
        TARGET.write_text(made)
    elif not TARGET.exists() or TARGET.read_text() != made:
        sys.exit(f"{TARGET.name} differs from what stubs/generate.py makes: run it")


if __name__ == "__main__":
    main()
