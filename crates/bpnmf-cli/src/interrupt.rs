//! Ctrl-C: the first asks the run to end after its iteration, the second ends the program.

use crate::failure::Failure;
use std::io::IsTerminal;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C (and what batch systems send to end a job) is a request.
pub(crate) fn listen() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::SeqCst) {
            process::exit(130);
        }
        if std::io::stderr().is_terminal() {
            eprintln!("\nstopping after this iteration; Ctrl-C again to stop at once");
        }
    })
    .map_err(|error| Failure::Other(format!("could not watch for Ctrl-C: {error}")))
}

/// Whether the run should end.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::SeqCst)
}
