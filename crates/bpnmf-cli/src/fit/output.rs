//! What a fit leaves behind: model.npz, the tables, trace.csv, names.json, report.html and summary.json.

use super::config::Config;
use super::markers::Markers;
use super::trace;
use super::units::InCounts;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::tables::{self, Named, TABLES};
use bpnmf::{
    Chains, CheckedPrior, Convergence, Discovery, Fit, Intervals, Posterior, Prior, Resolution, StopReason,
    Warning,
};
use bpnmf_io::Array;
use bpnmf_report::text::component_name;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Write as _;

/// What a catalogue says about the components.
const MATCHES: &str = "matches.tsv";

/// The files of a result.
pub(crate) const FILES: [&str; 13] = {
    let [a, b, c, d, e, f, g] = TABLES;
    ["model.npz", a, b, c, d, e, f, g, MATCHES, "trace.csv", "names.json", "report.html", "summary.json"]
};

/// Features named for each component.
const TOP_FEATURES: usize = 5;

/// Where the counts come from.
pub(crate) struct Source {
    /// The path as it was typed, or what stands for it.
    pub(crate) path: String,
    pub(crate) features: usize,
    pub(crate) observations: usize,
    pub(crate) nonzeros: usize,
    pub(crate) missing: usize,
    pub(crate) total: f64,
    pub(crate) whole_counts: bool,
    /// It is a recording: for people who listen components are parts, numbered from 0 as their files are.
    pub(crate) recording: bool,
    /// How a table of text was understood.
    pub(crate) read_as: Option<String>,
    pub(crate) feature_names: Option<Vec<String>>,
    pub(crate) observation_names: Option<Vec<String>>,
}

/// Finished chains and what they were about.
pub(crate) struct Results<'a> {
    pub(crate) source: &'a Source,
    pub(crate) config: &'a Config,
    pub(crate) chains: &'a Chains,
    /// What keeps the model from being trusted.
    pub(crate) warnings: Vec<Warning>,
    /// All of them took.
    pub(crate) seconds: f64,
}

/// What a command adds to the files of a fit.
#[derive(Default)]
pub(crate) struct Extra<'a> {
    /// For model.npz.
    pub(crate) arrays: Vec<(&'a str, Array<'a>)>,
    /// For summary.json.
    pub(crate) keys: Map<String, Value>,
    /// For the warnings in it.
    pub(crate) warnings: Vec<String>,
    /// Whether the tables are written: nobody reads those of a recording.
    pub(crate) tables: bool,
    /// What a catalogue says about the components: the table, and a sentence for each.
    pub(crate) matches: Option<(String, Vec<String>)>,
}

/// summary.json. Numbers that are not finite become null.
#[derive(Serialize)]
struct Summary<'a> {
    n_components: usize,
    n_components_interval: Option<(usize, usize)>,
    n_components_pmf: Option<&'a [(usize, f64)]>,
    n_on_anywhere: usize,
    n_surplus: usize,
    coarsening: f64,
    noise: &'a str,
    alpha: Option<f64>,
    variance_factor: Option<f64>,
    dispersion: Scatter,
    resolution_path: Vec<At>,
    method: &'a str,
    preset: &'a str,
    seed: u64,
    iterations: usize,
    burn_in: Vec<usize>,
    stop_reason: &'a str,
    seconds: f64,
    log_likelihood: f64,
    log_joint: f64,
    mean_log_likelihood: f64,
    held_out_fraction: Option<f64>,
    held_out_log_likelihood: Option<f64>,
    whole_counts: bool,
    threads: usize,
    version: &'a str,
    chains: usize,
    chain_shown: usize,
    convergence: Vec<Agreement>,
    warnings: Vec<String>,
    prior: PriorOf,
    input: Input<'a>,
    #[serde(flatten)]
    keys: &'a Map<String, Value>,
    components: Vec<Component>,
}

#[derive(Serialize)]
struct Scatter {
    small: Option<f64>,
    all: Option<f64>,
}

#[derive(Serialize)]
struct At {
    coarsening: f64,
    n_components: usize,
}

#[derive(Serialize)]
struct Agreement {
    name: &'static str,
    r_hat: Option<f64>,
    ess: Option<f64>,
}

#[derive(Serialize)]
struct PriorOf {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    a0: f64,
    b0: f64,
    components: usize,
    number: String,
}

#[derive(Serialize)]
struct Input<'a> {
    path: &'a str,
    read_as: Option<&'a str>,
    features: usize,
    observations: usize,
    nonzeros: usize,
    missing: usize,
    total: f64,
}

#[derive(Serialize)]
pub(super) struct Component {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) share: f64,
    pub(super) share_interval: Option<(f64, f64)>,
    pub(super) recurrence: Option<f64>,
    pub(super) usage: f64,
    pub(super) evidence: Option<f64>,
    pub(super) pi: f64,
    pub(super) top_features: Vec<Value>,
    pub(super) markers: Vec<Value>,
}

impl Results<'_> {
    /// The chain that stands for all of them.
    pub(super) fn fit(&self) -> &Fit {
        self.chains.fit()
    }

    pub(crate) fn posterior(&self) -> &Posterior {
        &self.fit().posterior
    }

    /// What a component is called, one and many.
    pub(super) fn words(&self) -> (&'static str, &'static str) {
        if self.source.recording { ("part", "parts") } else { ("component", "components") }
    }

    /// The name of a component.
    pub(super) fn name(&self, index: usize) -> String {
        match self.source.recording {
            true => index.to_string(),
            false => component_name(index, self.posterior().components()),
        }
    }

    /// What the search of the chain that is shown found, if there was one.
    pub(super) fn discovery(&self) -> Option<&Discovery> {
        self.fit().discovery.as_ref()
    }

    /// The prior that was used: learned, or as it was given.
    pub(super) fn prior(&self) -> CheckedPrior {
        self.discovery().map_or(self.config.job.prior, |discovery| discovery.prior)
    }

    /// The power of the likelihood.
    pub(super) fn coarsening(&self) -> f64 {
        coarsening(self.fit())
    }

    /// Why the runs ended.
    pub(crate) fn stop_reason(&self) -> StopReason {
        self.chains.stop_reason()
    }

    /// What keeps the result from being trusted, in the words of the command line.
    pub(super) fn warnings(&self) -> Vec<String> {
        let (_, many) = self.words();
        let sentence = |warning: &Warning| warning.to_string().replace("components", many);
        let flagged = |sentence: String| sentence.replace("use a larger limit", "use more --max-components");
        self.warnings.iter().map(sentence).map(flagged).collect()
    }

    /// Says it on stderr, whoever is watching.
    pub(crate) fn warn(&self) {
        self.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
    }

    /// Writes all files, the page `report` if there is one, the summary last: where it stands, the others are complete.
    pub(crate) fn write(
        &self,
        folder: &Folder,
        report: Option<&str>,
        extra: &Extra<'_>,
    ) -> Result<(), Failure> {
        folder.create()?;
        let posterior = self.posterior();
        let (features, observations, parts) =
            (posterior.features, posterior.observations, posterior.components());
        let mut arrays = vec![
            ("W", Array::new(&[features, parts], &posterior.dictionary[..])),
            ("H", Array::new(&[parts, observations], &posterior.activations[..])),
            ("S", Array::new(&[parts, observations], &posterior.inclusion[..])),
            ("pi", Array::new(&[parts], &posterior.pi[..])),
        ];
        if let Some(Intervals { dictionary, activations, .. }) = &self.chains.intervals {
            let ends = [("W_low", "H_low"), ("W_high", "H_high")];
            for ((of_w, of_h), (w, h)) in ends.into_iter().zip(dictionary.iter().zip(activations)) {
                arrays.push((of_w, Array::new(&[features, parts], &w[..])));
                arrays.push((of_h, Array::new(&[parts, observations], &h[..])));
            }
        }
        arrays.extend(extra.arrays.iter().cloned());
        bpnmf_io::write_npz(&folder.file("model.npz"), &arrays).map_err(Failure::writing)?;
        if extra.tables {
            let named = Named {
                features,
                observations,
                components: parts,
                feature_names: self.source.feature_names.as_deref(),
                observation_names: self.source.observation_names.as_deref(),
            };
            let model = InCounts::new(posterior, self.chains.intervals.as_ref());
            tables::write(folder, &named, &model, &posterior.inclusion)?;
        }
        match &extra.matches {
            Some((table, _)) => write_text(folder, MATCHES, table)?,
            None => folder.remove(MATCHES)?,
        }
        write_text(folder, "trace.csv", &trace::table(&self.chains.fits))?;
        let (feature_names, observation_names) = (&self.source.feature_names, &self.source.observation_names);
        if feature_names.is_some() || observation_names.is_some() {
            let names = json!({ "features": feature_names, "observations": observation_names });
            write_text(folder, "names.json", &pretty(&names))?;
        } else {
            // Names that a former run left in the folder are not ours.
            folder.remove("names.json")?;
        }
        match report {
            Some(report) => write_text(folder, "report.html", report)?,
            None => folder.remove("report.html")?,
        }
        write_text(folder, "summary.json", &pretty(&self.summary(extra)))
    }

    fn summary<'a>(&'a self, extra: &'a Extra<'_>) -> Summary<'a> {
        let (config, chains, fit, source) = (self.config, self.chains, self.fit(), self.source);
        let agreement = |&Convergence { name, r_hat, ess, .. }: &Convergence| Agreement { name, r_hat, ess };
        let last = fit.trace.last();
        let Prior { a, b, c, d, a0, b0, components, number } = self.prior().get();
        let discovery = self.discovery();
        let dispersion = discovery.map(|discovery| discovery.dispersion).unwrap_or_default();
        let path = fit.resolution_path();
        let markers = Markers::new(&fit.posterior);
        let at = |&Resolution { coarsening, components: n_components, .. }: &Resolution| At {
            coarsening,
            n_components,
        };
        Summary {
            n_components: chains.n_components,
            n_components_interval: chains.interval,
            n_components_pmf: chains.pmf.as_deref(),
            n_on_anywhere: fit.posterior.on_anywhere,
            n_surplus: fit.posterior.surplus,
            coarsening: self.coarsening(),
            noise: fit.noise().name(),
            alpha: fit.noise().alpha(),
            variance_factor: discovery.and_then(|discovery| discovery.factor),
            dispersion: Scatter { small: dispersion.small, all: dispersion.all },
            resolution_path: path.iter().map(at).collect(),
            method: config.job.engine.name(),
            preset: config.job.plan.preset.name(),
            seed: config.job.options.seed,
            iterations: fit.trace.len(),
            burn_in: chains.fits.iter().map(|fit| fit.burn_in).collect(),
            stop_reason: self.stop_reason().name(),
            seconds: self.seconds,
            log_likelihood: last.map_or(f64::NAN, |row| row.log_likelihood),
            log_joint: last.map_or(f64::NAN, |row| row.log_joint),
            mean_log_likelihood: fit.posterior.log_likelihood,
            held_out_fraction: config.job.plan.held_out,
            held_out_log_likelihood: last.and_then(|row| row.held_out),
            whole_counts: source.whole_counts,
            threads: config.workers.threads(),
            version: bpnmf::VERSION,
            chains: chains.fits.len(),
            chain_shown: chains.representative + 1,
            convergence: chains.convergence.iter().map(agreement).collect(),
            warnings: self.warnings().into_iter().chain(extra.warnings.iter().cloned()).collect(),
            prior: PriorOf { a, b, c, d, a0, b0, components, number: number.name() },
            input: Input {
                path: &source.path,
                read_as: source.read_as.as_deref(),
                features: source.features,
                observations: source.observations,
                nonzeros: source.nonzeros,
                missing: source.missing,
                total: source.total,
            },
            keys: &extra.keys,
            components: (0..fit.posterior.components()).map(|k| self.component(k, &markers)).collect(),
        }
    }

    pub(super) fn component(&self, index: usize, markers: &Markers<'_>) -> Component {
        let posterior = self.posterior();
        let name = |f: usize| match &self.source.feature_names {
            Some(names) => json!(names[f]),
            None => json!(f),
        };
        let recurrence = self.chains.recurrence.as_ref().map(|recurrence| recurrence[index]);
        Component {
            index,
            name: self.name(index),
            share: posterior.share[index],
            share_interval: recurrence.and_then(|found| found.share),
            recurrence: recurrence.map(|found| found.of_others()),
            usage: posterior.usage[index],
            evidence: posterior.evidence.as_ref().map(|evidence| evidence[index]),
            pi: posterior.pi[index],
            top_features: top_features(posterior, index, TOP_FEATURES).into_iter().map(name).collect(),
            markers: markers.of(index, TOP_FEATURES).into_iter().map(name).collect(),
        }
    }

    /// The last object of --json-progress; `more` are warnings besides those of the chains.
    pub(crate) fn done_event(&self, folder: &Folder, more: &[String]) -> Value {
        let warnings: Vec<String> = self.warnings().into_iter().chain(more.iter().cloned()).collect();
        json!({
            "event": "done",
            "n_components": self.chains.n_components,
            "n_components_interval": self.chains.interval,
            "coarsening": self.coarsening(),
            "noise": self.fit().noise().name(),
            "alpha": self.fit().noise().alpha(),
            "iterations": self.fit().trace.len(),
            "stop_reason": self.stop_reason().name(),
            "seconds": self.seconds,
            "warnings": warnings,
            "out": folder.path().display().to_string(),
        })
    }
}

/// The power of the likelihood in a run: 1 unless its search chose another.
pub(super) fn coarsening(fit: &Fit) -> f64 {
    fit.discovery.as_ref().map_or(1.0, |discovery| discovery.coarsening)
}

/// R-hat as people write it.
pub(super) fn r_hat_text(r_hat: f64) -> String {
    if r_hat.is_finite() { format!("{r_hat:.2}") } else { "infinite".to_owned() }
}

/// The features of a component with the largest W, largest first.
pub(crate) fn top_features(posterior: &Posterior, component: usize, most: usize) -> Vec<usize> {
    let parts = posterior.components();
    let weight = |f: usize| posterior.dictionary[f * parts + component];
    let mut order: Vec<usize> = (0..posterior.features).collect();
    order.sort_by(|&i, &j| weight(j).total_cmp(&weight(i)).then(i.cmp(&j)));
    order.truncate(most);
    order
}

fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("only strings are keys");
    text.push('\n');
    text
}

fn write_text(folder: &Folder, name: &str, text: &str) -> Result<(), Failure> {
    bpnmf_io::write_atomically(&folder.file(name), |writer| writer.write_all(text.as_bytes()))
        .map_err(Failure::writing)
}
