//! Embeds the case files, so that `adead verify` works wherever it is installed.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../cases");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("the case files are there")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    names.sort();
    let mut list = String::from("&[\n");
    for path in names {
        println!("cargo:rerun-if-changed={}", path.display());
        let path = path.canonicalize().unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_string();
        writeln!(list, "    ({stem:?}, include_str!({:?})),", path.to_str().unwrap()).unwrap();
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("cases.rs"), list).unwrap();
}
