"""Builds the reference of each language with the language's own tool, for the site of ci/docs.

Each reference goes into a folder of its own, and nothing in the sources changes. A tool that can't be installed is named, with the
reason, and the other references are built.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPEDOC = ("typedoc@0.28.20", "typescript@6.0.3")
PDOC = "pdoc==16.0.0"
ZIG = "0.17.0"
# By language: the page to open first, and a file below the folder with a word that it must have.
PROMISED = {
    "rust": ("adead/index.html", "adead/struct.Tensor.html", "pub struct Tensor"),
    "c": ("index.html", "adead_8h.html", "adead_matmul"),
    "cpp": ("index.html", "classadead_1_1Context.html", "matmul"),
    "python": ("index.html", "adead.html", "softmax"),
    "node": ("index.html", "classes/Context.html", "softmax"),
    "zig": ("index.html", "main.js", "wasm"),
}
MARK = re.compile(r"`reference: (\w+)`")


class Missing(Exception):
    """A reference that can't be built, with the reason."""


def run(command, **more):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **more)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not installed") from None
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise Missing(f"{command[0]} ends with {done.returncode}: {last}")
    return done.stdout


def rust(to, work):
    """rustdoc, of the crate alone."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    run(["cargo", "doc", "-p", "adead", "--no-deps", "--locked", "--quiet"], cwd=ROOT, env=os.environ | {"CARGO_TARGET_DIR": str(target)})
    shutil.copytree(target / "doc", to, ignore=lambda folder, names: [".lock"])


def doxygen(to, work, name, inputs, settings):
    settings = {
        "PROJECT_NAME": f'"adead, {name}"', "INPUT": " ".join(f'"{ROOT / path}"' for path in inputs), "STRIP_FROM_PATH": f'"{ROOT / "include"}"',
        "OUTPUT_DIRECTORY": f'"{work}"', "HTML_OUTPUT": f'"{to}"', "GENERATE_LATEX": "NO", "EXTRACT_ALL": "YES", "RECURSIVE": "YES",
        "QUIET": "YES", "WARNINGS": "NO", "JAVADOC_AUTOBRIEF": "YES", "HAVE_DOT": "NO", "SOURCE_BROWSER": "NO", "HTML_TIMESTAMP": "NO",
        "EXCLUDE_SYMBOLS": "adead::detail*", "GENERATE_TREEVIEW": "YES",
    } | settings  # fmt: skip
    file = work / "Doxyfile"
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    run(["doxygen", file], cwd=work)


def c(to, work):
    """Doxygen, of the C headers."""
    headers = ["include/adead.h", "include/adead/models.h"]
    doxygen(to, work, "C", headers, {"FILE_PATTERNS": "*.h", "OPTIMIZE_OUTPUT_FOR_C": "YES", "TYPEDEF_HIDES_STRUCT": "YES"})


def cpp(to, work):
    """Doxygen, of the C++ headers without their inline namespace, which no user writes."""
    filtered = "sed -e '/^inline namespace ADEAD_HPP_MODE/s/.*//' -e '/^}.*namespace ADEAD_HPP_MODE/s/.*//'"
    doxygen(to, work, "C++", ["include"], {"FILE_PATTERNS": "*.hpp", "MACRO_EXPANSION": "YES", "INPUT_FILTER": f'"{filtered}"'})


def python(to, work):
    """pdoc, of the module that ci/python-test builds."""
    package = ROOT / "target/python/package"
    if not (package / "adead").exists():
        run([ROOT / "ci/python-test", "--wheel"], cwd=ROOT)
    venv.create(work / "venv", with_pip=True)
    run([work / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", PDOC, "numpy"])
    run([work / "venv/bin/pdoc", "-o", to, "adead", "adead.nn"], env=os.environ | {"PYTHONPATH": str(package)})


def node(to, work):
    """TypeDoc, of the module's types."""
    (work / "package.json").write_text("{}")
    run(["npm", "install", "--silent", "--no-audit", "--no-fund", *TYPEDOC], cwd=work)
    types = ROOT / "bindings/node/index.d.ts"
    options = {"skipLibCheck": True, "noEmit": True, "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "types": []}
    (work / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": [str(types)]}))
    settings = ["--tsconfig", work / "tsconfig.json", "--skipErrorChecking", "--readme", "none", "--name", "adead", "--disableSources"]
    run([work / "node_modules/.bin/typedoc", "--entryPoints", types, *settings, "--out", to], cwd=work)


def zig(to, work):
    """Zig's autodoc. It reads the sources, and looks at nothing of the C header but its name."""
    (work / "c.zig").write_text("")
    modules = ["--dep", "c", "-Mroot=bindings/zig/src/adead.zig", f"-Mc={work / 'c.zig'}"]
    run([ROOT / "ci/zig", ZIG, "build-lib", "-fno-emit-bin", f"-femit-docs={to}", "-lc", *modules], cwd=ROOT)


BUILDERS = {"rust": rust, "c": c, "cpp": cpp, "python": python, "node": node, "zig": zig}


def build(out, site):
    """Builds all references into site/reference. Returns what is missing: the reason by language."""
    missing = {}
    for language, builder in BUILDERS.items():
        to, work = site / "reference" / language, out / "references" / language
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            builder(to, work)
            first, page, word = PROMISED[language]
            for path in (to / first, to / page):
                if not path.exists():
                    raise Missing(f"{builder.__doc__.split(',')[0]} wrote no {path.relative_to(site)}")
            if word not in (to / page).read_text():
                raise Missing(f"{page} does not name {word}")
            print(f"reference of {language}: {sum(1 for _ in to.rglob('*.html'))} pages", flush=True)
        except Missing as why:
            missing[language] = str(why)
            shutil.rmtree(to, ignore_errors=True)
            print(f"skipped: no reference of {language}: {why}", flush=True)
    return missing


def linked(text):
    """Replaces `reference: LANGUAGE` by a link. The file is generated, so no link in the sources can lead to it."""
    return MARK.sub(lambda mark: f'<a href="reference/{mark[1]}/{PROMISED[mark[1]][0]}">open</a>', text)
