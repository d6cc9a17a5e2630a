//! One call from counts to the answer, with every default. Must not know files, terminals or engines.

use crate::chains::Chains;
use crate::counts::Counts;
use crate::error::Error;
use crate::plan::Plan;
use crate::run::TraceRow;
use crate::workers::Workers;

/// Fits the model: searches for the components, samples several chains on all threads, and combines what they say.
///
/// [`Plan::default`] leaves every choice to the data. To watch a fit, to stop it, or to keep checkpoints, run the job that
/// [`Plan::job`] gives with an observer of your own; this function does the same without one.
///
/// ```
/// use bpnmf::{Counts, Plan, fit};
///
/// // Two features that go together, and one that goes alone: 3 features x 40 observations, column after column.
/// let values = (0..40).flat_map(|t| if t % 2 == 0 { [12.0, 8.0, 0.0] } else { [0.0, 0.0, 9.0] }).collect();
/// let counts = Counts::from_dense(3, 40, values)?;
/// let chains = fit(&counts, &Plan { seed: 1, ..Plan::default() })?;
/// assert_eq!(chains.n_components, 2);
/// assert_eq!(chains.fit().posterior.dictionary.len(), 3 * 2);
/// # Ok::<(), bpnmf::Error>(())
/// ```
pub fn fit(counts: &Counts, plan: &Plan) -> Result<Chains, Error> {
    let (job, kept) = plan.job(counts)?;
    job.run(kept.as_ref().unwrap_or(counts), &Workers::new(0)?, |_| None, |_| |_: &TraceRow| true)
}
