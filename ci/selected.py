"""What cargo builds for Rust's tests. Scripts that build them with the same words compile nothing twice."""

# Also the kernels in plain Rust, which a machine with vector instructions does not need, and conversions of other crates' types.
SELECTED = ["--workspace", "--features", "adead-core/portable,adead-core/half,adead-core/ndarray"]
