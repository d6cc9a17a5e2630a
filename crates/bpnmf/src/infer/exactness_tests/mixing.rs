//! How far single chains move between numbers of components: figures, not a test.
//!
//! `MIXING="breast21 levels=40 every=20 iterations=2000 prior=uniform seeds=3" cargo test -p bpnmf --lib mixing -- --ignored --nocapture`

use crate::counts::Counts;
use crate::infer::{Gibbs, Jumped, Jumps};
use crate::plan::Plan;
use crate::prior::{ComponentsPrior, Prior};
use crate::random::{Key, Site};
use crate::run::{RunOptions, TraceRow, run};
use crate::workers::Workers;
use std::time::Instant;

/// W, H ~ Gamma(.5), ten components, 100 x 200, with this mean.
fn low_rank(mean: f64, seed: u64) -> Counts {
    const SIZE: [usize; 3] = [100, 200, 10];
    let mut stream = Key::new(seed).stream(Site::Synthesis, 0, 0, 0);
    let w: Vec<f64> = (0..SIZE[0] * SIZE[2]).map(|_| stream.gamma(0.5)).collect();
    let h: Vec<f64> = (0..SIZE[1] * SIZE[2]).map(|_| stream.gamma(0.5)).collect();
    let rate =
        |f: usize, t: usize| (0..SIZE[2]).map(|k| w[f * SIZE[2] + k] * h[t * SIZE[2] + k]).sum::<f64>();
    let rates: Vec<f64> = (0..SIZE[0] * SIZE[1]).map(|i| rate(i % SIZE[0], i / SIZE[0])).collect();
    let scale = mean * rates.len() as f64 / rates.iter().sum::<f64>();
    let values = rates.iter().map(|rate| stream.poisson(rate * scale)).collect();
    Counts::from_dense(SIZE[0], SIZE[1], values).unwrap()
}

/// 96 kinds of mutations in 21 genomes, if the data are there.
fn breast21() -> Option<Counts> {
    let folder = std::path::Path::new(&std::env::var_os("BPNMF_DATA")?).join("breast21");
    let files = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let text = files.filter_map(|path| std::fs::read_to_string(path).ok()).max_by_key(String::len)?;
    let numbers = |line: &str| line.split('\t').filter_map(|word| word.trim().parse::<f64>().ok()).collect();
    let rows: Vec<Vec<f64>> = text.lines().map(numbers).filter(|row: &Vec<f64>| row.len() == 21).collect();
    let values = (0..21).flat_map(|t| rows.iter().map(move |row| row[t])).collect();
    Counts::from_dense(rows.len(), 21, values).ok()
}

#[test]
#[ignore = "prints figures"]
fn mixing() {
    let asked = std::env::var("MIXING").unwrap_or_else(|_| "breast21".to_owned());
    let value = |name: &str| {
        asked.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    let number = |name: &str, default: usize| value(name).map_or(default, |text| text.parse().unwrap());
    let jumps = Jumps { levels: number("levels", 40) as u32, every: number("every", 20) as u32 };
    let iterations = number("iterations", 400);
    let of_number =
        value("prior").map_or(ComponentsPrior::BetaProcess, |name| ComponentsPrior::read(&name).unwrap());
    for seed in 1..=number("seeds", 2) as u64 {
        let counts = match value("mean") {
            Some(mean) => low_rank(mean.parse().unwrap(), number("data", 600) as u64),
            None => breast21().expect("BPNMF_DATA names the folder"),
        };
        let prior = Prior { number: of_number, ..Prior::default() }.check().unwrap();
        let (plan, _) = Plan { seed, ..Plan::default() }.job(&counts).unwrap();
        let options = RunOptions { iterations, stop: None, ..plan.options };
        let jumps = (jumps.levels > 0).then_some(jumps);
        let engine = Gibbs { burn_in: iterations as u32 / 5, jumps, ..Gibbs::default() };
        let (begin, mut first) = (Instant::now(), None);
        let mut jumped = Jumped::default();
        let mut watch = |row: &TraceRow| {
            first.get_or_insert(begin.elapsed());
            jumped.add(&row.jumped);
            true
        };
        let fit = run(&engine, &counts, &prior, &options, &Workers::serial(), &mut watch).unwrap();
        let mut often = [0; 40];
        fit.kept().iter().for_each(|row| often[row.active.min(39)] += 1);
        let often: Vec<String> =
            (0..40).filter(|&k| often[k] > 0).map(|k| format!("{k}: {}", often[k])).collect();
        let prior = fit.discovery.as_ref().unwrap().prior.get();
        println!(
            "seed {seed}: first {}, {} ({}), {jumped:?}, search {:.2} s, chain {:.2} s; a {:.2} b {:.3} c {:.2} d {:.2}",
            fit.trace[0].active,
            often.join(", "),
            fit.posterior.components(),
            first.unwrap().as_secs_f64(),
            (begin.elapsed() - first.unwrap()).as_secs_f64(),
            prior.a,
            prior.b,
            prior.c,
            prior.d
        );
    }
}
