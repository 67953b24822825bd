//! How the shared library is linked.

fn main() {
    adead_c_link::shared_library("libadead.so.0");
}
