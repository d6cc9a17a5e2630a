//! trace.csv: the path of resolutions and the iterations of every chain. Text out, nothing written.

use super::output::coarsening;
use bpnmf::{Fit, Resolution, TraceRow};
use std::fmt::Write as _;

/// The columns but for the last: `reconstruction_1` and so on, `coarsening`, `n_components`, and moves between numbers.
const COLUMNS: [&str; 18] = [
    "iteration",
    "active",
    "on_anywhere",
    "sites_on",
    "log_likelihood",
    "log_joint",
    "held_out",
    "h_free",
    "linear",
    "jensen",
    "moments",
    "logarithms",
    "exact",
    "forced",
    "flips",
    "seconds",
    "chain",
    "activation",
];

/// Where `chain` stands among them.
const CHAIN: usize = 16;

/// The table, chain after chain: the path as iteration 0, then a row an iteration.
pub(super) fn table(fits: &[Fit]) -> String {
    let mut table = COLUMNS.join(",");
    (1..=bpnmf::PROBES).for_each(|i| table += &format!(",reconstruction_{i}"));
    table += ",coarsening,n_components,births,births_accepted,deaths,deaths_accepted\n";
    for (i, fit) in fits.iter().enumerate() {
        fit.resolution_path().iter().for_each(|at| path_line(&mut table, i + 1, at));
        for (row, number) in fit.trace.iter().zip(fit.numbers()) {
            line(&mut table, i + 1, row, coarsening(fit), number);
        }
    }
    table
}

/// The number of parts at one resolution; everything else is empty.
fn path_line(table: &mut String, chain: usize, at: &Resolution) {
    let before = ",".repeat(CHAIN - 1);
    let after = ",".repeat(COLUMNS.len() - CHAIN + bpnmf::PROBES);
    let (number, coarsening) = (at.components, at.coarsening);
    let _ = writeln!(table, "0,{number}{before}{chain}{after}{coarsening},{number},,,,");
}

/// An iteration. The columns of the tiers are shares of the sites visited.
fn line(table: &mut String, chain: usize, row: &TraceRow, coarsening: f64, number: usize) {
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
        tiers.moments,
        tiers.logarithms,
        tiers.exact,
        tiers.forced,
    ];
    for count in decided {
        let _ = write!(table, ",{}", count as f64 / sites);
    }
    let _ = write!(table, ",{},{},{chain},{}", tiers.flips, row.seconds, row.activation);
    for rate in row.reconstruction {
        let _ = write!(table, ",{rate}");
    }
    let tried = &row.jumped;
    let _ = writeln!(
        table,
        ",{coarsening},{number},{},{},{},{}",
        tried.births, tried.births_accepted, tried.deaths, tried.deaths_accepted
    );
}
