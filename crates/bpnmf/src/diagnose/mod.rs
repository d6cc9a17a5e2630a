//! Judging a run: when to stop, what held-out counts say of it, whether chains agree, and what to watch.

mod convergence;
mod held_out;
mod probes;
mod stop;

pub use convergence::{bulk_ess, r_hat};
pub use held_out::HeldOut;
pub(crate) use held_out::scattered_column;
pub use probes::PROBES;
pub(crate) use probes::Probes;
pub use stop::StopRule;
