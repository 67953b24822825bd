//! Tells the linker what Node.js brings.

fn main() {
    napi_build::setup();
}
