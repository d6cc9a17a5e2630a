//! The full gradient of SSMF (Hoffman 2014): how the draws of W, H and pi themselves move with q, which SSMF-A leaves out.
//!
//! With lambda-hat the parameters of the complete conditionals given a draw, and V what a draw tells of its own derivative, the
//! natural gradient of the bound is E V (lambda-hat - lambda); SSMF-A has the identity in place of V, which is its mean.

use super::local::{Allocation, LocalStep, Workspace, portions};
use super::mask::Sweep;
use super::scatter::{self, Scatter};
use super::ssmf::{FromQ, Given, draw_activations, draw_dictionary};
use super::state::{Variational, fade, report};
use super::{Batch, Info, Ssmf, State};
use crate::random::Site;
use crate::random::gamma::{gamma_at, gamma_row};
use crate::special::{digamma, ln, trigamma};
use crate::statistics::blocks_of;

/// From this shape on V is taken at its mean: it is nearly the same for all draws, but the noise of it grows.
const NARROW: f64 = 1000.0;

/// Keeps the logarithm of a draw finite.
const LEAST: f64 = 1e-300;

/// The most a parameter may change in one step, as a factor.
const FARTHEST: f64 = 2.0;

/// d log g / d shape of a Gamma(shape, 1) draw, its place in its distribution kept: minus the derivative of the distribution
/// function over the density, by the power series of both, from log g.
pub(super) fn ln_derivative(shape: f64, ln_g: f64) -> f64 {
    let g = ln_g.exp();
    let (mut term, mut sum, mut n) = (1.0 / shape, 0.0, shape + 1.0);
    let mut gap = ln_g - digamma(n);
    loop {
        let more = term * gap;
        sum += more;
        if n > g && term * (1.0 + gap.abs()) < 1e-17 * sum.abs() {
            return -sum;
        }
        term *= g / n;
        gap -= 1.0 / n;
        n += 1.0;
    }
}

/// V (hat - lambda) of a Gamma(lambda[0], lambda[1]) factor whose draw, times its rate, is exp(ln_g).
pub(super) fn gamma_direction([nu, rho]: [f64; 2], ln_g: f64, hat: [f64; 2]) -> [f64; 2] {
    let [to_nu, to_rho] = [hat[0] - nu, hat[1] - rho];
    if nu >= NARROW {
        return [to_nu, to_rho];
    }
    let (moved, curved) = (ln_derivative(nu, ln_g), trigamma(nu));
    // beta D, with beta the draw and D the slope of the difference of the two densities.
    let slope = (to_nu - ln_g.exp() / rho * to_rho) / (nu * curved - 1.0);
    [(nu * moved - 1.0) * slope, rho * (moved - curved) * slope]
}

/// V (hat - lambda) of a Beta(lambda[0], lambda[1]) factor whose draw is g1 / (g1 + g2) of two gamma draws with these logarithms.
pub(super) fn beta_direction([alpha, beta]: [f64; 2], [one, other]: [f64; 2], hat: [f64; 2]) -> [f64; 2] {
    let (to_alpha, to_beta) = (hat[0] - alpha, hat[1] - beta);
    if alpha.min(beta) >= NARROW {
        return [to_alpha, to_beta];
    }
    let on = 1.0 / (1.0 + (other - one).exp());
    let off = 1.0 / (1.0 + (one - other).exp());
    let slope = off * to_alpha - on * to_beta;
    let narrow =
        |shape: f64, ln_g: f64| if shape >= NARROW { 1.0 / shape } else { ln_derivative(shape, ln_g) };
    let gradient = [slope * narrow(alpha, one), -slope * narrow(beta, other)];
    let both = trigamma(alpha + beta);
    let (a, b) = (trigamma(alpha) - both, trigamma(beta) - both);
    let determinant = a * b - both * both;
    [
        (b * gradient[0] + both * gradient[1]) / determinant,
        (both * gradient[0] + a * gradient[1]) / determinant,
    ]
}

/// Where the parameters of q go, summed over the draws of an iteration.
struct Direction {
    w: Vec<[f64; 2]>,
    h: Vec<[f64; 2]>,
    pi: Vec<[f64; 2]>,
}

fn add(sum: &mut [f64; 2], more: [f64; 2]) {
    sum[0] += more[0];
    sum[1] += more[1];
}

/// A step of the length `eta` along `direction`, none of the parameters changed by more than a factor.
fn go(one: &mut [f64], other: &mut [f64], direction: &[[f64; 2]], eta: f64) {
    let moved = |value: f64, by: f64| (value + eta * by).clamp(value / FARTHEST, value * FARTHEST);
    for ((one, other), by) in one.iter_mut().zip(other).zip(direction) {
        (*one, *other) = (moved(*one, by[0]), moved(*other, by[1]));
    }
}

/// What the directions of one draw are made of.
#[derive(Clone, Copy)]
struct Draw<'a> {
    given: Given<'a>,
    /// Its number over all iterations.
    number: u32,
    /// T over the columns of the batch.
    scale: f64,
}

impl Draw<'_> {
    fn dictionary(&self, workspace: &Workspace, q: &Variational, features: usize, out: &mut [[f64; 2]]) {
        let Self { given: Given { prior, key, workers, .. }, number, scale } = *self;
        let sums = &workspace.stats;
        workers.for_each(out.chunks_mut(features).enumerate(), |(k, out), _| {
            let at = k * features..(k + 1) * features;
            let (nu, rho, mut g) = (&q.nu_w[at.clone()], &q.rho_w[at.clone()], vec![0.0; features]);
            gamma_row(workers.simd, key, Site::Dictionary, number, k as u32, 0, nu, &mut g);
            for f in 0..features {
                let hat = [
                    prior.a() + scale * sums.allocated[at.start + f],
                    prior.b() + scale * sums.observed_activation(k, at.start + f),
                ];
                add(&mut out[f], gamma_direction([nu[f], rho[f]], ln(g[f].max(LEAST)), hat));
            }
        });
    }

    /// Of the columns of a batch. What is off and has the prior for its q stays there.
    fn activations(&self, batch: &Batch<'_>, shares: &[f64], state: &State, out: &mut [[f64; 2]]) {
        let Self { given: Given { counts, prior, key, workers }, number, .. } = *self;
        let q = state.variational.as_ref().expect("a state made by this engine");
        let (dictionary, first) = (&state.dictionary, batch.columns.start);
        let components = dictionary.components();
        let range = first * components..batch.columns.end * components;
        let columns = out[range].chunks_mut(components).enumerate();
        workers.for_each(columns, |(column, out), _| {
            let t = first + column;
            let (mut is_on, unexposed) = (vec![false; components], counts.unexposed(t));
            state.activations.column(t).iter().for_each(|(k, _)| is_on[k] = true);
            for k in 0..components {
                let at = t * components + k;
                let (lambda, none) = ([q.nu_h[at], q.rho_h[at]], [prior.c(), prior.d()]);
                if !is_on[k] && lambda == none {
                    continue;
                }
                let hat = if is_on[k] {
                    [none[0] + shares[at], none[1] + dictionary.observed_sum(k, unexposed)]
                } else {
                    none
                };
                let g = gamma_at(key, Site::Activation, number, t as u32, k as u32, lambda[0]);
                add(&mut out[k], gamma_direction(lambda, ln(g.max(LEAST)), hat));
            }
        });
    }

    fn inclusion(&self, usage: &[f64], q: &Variational, observations: f64, out: &mut [[f64; 2]]) {
        let Self { given: Given { prior, key, .. }, number, scale } = *self;
        for (k, out) in out.iter_mut().enumerate() {
            let lambda = [q.alpha_pi[k], q.beta_pi[k]];
            // The two halves of the draw of the odds.
            let mut stream = key.stream(Site::Inclusion, number, 0, k as u32);
            let logs = lambda.map(|shape| stream.ln_gamma_draw(shape));
            let on = scale * usage[k];
            let hat = [prior.pi_on() + on, prior.pi_off() + observations - on];
            add(out, beta_direction(lambda, logs, hat));
        }
    }
}

impl Ssmf {
    /// One iteration with the full gradient: several draws, each with its mask, and one step.
    pub(super) fn full_step(
        &self,
        state: &mut State,
        batch: &Batch<'_>,
        given: Given<'_>,
        draws: u32,
    ) -> Info {
        let (iteration, data) = (state.iteration, batch.counts);
        let Given { prior, key, workers, .. } = given;
        let (features, components) = (state.dictionary.features(), state.dictionary.components());
        let (eta, share) = (self.step_size(iteration), 1.0 / f64::from(draws));
        let mut direction = Direction {
            w: vec![[0.0; 2]; features * components],
            h: vec![[0.0; 2]; data.observations() * components],
            pi: vec![[0.0; 2]; components],
        };
        let mut scatter = state.scatter.take();
        let workspace = &mut *workers.workspace();
        let mut info = None;
        for draw in 0..draws {
            // Random numbers and sweeps go by the number of the draw.
            let number = iteration.wrapping_mul(draws).wrapping_add(draw);
            state.iteration = number;
            draw_dictionary(key, state, workers);
            draw_activations(batch.columns.clone(), key, state, workers);
            if let Some(scatter) = &mut scatter {
                let (dictionary, activations) = (&state.dictionary, &state.activations);
                if draw == 0 {
                    scatter.freeze(data, dictionary, activations, workers);
                }
                let place = scatter::Place { key, iteration: number, allocation: Allocation::Expected };
                scatter.redraw(data, dictionary, activations, place, workers);
            }
            let latent = scatter.as_ref().and_then(Scatter::latent);
            let given = Given { counts: latent.unwrap_or(data), ..given };
            self.sweep_all(state, batch, given, scatter.as_ref(), workspace);
            let q = state.variational.as_ref().expect("a state made by this engine");
            let from = Draw { given, number, scale: batch.scale() };
            from.dictionary(workspace, q, features, &mut direction.w);
            from.activations(batch, &workspace.kept_shares, state, &mut direction.h);
            from.inclusion(&workspace.stats.usage, q, data.observations() as f64, &mut direction.pi);
            let keep = if draw == 0 { 1.0 - eta } else { 1.0 };
            average(state, batch, given, &workspace.kept_shares, [keep, eta * share]);
            let State { dictionary, odds, .. } = &*state;
            let mut now =
                report(data, prior, dictionary, odds, &workspace.stats, batch.scale(), workers.simd);
            if latent.is_some() {
                now.activation = workspace.stats.expected_scattered;
            }
            info = Some(now);
        }
        let q = state.variational.as_mut().expect("a state made by this engine");
        go(&mut q.nu_w, &mut q.rho_w, &direction.w, eta * share);
        go(&mut q.nu_h, &mut q.rho_h, &direction.h, eta * share);
        go(&mut q.alpha_pi, &mut q.beta_pi, &direction.pi, eta * share);
        state.scatter = scatter;
        state.iteration = iteration + 1;
        let info = info.expect("at least one draw");
        state.averages.draws += 1;
        state.averages.log_likelihood += eta * (info.log_likelihood - state.averages.log_likelihood);
        info
    }

    /// The mask and E[Z] of all columns of a batch given W, H and pi: sums in `workspace.stats`, those over features in
    /// `workspace.kept_shares`.
    fn sweep_all(
        &self,
        state: &mut State,
        batch: &Batch<'_>,
        given: Given<'_>,
        scatter: Option<&Scatter>,
        workspace: &mut Workspace,
    ) {
        let Given { counts, key, workers, .. } = given;
        let State { dictionary, activations, odds, variational, iteration, .. } = state;
        let (q, components) =
            (variational.as_ref().expect("a state made by this engine"), dictionary.components());
        let iteration = *iteration;
        workspace.begin();
        for (block, columns) in blocks_of(batch.columns.clone()) {
            workspace.start(counts, dictionary);
            for columns in portions(counts, columns.clone(), workers) {
                let proposal = FromQ { key, iteration, components, nu_h: &q.nu_h, rho_h: &q.rho_h };
                let local = LocalStep {
                    sweep: Sweep { counts, dictionary, odds, proposal: &proposal, key, number: 0 },
                    sweeps: self.sweeps,
                    allocation: Allocation::Expected,
                    iteration,
                };
                local.run(columns.clone(), activations, workers, workspace);
                workspace.keep_shares(columns, components);
            }
            workspace.finish(Allocation::Expected, dictionary);
            if let Some(scatter) = scatter {
                let Workspace { stats, column_sums, .. } = &mut *workspace;
                scatter.put_right(
                    batch.counts,
                    dictionary,
                    activations,
                    columns,
                    stats,
                    column_sums,
                    workers,
                );
            }
            workspace.keep(block);
        }
        workspace.total();
    }
}

/// Averages of H S and S: `keep` of what they are, and `gain` of what this draw says.
fn average(state: &mut State, batch: &Batch<'_>, given: Given<'_>, shares: &[f64], [keep, gain]: [f64; 2]) {
    let Given { counts, prior, workers, .. } = given;
    let State { dictionary, activations, averages, .. } = state;
    let components = dictionary.components();
    let range = batch.columns.start * components..batch.columns.end * components;
    fade(workers.simd, &mut averages.masked[range.clone()], keep as f32);
    fade(workers.simd, &mut averages.inclusion[range], keep as f32);
    for t in batch.columns.clone() {
        for (k, _) in activations.column(t).iter() {
            let at = t * components + k;
            let sum = dictionary.observed_sum(k, counts.unexposed(t));
            averages.masked[at] += (gain * ((prior.c() + shares[at]) / (prior.d() + sum))) as f32;
            averages.inclusion[at] += gain as f32;
        }
    }
}
