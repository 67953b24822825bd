//! The benchmarks are in `benches/`; `cargo bench -p adead-benches` runs them. Whole operations beside other libraries
//! are measured by `benches/compare.py`.
