//! The binary `bpnmf`; all of it is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    bpnmf_cli::main()
}
