//! Times the engine for `benches/speed.py`, which runs the rivals in between.
//!
//! Every line on standard input is a request, every answer is one line. `load CASE` prepares a case and answers its
//! shape; `sweep`, `plain`, `gemm`, `ssmf`, `gibbs` answer the seconds one of them took, `fit` those of a whole default
//! fit; `export PATH` writes the state of the case for other implementations; `memory` answers the peak memory in bytes.

use bpnmf::bench::MaskSweep;
use bpnmf::{
    Batch, Counts, Engine, Gibbs, Init, Job, Key, Plan, Prior, Recipe, Simd, Ssmf, State, Stream, TraceRow,
    Workers,
};
use std::io::BufRead;
use std::process::ExitCode;
use std::time::Instant;

/// A prepared problem: the state after ten SSMF iterations without pruning.
struct Case {
    counts: Counts,
    prior: Prior,
    state: State,
    workers: Workers,
}

/// Runs until standard input ends.
pub(crate) fn serve() -> ExitCode {
    let mut case: Option<Case> = None;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let words: Vec<&str> = line.split_whitespace().collect();
        let answer = match (words.as_slice(), &case) {
            (["load", rest @ ..], _) => match load(rest) {
                Ok(loaded) => {
                    let shape = format!(
                        "{} {} {}",
                        loaded.counts.features(),
                        loaded.counts.observations(),
                        loaded.counts.nonzeros()
                    );
                    case = Some(loaded);
                    shape
                }
                Err(error) => {
                    eprintln!("{error}");
                    return ExitCode::from(2);
                }
            },
            (["memory"], _) => peak_memory().to_string(),
            (request, Some(case)) => match case.answer(request) {
                Some(answer) => answer,
                None => {
                    eprintln!("unknown request: {line}");
                    return ExitCode::from(2);
                }
            },
            (_, None) => {
                eprintln!("load a case first: {line}");
                return ExitCode::from(2);
            }
        };
        println!("{answer}");
    }
    ExitCode::SUCCESS
}

/// `paper K T [SEED]`: the recipe of the paper; `random K T`: the same, started as the authors' code starts; `dense F T K`: low rank, every entry positive; `sparse F T K PER_COLUMN`: low
/// rank, few entries positive; `file PATH K`: a matrix from a file.
fn load(words: &[&str]) -> Result<Case, Box<dyn std::error::Error>> {
    let number = |i: usize| -> Result<usize, Box<dyn std::error::Error>> {
        Ok(words.get(i).ok_or("a number is missing")?.parse()?)
    };
    let (counts, components) = match words.first().copied() {
        Some("paper" | "random") => {
            let seed = if words.len() > 3 { number(3)? as u64 } else { 1 };
            (Recipe { observations: number(2)?, ..Recipe::default() }.draw(seed)?.counts, number(1)?)
        }
        Some("dense") => (low_rank(number(1)?, number(2)?, None)?, number(3)?),
        Some("sparse") => (low_rank(number(1)?, number(2)?, Some(number(4)?))?, number(3)?),
        Some("file") => {
            let path = std::path::Path::new(words[1]);
            (bpnmf_io::read(path, &bpnmf_io::ReadOptions::default())?.counts, number(2)?)
        }
        _ => return Err("cases: paper, dense, sparse, file".into()),
    };
    let prior = Prior { components, ..Prior::default() };
    let init = if words[0] == "random" { Init::Random } else { Init::Scaled };
    let engine = Ssmf { init, ..Ssmf::default() };
    let (checked, workers, key) = (prior.check()?, Workers::serial(), Key::new(1));
    let mut state = engine.init(&counts, &checked, key);
    for _ in 0..10 {
        engine.step(&mut state, &Batch::all(&counts), &checked, key, &workers)?;
    }
    Ok(Case { counts, prior, state, workers })
}

impl Case {
    fn answer(&self, request: &[&str]) -> Option<String> {
        let seconds = match request {
            ["sweep", simd] => self.sweep(match *simd {
                "auto" => Simd::Auto,
                "avx512" => Simd::Avx512,
                "avx2" => Simd::Avx2,
                "plain" => Simd::Plain,
                _ => return None,
            }),
            ["exact-rule"] => {
                let mut sweep = MaskSweep::new(&self.counts, &self.state, 3);
                timed(|| sweep.sweep_plainly())
            }
            ["gemm"] => self.gemm(),
            ["ssmf"] => self.step(&Ssmf::default(), self.state.clone()),
            ["gibbs"] => {
                let engine = Gibbs { init: Init::Scaled, ..Gibbs::default() };
                let state = engine.init(&self.counts, &self.prior.check().ok()?, Key::new(1));
                self.step(&engine, state)
            }
            ["fit"] => self.fit()?,
            ["export", path] => {
                self.export(std::path::Path::new(path)).ok()?;
                return Some("done".into());
            }
            _ => return None,
        };
        Some(format!("{seconds:.9}"))
    }

    /// One sweep with every H in place; the state is put back in between.
    fn sweep(&self, simd: Simd) -> f64 {
        let mut sweep = MaskSweep::new(&self.counts, &self.state, 3);
        median(|| {
            sweep.reset();
            timed(|| {
                sweep.sweep(simd);
            })
        })
    }

    /// One (K x F)(F x T) product in single precision.
    fn gemm(&self) -> f64 {
        let (f, t, k) = (self.counts.features(), self.counts.observations(), self.prior.components);
        let (a, b, mut c) = (vec![1.0f32; k * f], vec![1.0f32; f * t], vec![0.0f32; k * t]);
        let mut product = || {
            // SAFETY: the strides describe row-major matrices of exactly the sizes allocated above.
            unsafe {
                matrixmultiply::sgemm(
                    k,
                    f,
                    t,
                    1.0,
                    a.as_ptr(),
                    f as isize,
                    1,
                    b.as_ptr(),
                    t as isize,
                    1,
                    0.0,
                    c.as_mut_ptr(),
                    t as isize,
                    1,
                );
            }
        };
        median(|| timed(&mut product))
    }

    /// One iteration of an engine.
    fn step(&self, engine: &dyn Engine, mut state: State) -> f64 {
        let prior = self.prior.check().expect("checked before");
        let batch = Batch::all(&self.counts);
        let mut step = || {
            engine.step(&mut state, &batch, &prior, Key::new(1), &self.workers).expect("a valid step");
        };
        median(|| timed(&mut step))
    }

    /// What `bpnmf fit` does with the counts when it is told nothing.
    fn fit(&self) -> Option<f64> {
        let Job { engine, prior, options, .. } = Plan::default().job(&self.counts).ok()?.0;
        let watch = &mut |_: &TraceRow| true;
        let start = Instant::now();
        bpnmf::run(&*engine, &self.counts, &prior, &options, &self.workers, watch).ok()?;
        Some(start.elapsed().as_secs_f64())
    }

    fn export(&self, path: &std::path::Path) -> Result<(), bpnmf_io::Error> {
        let (w, h, s, logit) = MaskSweep::new(&self.counts, &self.state, 3).export();
        let (f, t, k) = (self.counts.features(), self.counts.observations(), self.prior.components);
        if self.counts.is_sparse() {
            let (mut starts, mut rows, mut values) = (vec![0i64], Vec::new(), Vec::new());
            for column in 0..t {
                for (row, value) in self.counts.column(column).positive() {
                    rows.push(row as u32);
                    values.push(value as f32);
                }
                starts.push(values.len() as i64);
            }
            return bpnmf_io::write_npz(
                path,
                &[
                    ("indptr", bpnmf_io::Array::new(&[starts.len()], starts.as_slice())),
                    ("indices", bpnmf_io::Array::new(&[rows.len()], rows.as_slice())),
                    ("data", bpnmf_io::Array::new(&[values.len()], values.as_slice())),
                ],
            );
        }
        let mut x = vec![0.0; f * t];
        for column in 0..t {
            for (row, value) in self.counts.column(column).positive() {
                x[row * t + column] = value;
            }
        }
        bpnmf_io::write_npz(
            path,
            &[
                ("X", bpnmf_io::Array::new(&[f, t], x)),
                ("W", bpnmf_io::Array::new(&[k, f], w)),
                ("H", bpnmf_io::Array::new(&[k, t], h)),
                ("S", bpnmf_io::Array::new(&[k, t], s)),
                ("logit_pi", bpnmf_io::Array::new(&[k], logit)),
            ],
        )
    }
}

/// The median of five, after one that warms up.
fn median(mut timing: impl FnMut() -> f64) -> f64 {
    timing();
    let mut times: [f64; 5] = std::array::from_fn(|_| timing());
    times.sort_by(f64::total_cmp);
    times[2]
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Counts of rank 10: dense with mean 30, or with about `per_column` positive entries a column.
fn low_rank(features: usize, observations: usize, per_column: Option<usize>) -> Result<Counts, bpnmf::Error> {
    const RANK: usize = 10;
    let mut stream: Stream = bpnmf::bench::stream(7);
    let w: Vec<f64> = (0..features * RANK).map(|_| stream.gamma(0.5)).collect();
    let Some(per_column) = per_column else {
        let mut values = Vec::with_capacity(features * observations);
        for _ in 0..observations {
            let h: Vec<f64> = (0..RANK).map(|_| 6.0 * stream.gamma(1.0)).collect();
            for row in w.chunks(RANK) {
                let rate: f64 = row.iter().zip(&h).map(|(w, h)| w * h).sum();
                values.push(stream.poisson(rate) + 1.0);
            }
        }
        return Counts::from_dense(features, observations, values);
    };
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..observations {
        let part = (stream.uniform() * RANK as f64) as usize;
        let mut chosen: Vec<u32> = (0..per_column)
            .map(|_| {
                // Features that are strong in this column's part come up more often.
                let mut best = (0, 0.0);
                for _ in 0..3 {
                    let f = (stream.uniform() * features as f64) as usize;
                    if w[f * RANK + part] >= best.1 {
                        best = (f, w[f * RANK + part]);
                    }
                }
                best.0 as u32
            })
            .collect();
        chosen.sort_unstable();
        chosen.dedup();
        for f in chosen {
            rows.push(f);
            values.push(1.0 + stream.poisson(1.5));
        }
        starts.push(rows.len());
    }
    Counts::from_sparse(features, observations, starts, rows, values)
}

/// Peak resident memory of this process in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}
