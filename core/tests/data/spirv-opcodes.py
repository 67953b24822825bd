#!/usr/bin/env python3
"""Lists every opcode of SPIR-V 1.6, and of the extensions that adead supports, from the specification's grammar.

    spirv-opcodes.py spirv.core.grammar.json > spirv-opcodes.txt

The grammar is in https://github.com/KhronosGroup/SPIRV-Headers, include/spirv/unified1, and in Debian's package spirv-headers.
For cooperative matrices it must be from 2023-06 or newer. A line has: opcode, name, result, least words, most words.
"""

import json
import sys

EXTENSIONS = {"CooperativeMatrixKHR", "AtomicFloat32AddEXT"}
# Operands of variable length: a text, or a pair of words.
OPEN = {"LiteralString", "LiteralContextDependentNumber", "LiteralSpecConstantOpInteger"}

with open(sys.argv[1], encoding="utf-8") as file:
    grammar = json.load(file)

print("# Opcode, name, result, words at least, words at most. Made by spirv-opcodes.py.")
lines = {}
for it in grammar["instructions"]:
    version, capabilities = it.get("version", "1.0"), set(it.get("capabilities", []))
    if version == "None" and not capabilities & EXTENSIONS:
        continue
    if version not in ("None", "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"):
        continue
    operands = it.get("operands", [])
    kinds = [operand["kind"] for operand in operands]
    result = "typed" if "IdResultType" in kinds else "untyped" if "IdResult" in kinds else "none"
    least = 1 + sum("quantifier" not in operand for operand in operands)
    # Bits of a mask, such as memory operands, may have operands of their own.
    unbounded = any(operand.get("quantifier") == "*" for operand in operands) or any(
        kind in OPEN or kind in ("MemoryAccess", "ImageOperands", "LoopControl", "ExecutionMode", "Decoration") for kind in kinds
    )
    most = "*" if unbounded else str(1 + len(operands))
    lines.setdefault(it["opcode"], f"{it['opcode']} {it['opname']} {result} {least} {most}")
for opcode in sorted(lines):
    print(lines[opcode])
