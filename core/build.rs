//! Compresses the operations' Vulkan kernels for the library: a third of their size.

use std::path::Path;
use std::{env, fs};

fn main() {
    let modules = Path::new("kernels/vulkan/generated");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", modules.display());
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for entry in fs::read_dir(modules).expect("the kernels are there") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|extension| extension == "spv") {
            let code = fs::read(&path).expect("a kernel can be read");
            // All lowest bytes of the words, then all second ones …: the upper ones are mostly zeros.
            let planes: Vec<u8> = (0..4).flat_map(|plane| code.iter().skip(plane).step_by(4).copied()).collect();
            let packed = miniz_oxide::deflate::compress_to_vec(&planes, 10);
            let name = Path::new(path.file_name().expect("it is a file")).with_extension("deflate");
            fs::write(Path::new(&out).join(name), packed).expect("OUT_DIR is writable");
        }
    }
}
