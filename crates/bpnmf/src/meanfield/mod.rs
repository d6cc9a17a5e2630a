//! The mean field with a point mask: q(W) and q(H) given S, their coordinate ascent, their bound and its correction, the
//! learned prior, and plain KL-NMF. It knows no moves that change the number of components, and no engines.

pub(crate) mod accelerate;
pub(crate) mod columns;
pub(crate) mod elsewhere;
#[cfg(test)]
mod elsewhere_tests;
pub(crate) mod evidence;
pub(crate) mod hyper;
pub(crate) mod kernels;
pub(crate) mod model;
pub(crate) mod nmf;
pub(crate) mod scatter;
pub(crate) mod single;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod view;
