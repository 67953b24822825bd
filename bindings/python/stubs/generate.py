"""Writes python/adead/_adead.pyi: _adead.pyi.in with the operations and errors that the module has.

    python generate.py          writes it
    python generate.py --check  compares it instead; exits with 1 where it differs
"""

import argparse
import inspect
import pathlib
import sys

import adead

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "python/adead/_adead.pyi"

# What an attribute is, by its name in core's table. None is core's default.
ATTRIBUTES = {
    "trans_a": "bool",
    "trans_b": "bool",
    "keepdim": "bool",
    "causal": "bool",
    "interleaved": "bool",
    "alpha": "float",
    "beta": "float",
    "eps": "float",
    "scale": "float",
    "min": "float",
    "max": "float",
    "axis": "_Axis",
    "k": "int",
    "axes": "Sequence[int]",
    "dtype": "_AnyDType",
    "form": 'Literal["erf", "tanh"]',
    "activation": "_Activation",
    "precision": 'Literal["f32", "fixed24", "fixed16"]',
    "perm": "Sequence[int]",
    "start": "Sequence[int]",
    "stop": "Sequence[int]",
    "step": "Sequence[int]",
    "before": "Sequence[int]",
    "after": "Sequence[int]",
}


# The methods of Pipeline and their operations.
PIPELINE = [*zip(adead.OPERATIONS, adead.OPERATIONS), ("bias", "add")]


def literal(words):
    return "Literal[" + ", ".join(f'"{word}"' for word in words) + "]"


def kind(op, name, parameter, operand="_Operand"):
    """The type of a parameter, where an operand may be of that type."""
    # layernorm's beta is an operand, matmul's an attribute; attention's k is one, topk's an attribute.
    if name in ATTRIBUTES and (op, name) not in (("layernorm", "beta"), ("attention", "k")):
        return ATTRIBUTES[name] + " | None"
    if op == "concat":
        return f"Sequence[{operand}]"
    # What is packed is no constant of a pipeline.
    if (op, name) == ("matmul", "b") and operand == "_Operand":
        operand = "_Operand | Packed"
    # ffn's first bias may be None, but something must stand there.
    optional = parameter.default is None or (op, name) == ("ffn", "b1")
    return operand + " | None" if optional else operand


def function(op, owner, indent):
    """The definition of an operation in a class, or in the module."""
    parameters = inspect.signature(getattr(owner, op)).parameters
    parts = ["self"] if indent else []
    for name, parameter in parameters.items():
        if name != "self":
            default = " = None" if parameter.default is None else ""
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
            default = " = None" if parameter.default is None else ""
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
        f"class {error.__name__}({'Exception' if error is adead.Error else 'Error'}):\n"
        + ("    status: ClassVar[int]\n    code: ClassVar[str]\n" if error is adead.Error else "    ...\n")
        for error in classes
    )


def stub():
    text = (HERE / "_adead.pyi.in").read_text()
    words = "\n".join(
        f"type {name} = {literal(values)}"
        for name, values in [("_DType", adead.DTYPES), ("_Family", adead.FAMILIES), ("_Activation", adead.ACTIVATIONS)]
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
