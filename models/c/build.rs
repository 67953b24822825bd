//! How `libadead_models.so` is linked.

fn main() {
    adead_c_link::shared_library("libadead_models.so.0");
}
