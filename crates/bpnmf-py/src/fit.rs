//! A fit: wishes and counts in, arrays out.

use crate::blocks::Blocks;
use crate::input::Counts;
use crate::raised;
use crate::task::{self, Link};
use bpnmf::{
    BlockFit, Chains, ComponentsPrior, EngineKind, Error, Job, Noise, Observer, Plan, Preset, Prior,
    PriorWish, SearchStep, StopRule, TraceRow, Warning, Workers,
};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::collections::HashMap;
use std::time::Instant;

/// What somebody who watches sees.
pub(crate) enum Event {
    Search(usize, SearchStep),
    Step(usize, TraceRow),
}

type FitLink = Link<Event, Result<Fitted, Error>>;

/// One chain, watched.
struct Watcher {
    chain: usize,
    link: FitLink,
}

impl Observer for Watcher {
    fn step(&mut self, row: &TraceRow) -> bool {
        self.link.show(|| Event::Step(self.chain, *row))
    }

    fn search(&mut self, step: &SearchStep) -> bool {
        self.link.show(|| Event::Search(self.chain, *step))
    }
}

/// Chains and what they were run with.
pub(crate) struct Fitted {
    chains: Chains,
    warnings: Vec<Warning>,
    prior: Prior,
    engine: &'static str,
    threads: usize,
    /// The fit to more samples than these, if there are.
    blocks: Option<BlockFit>,
}

/// The numbers of a prior that are given.
pub(crate) fn prior_of(given: &HashMap<String, f64>) -> PyResult<PriorWish> {
    let mut prior = PriorWish::default();
    for (name, &value) in given {
        let place = match name.as_str() {
            "a" => &mut prior.a,
            "b" => &mut prior.b,
            "c" => &mut prior.c,
            "d" => &mut prior.d,
            "a0" => &mut prior.a0,
            "b0" => &mut prior.b0,
            _ => {
                let sentence = format!("the prior has no {name:?}: it has a, b, c, d, a0 and b0");
                return Err(PyValueError::new_err(sentence));
            }
        };
        *place = Some(value);
    }
    Ok(prior)
}

/// The noise of an alpha, which is infinite for Poisson counts.
pub(crate) fn noise_of(alpha: f64) -> Noise {
    if alpha == f64::INFINITY { Noise::Poisson } else { Noise::Scattered { alpha } }
}

/// Fits, and gives all there is to know as a dictionary, and what cut the run short or None. The dictionary is None if
/// the run did not end in time after Ctrl-C. `alpha` is that of the noise, infinite for
/// Poisson counts, None to learn it; `chains` None for the preset's; `time_budget` as "60s"; `guess` is (rate, window, hop) if the counts are a spectrogram.
/// With `samples`, the counts are those of some of so many samples, and "blocks" is the fit to all of them, which is to follow.
#[pyfunction]
#[pyo3(signature = (counts, *, preset, engine, components, forced, iterations, tolerance, alpha, seed, prior, components_prior, chains, until_sure, time_budget, threads, watch, guess=None, samples=None))]
pub(crate) fn fit<'py>(
    py: Python<'py>,
    counts: &Counts,
    preset: &str,
    engine: Option<&str>,
    components: Option<usize>,
    forced: Option<usize>,
    iterations: Option<usize>,
    tolerance: Option<f64>,
    alpha: Option<f64>,
    seed: u64,
    prior: HashMap<String, f64>,
    components_prior: Option<&str>,
    chains: Option<usize>,
    until_sure: bool,
    time_budget: Option<&str>,
    threads: usize,
    watch: Option<Bound<'py, PyAny>>,
    guess: Option<(u32, usize, usize)>,
    samples: Option<usize>,
) -> PyResult<(Option<Bound<'py, PyDict>>, Option<PyErr>)> {
    let plan = Plan {
        preset: Preset::read(preset).map_err(raised)?,
        engine: engine.map(EngineKind::read).transpose().map_err(raised)?,
        components,
        forced,
        iterations,
        noise: alpha.map(noise_of),
        chains: chains.or(guess.map(|_| bpnmf_audio::notes::CHAINS)),
        until_sure,
        seed,
        stop: tolerance.map(|tolerance| StopRule { tolerance, ..StopRule::default() }),
        prior: prior_of(&prior)?,
        components_prior: components_prior.map(ComponentsPrior::read).transpose().map_err(raised)?,
        ..Plan::default()
    };
    let begin = Instant::now();
    let budget = time_budget.map(bpnmf::time_of).transpose().map_err(raised)?;
    let (mut job, _) = py.detach(|| plan.job(&counts.0)).map_err(raised)?;
    if let (Some(search), Some((rate, window, hop))) = (&mut job.options.search, guess) {
        bpnmf_audio::notes::prepare(search, rate, window, hop);
    }
    let deadline = budget.and_then(|time| begin.checked_add(time));
    let workers = Workers::new(threads).map_err(raised)?.with_deadline(deadline);
    let counts = counts.0.clone();
    let show = |event: Event| -> PyResult<bool> {
        let Some(watch) = &watch else { return Ok(true) };
        let answer = watch.call1((described(py, &event)?,))?;
        answer.extract()
    };
    let watched: Option<&dyn Fn(Event) -> PyResult<bool>> = if watch.is_some() { Some(&show) } else { None };
    let (result, error) =
        task::run(py, watched, move |link| all_chains(&job, &counts, &workers, samples, link))?;
    let result = result.transpose().map_err(raised)?;
    Ok((result.map(|fitted| told(py, fitted)).transpose()?, error))
}

fn all_chains(
    job: &Job,
    counts: &bpnmf::Counts,
    workers: &Workers,
    samples: Option<usize>,
    link: &FitLink,
) -> Result<Fitted, Error> {
    // A sender is not shared between threads but copied.
    let links = std::sync::Mutex::new(link.clone());
    let watcher = |chain: usize| {
        let link = links.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Watcher { chain, link }
    };
    let chains = job.run(counts, workers, |_| None, watcher)?;
    let warnings = job.warnings(&chains, counts);
    let prior = chains.fit().discovery.as_ref().map_or(&job.prior, |found| &found.prior).get();
    let begun = |samples| BlockFit::begin(chains.fit(), &job.prior, counts, samples, job.options.seed);
    let blocks = samples.map(begun);
    Ok(Fitted { prior, engine: job.engine.name(), threads: workers.threads(), warnings, blocks, chains })
}

/// A warning, and what it is about.
fn warned(warning: &Warning) -> (&'static str, String) {
    let sentence = warning.to_string().replace("use a larger limit", "use a larger max_components");
    match warning {
        Warning::Disagreement(_) => ("disagreement", sentence),
        Warning::Data(_) => ("data", sentence),
        _ => ("limit", sentence),
    }
}

/// An event for a callback.
fn described<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let info = PyDict::new(py);
    match event {
        Event::Search(chain, step) => {
            info.set_item("stage", "search")?;
            info.set_item("step", step.stage)?;
            info.set_item("chain", chain)?;
            info.set_item("iteration", 0)?;
            info.set_item("n_components", step.active)?;
            info.set_item("seconds", step.seconds)?;
        }
        Event::Step(chain, row) => {
            info.set_item("stage", "sampling")?;
            info.set_item("step", "iteration")?;
            info.set_item("chain", chain)?;
            info.set_item("iteration", row.iteration)?;
            info.set_item("n_components", row.active)?;
            info.set_item("seconds", row.seconds)?;
            info.set_item("log_likelihood", row.log_likelihood)?;
            info.set_item("log_joint", row.log_joint)?;
        }
    }
    Ok(info)
}

/// The result as Python has it.
fn told(py: Python<'_>, fitted: Fitted) -> PyResult<Bound<'_, PyDict>> {
    let Fitted { chains, warnings, prior, engine, threads, blocks } = fitted;
    let out = PyDict::new(py);
    out.set_item("blocks", blocks.map(Blocks::new).map(|blocks| Bound::new(py, blocks)).transpose()?)?;
    out.set_item("n_components", chains.n_components)?;
    out.set_item("interval", chains.interval)?;
    let pmf = chains.pmf.as_ref().map(|pmf| PyDict::from_sequence(PyList::new(py, pmf)?.as_any()));
    out.set_item("pmf", pmf.transpose()?)?;
    let recurrence = chains.recurrence.as_ref();
    let of_others =
        recurrence.map(|found| found.iter().map(bpnmf::Recurrence::of_others).collect::<Vec<_>>());
    out.set_item("recurrence", of_others.map(|shares| shares.into_pyarray(py)))?;
    let shares = recurrence.map(|found| found.iter().map(share_interval).collect::<Vec<_>>());
    out.set_item("share_interval", shares.map(|shares| PyArray2::from_vec2(py, &shares)).transpose()?)?;
    let intervals = chains.intervals.as_ref().map(|found| intervals(py, found, chains.fit())).transpose()?;
    out.set_item("intervals", intervals)?;
    out.set_item("warnings", warnings.iter().map(warned).collect::<Vec<_>>())?;
    out.set_item("engine", engine)?;
    out.set_item("threads", threads)?;
    out.set_item("chain", chains.representative)?;
    let priors = [
        ("a", prior.a),
        ("b", prior.b),
        ("c", prior.c),
        ("d", prior.d),
        ("a0", prior.a0),
        ("b0", prior.b0),
        ("components", prior.components as f64),
    ];
    out.set_item("prior", HashMap::from(priors))?;
    let agreement = chains.convergence.iter().map(|q| (q.name, (q.r_hat, q.ess)));
    out.set_item("convergence", agreement.collect::<HashMap<_, _>>())?;
    out.set_item("trace", trace(py, &chains)?)?;
    out.set_item("burn_in", chains.fits.iter().map(|fit| fit.burn_in).collect::<Vec<_>>())?;
    out.set_item("iterations", chains.fits.iter().map(|fit| fit.trace.len()).collect::<Vec<_>>())?;
    out.set_item("stop_reason", chains.stop_reason().name())?;
    let chain = chains.representative;
    let fit = chains.fits.into_iter().nth(chain).expect("the representative is one of them");
    out.set_item("seconds", fit.seconds)?;
    let coarsening = fit.discovery.as_ref().map_or(1.0, |found| found.coarsening);
    let path: Vec<(f64, usize)> =
        fit.resolution_path().iter().map(|at| (at.coarsening, at.components)).collect();
    out.set_item("noise", fit.noise().name())?;
    out.set_item("alpha", fit.noise().alpha().unwrap_or(f64::INFINITY))?;
    out.set_item("coarsening", coarsening)?;
    out.set_item("path", path)?;
    let posterior = fit.posterior;
    let (parts, features, samples) = (posterior.components(), posterior.features, posterior.observations);
    out.set_item("W", posterior.dictionary.into_pyarray(py).reshape([features, parts])?)?;
    out.set_item("H", posterior.activations.into_pyarray(py).reshape([parts, samples])?)?;
    out.set_item("S", posterior.inclusion.into_pyarray(py).reshape([parts, samples])?)?;
    out.set_item("pi", posterior.pi.into_pyarray(py))?;
    out.set_item("share", posterior.share.into_pyarray(py))?;
    out.set_item("usage", posterior.usage.into_pyarray(py))?;
    out.set_item("evidence", posterior.evidence.map(|evidence| evidence.into_pyarray(py)))?;
    out.set_item("surplus", posterior.surplus)?;
    out.set_item("log_likelihood", posterior.log_likelihood)?;
    Ok(out)
}

/// First and last of the 90 % interval; NaN where there is none.
fn share_interval(found: &bpnmf::Recurrence) -> Vec<f64> {
    let (first, last) = found.share.unwrap_or((f64::NAN, f64::NAN));
    vec![first, last]
}

/// (of W, 2 x K x F; of H S, 2 x T x K): low ends, then high ones.
fn intervals<'py>(
    py: Python<'py>,
    found: &bpnmf::Intervals,
    fit: &bpnmf::Fit,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let posterior = &fit.posterior;
    let (parts, features, samples) = (posterior.components(), posterior.features, posterior.observations);
    let stacked = |ends: &[Vec<f32>; 2], rows: usize, columns: usize| {
        ends.concat().into_pyarray(py).reshape([2, rows, columns])?.call_method1("transpose", (0, 2, 1))
    };
    Ok((stacked(&found.dictionary, features, parts)?, stacked(&found.activations, parts, samples)?))
}

/// One array a column, chain after chain.
fn trace<'py>(py: Python<'py>, chains: &Chains) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let rows = || {
        let chains = chains.fits.iter().enumerate();
        chains.flat_map(|(chain, fit)| fit.trace.iter().map(move |row| (chain, row)))
    };
    let whole = |name: &str, value: &dyn Fn(usize, &TraceRow) -> i64| {
        let values: Vec<i64> = rows().map(|(chain, row)| value(chain, row)).collect();
        table.set_item(name, values.into_pyarray(py))
    };
    whole("chain", &|chain, _| chain as i64)?;
    whole("iteration", &|_, row| row.iteration as i64)?;
    whole("active", &|_, row| row.active as i64)?;
    let numbers: Vec<i64> =
        chains.fits.iter().flat_map(bpnmf::Fit::numbers).map(|number| number as i64).collect();
    table.set_item("n_components", numbers.into_pyarray(py))?;
    whole("births", &|_, row| i64::from(row.jumped.births))?;
    whole("births_accepted", &|_, row| i64::from(row.jumped.births_accepted))?;
    whole("deaths", &|_, row| i64::from(row.jumped.deaths))?;
    whole("deaths_accepted", &|_, row| i64::from(row.jumped.deaths_accepted))?;
    whole("on_anywhere", &|_, row| row.on_anywhere as i64)?;
    whole("sites_on", &|_, row| row.sites_on as i64)?;
    let real = |name: &str, value: &dyn Fn(&TraceRow) -> f64| {
        let values: Vec<f64> = rows().map(|(_, row)| value(row)).collect();
        table.set_item(name, values.into_pyarray(py))
    };
    real("log_likelihood", &|row| row.log_likelihood)?;
    real("log_joint", &|row| row.log_joint)?;
    real("activation", &|row| row.activation)?;
    for probe in 0..bpnmf::PROBES {
        real(&format!("reconstruction_{}", probe + 1), &|row| row.reconstruction[probe])?;
    }
    real("seconds", &|row| row.seconds)?;
    Ok(table)
}
