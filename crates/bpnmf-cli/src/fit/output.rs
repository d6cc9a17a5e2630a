//! What a fit leaves behind: model.npz, trace.csv, names.json and summary.json, and a page for people.

use super::config::Config;
use crate::failure::Failure;
use crate::folder::Folder;
use crate::text;
use bpnmf::{Fit, Posterior, Prior, StopReason, TraceRow};
use bpnmf_io::Array;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;

/// The files of a result.
pub(crate) const FILES: [&str; 4] = ["model.npz", "trace.csv", "names.json", "summary.json"];

/// Features named for each component.
const TOP_FEATURES: usize = 5;

/// Components that a page for people shows.
const MOST_ROWS: usize = 24;

/// Where the counts come from.
pub(crate) struct Source {
    /// The path as it was typed, or what stands for it.
    pub(crate) path: String,
    pub(crate) features: usize,
    pub(crate) observations: usize,
    pub(crate) nonzeros: usize,
    pub(crate) total: f64,
    pub(crate) whole_counts: bool,
    pub(crate) feature_names: Option<Vec<String>>,
    pub(crate) observation_names: Option<Vec<String>>,
}

/// A finished run and what it was about.
pub(crate) struct Results<'a> {
    pub(crate) source: &'a Source,
    pub(crate) config: &'a Config,
    pub(crate) fit: &'a Fit,
}

/// summary.json. Numbers that are not finite become null.
#[derive(Serialize)]
struct Summary<'a> {
    n_components: usize,
    n_on_anywhere: usize,
    method: &'a str,
    preset: &'a str,
    seed: u64,
    iterations: usize,
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
    prior: PriorOf,
    input: Input<'a>,
    components: Vec<Component>,
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
}

#[derive(Serialize)]
struct Input<'a> {
    path: &'a str,
    features: usize,
    observations: usize,
    nonzeros: usize,
    total: f64,
}

#[derive(Serialize)]
struct Component {
    index: usize,
    share: f64,
    usage: usize,
    pi: f64,
    top_features: Vec<Value>,
}

impl Results<'_> {
    /// Writes all files, the summary last: where it stands, the others are complete.
    pub(crate) fn write(&self, folder: &Folder) -> Result<(), Failure> {
        folder.create()?;
        let posterior = &self.fit.posterior;
        let (features, observations, parts) =
            (posterior.features, posterior.observations, posterior.components());
        let arrays = [
            ("W", Array::new(&[features, parts], &posterior.dictionary[..])),
            ("H", Array::new(&[parts, observations], &posterior.activations[..])),
            ("S", Array::new(&[parts, observations], &posterior.inclusion[..])),
            ("pi", Array::new(&[parts], &posterior.pi[..])),
        ];
        bpnmf_io::write_npz(&folder.file("model.npz"), &arrays).map_err(Failure::writing)?;
        write_text(folder, "trace.csv", &trace_table(&self.fit.trace))?;
        let (feature_names, observation_names) = (&self.source.feature_names, &self.source.observation_names);
        if feature_names.is_some() || observation_names.is_some() {
            let names = json!({ "features": feature_names, "observations": observation_names });
            write_text(folder, "names.json", &pretty(&names))?;
        } else {
            // Names that a former run left in the folder are not ours.
            folder.remove("names.json")?;
        }
        write_text(folder, "summary.json", &pretty(&self.summary()))
    }

    fn summary(&self) -> Summary<'_> {
        let (config, fit, source) = (self.config, self.fit, self.source);
        let last = fit.trace.last();
        let Prior { a, b, c, d, a0, b0, components } = config.prior.get();
        Summary {
            n_components: fit.posterior.components(),
            n_on_anywhere: fit.posterior.on_anywhere,
            method: config.engine.name(),
            preset: config.preset,
            seed: config.options.seed,
            iterations: fit.trace.len(),
            stop_reason: fit.stop_reason.name(),
            seconds: fit.seconds,
            log_likelihood: last.map_or(f64::NAN, |row| row.log_likelihood),
            log_joint: last.map_or(f64::NAN, |row| row.log_joint),
            mean_log_likelihood: fit.posterior.log_likelihood,
            held_out_fraction: config.held_out,
            held_out_log_likelihood: last.and_then(|row| row.held_out),
            whole_counts: source.whole_counts,
            threads: config.workers.threads(),
            version: bpnmf::VERSION,
            prior: PriorOf { a, b, c, d, a0, b0, components },
            input: Input {
                path: &source.path,
                features: source.features,
                observations: source.observations,
                nonzeros: source.nonzeros,
                total: source.total,
            },
            components: (0..fit.posterior.components()).map(|k| self.component(k)).collect(),
        }
    }

    fn component(&self, index: usize) -> Component {
        let posterior = &self.fit.posterior;
        let name = |f: usize| match &self.source.feature_names {
            Some(names) => json!(names[f]),
            None => json!(f),
        };
        Component {
            index,
            share: posterior.share[index],
            usage: posterior.usage[index],
            pi: posterior.pi[index],
            top_features: top_features(posterior, index, TOP_FEATURES).into_iter().map(name).collect(),
        }
    }

    /// The last object of --json-progress.
    pub(crate) fn done_event(&self, folder: &Folder) -> Value {
        json!({
            "event": "done",
            "n_components": self.fit.posterior.components(),
            "iterations": self.fit.trace.len(),
            "stop_reason": self.fit.stop_reason.name(),
            "seconds": self.fit.seconds,
            "out": folder.path().display().to_string(),
        })
    }

    /// The result on one page.
    pub(crate) fn for_people(&self, folder: &Folder) -> String {
        let posterior = &self.fit.posterior;
        let parts = posterior.components();
        let mut page = format!(
            "{} in {}: {}\n",
            text::plural(parts, "part", "parts"),
            text::duration(self.fit.seconds),
            self.why_it_stopped()
        );
        if parts > 0 {
            page.push_str(&self.table());
        }
        let files = FILES.iter().filter(|name| folder.file(name).exists()).copied().collect::<Vec<_>>();
        let _ = writeln!(page, "\n{}: {}", folder.path().display(), files.join(", "));
        page
    }

    fn why_it_stopped(&self) -> String {
        let iterations = text::plural(self.fit.trace.len(), "iteration", "iterations");
        match self.fit.stop_reason {
            StopReason::Converged => format!("the objective settled after {iterations}"),
            StopReason::IterationLimit => format!("all {iterations} done"),
            StopReason::Interrupted => format!("interrupted after {iterations}"),
            StopReason::NoCounts => "there is not a single count in the matrix".to_owned(),
            other => format!("{} after {iterations}", other.name()),
        }
    }

    fn table(&self) -> String {
        let posterior = &self.fit.posterior;
        let parts = posterior.components();
        let largest = posterior.share[0].max(f64::MIN_POSITIVE);
        let mut table = "\n part   share              on in      pi   strongest features\n".to_owned();
        for k in 0..parts.min(MOST_ROWS) {
            let component = self.component(k);
            let names: Vec<String> = component
                .top_features
                .iter()
                .map(|name| text::shortened(name.as_str().unwrap_or(&name.to_string()), 14))
                .collect();
            let _ = writeln!(
                table,
                "{:>5}  {:>5.1}%  {} {:>8}  {:>6.3}   {}",
                k,
                100.0 * component.share,
                text::bar(component.share / largest, 8),
                text::grouped(component.usage),
                component.pi,
                names.join(" ")
            );
        }
        if parts > MOST_ROWS {
            let _ = writeln!(table, "       and {} more in summary.json", parts - MOST_ROWS);
        }
        table
    }
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

/// trace.csv: the columns of the tiers are shares of the sites visited.
fn trace_table(trace: &[TraceRow]) -> String {
    let mut table = "iteration,active,on_anywhere,sites_on,log_likelihood,log_joint,held_out,\
                     h_free,linear,jensen,block_jensen,logarithms,exact,forced,flips,seconds\n"
        .to_owned();
    for row in trace {
        let tiers = &row.tiers;
        let sites = (tiers.sites() as f64).max(1.0);
        let _ = write!(
            table,
            "{},{},{},{},{},{},{}",
            row.iteration,
            row.active,
            row.on_anywhere,
            row.sites_on,
            row.log_likelihood,
            row.log_joint,
            row.held_out.map_or_else(String::new, |score| score.to_string())
        );
        let decided = [
            tiers.h_free,
            tiers.linear,
            tiers.jensen,
            tiers.block_jensen,
            tiers.logarithms,
            tiers.exact,
            tiers.forced,
        ];
        for count in decided {
            let _ = write!(table, ",{}", count as f64 / sites);
        }
        let _ = writeln!(table, ",{},{}", tiers.flips, row.seconds);
    }
    table
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
