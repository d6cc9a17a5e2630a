//! Doors for benchmarks into parts that are not public. No promise is made about anything here.

use crate::counts::Counts;
use crate::infer::activations::Activations;
use crate::infer::mask::{Known, Scratch, Sweep, Tiers, sweep, sweep_plainly};
use crate::infer::state::State;
use crate::kernel::Simd;
use crate::random::{Key, Site, Stream};

/// A stream of random numbers for making up data.
pub fn stream(seed: u64) -> Stream {
    Key::new(seed).stream(Site::Synthesis, 0, 0, 0)
}

/// A mask sweep that can be repeated from the same state, with every H in place.
pub struct MaskSweep<'a> {
    counts: &'a Counts,
    state: &'a State,
    start: Activations,
    scratch: Scratch,
    work: Activations,
}

impl<'a> MaskSweep<'a> {
    /// The sweep that would come next, H drawn from q where the state has one.
    pub fn new(counts: &'a Counts, state: &'a State, seed: u64) -> Self {
        let mut start = state.activations.clone();
        let components = start.components();
        for t in 0..counts.observations() {
            for k in 0..components {
                let on = start.column(t).on[k / 16] >> (k % 16) & 1 == 1;
                let (shape, rate) = match &state.variational {
                    Some(q) => (q.nu_h[t * components + k], q.rho_h[t * components + k]),
                    None => (5.0, 5.0),
                };
                let mut stream = Key::new(seed).stream(Site::Activation, 0, t as u32, k as u32);
                let h = crate::infer::dictionary::stored(stream.gamma(shape) / rate);
                start.set(k, t, Some(h));
                if !on {
                    start.set(k, t, None);
                }
            }
        }
        Self { counts, state, work: start.clone(), start, scratch: Scratch::default() }
    }

    fn job(&self) -> Sweep<'a, Known> {
        Sweep {
            counts: self.counts,
            dictionary: &self.state.dictionary,
            odds: &self.state.odds,
            proposal: &Known,
            key: Key::new(1),
            number: 0,
        }
    }

    /// Back to the start.
    pub fn reset(&mut self) {
        self.work.clone_from(&self.start);
    }

    /// One sweep.
    pub fn sweep(&mut self, simd: Simd) -> Tiers {
        let job = self.job();
        let (on, values) = self.work.columns_mut(0, self.counts.observations());
        sweep(simd, &job, 0, on, values, &mut self.scratch)
    }

    /// The same by the exact rule alone.
    pub fn sweep_plainly(&mut self) {
        sweep_plainly(&self.job(), &mut self.work);
    }

    /// W (K x F by rows), H (K x T by rows), S (K x T by rows) and logit(pi) at the start, for other implementations.
    pub fn export(&self) -> (Vec<f32>, Vec<f32>, Vec<u8>, Vec<f64>) {
        let components = self.start.components();
        let w = (0..components).flat_map(|k| self.state.dictionary.row(k).to_vec()).collect();
        let observations = self.counts.observations();
        let (mut h, mut s) = (Vec::new(), Vec::new());
        for k in 0..components {
            for t in 0..observations {
                let column = self.start.column(t);
                h.push(column.values[k]);
                s.push((column.on[k / 16] >> (k % 16) & 1) as u8);
            }
        }
        (w, h, s, self.state.odds.logit().to_vec())
    }
}
