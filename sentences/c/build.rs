//! How `libadead_sentences.so` is linked.

#[path = "../../bindings/c/artifact/link.rs"]
mod link;

fn main() {
    link::shared_library("libadead_sentences.so.0");
}
