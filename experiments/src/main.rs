//! Experiments
fn main() {}
