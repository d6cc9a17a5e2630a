//! bpnmf
fn main() {}
