//! What the columns tell the rest: additive sums, the unit of threads and minibatches.

/// Sums over columns of the allocated counts, the activations and the mask.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SuffStats {
    /// sum over t of Z_ftk (or its expectation) at `k * F + f`.
    pub(crate) allocated: Vec<f64>,
    /// sum over t of H_kt S_kt.
    pub(crate) activation: Vec<f64>,
    /// sum over t of S_kt.
    pub(crate) usage: Vec<f64>,
    /// sum over t, k with S_kt = 1 of log H_kt.
    pub(crate) ln_activation: f64,
    /// sum over t, f of X log Xhat - Xhat.
    pub(crate) log_likelihood: f64,
}

impl SuffStats {
    /// All zero, for F x K.
    pub(crate) fn clear(&mut self, features: usize, components: usize) {
        self.allocated.clear();
        self.allocated.resize(features * components, 0.0);
        self.activation.clear();
        self.activation.resize(components, 0.0);
        self.usage.clear();
        self.usage.resize(components, 0.0);
        self.ln_activation = 0.0;
        self.log_likelihood = 0.0;
    }
}
