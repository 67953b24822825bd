//! Passes to the linker the arguments for symbols that Node.js provides.

fn main() {
    napi_build::setup();
}
