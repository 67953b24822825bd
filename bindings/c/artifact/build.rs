//! How the shared library is linked.

mod link;

fn main() {
    link::shared_library("libadead.so.0");
}
