//! Data that are made up: Poisson counts around a product of W and H, scaled to a mean. Knows nothing of fits.

use super::data::{Data, Part, Size, Trouble, Truth};
use bpnmf::{Counts, Stream};

/// The size of what is not told its own.
const SIZE: Size = (100, 200);

/// The gamma shapes of W and H of counts that scatter: those of the grid with H of shape 1.
const GRID: (f64, f64) = (0.3, 1.0);

/// W, F x K by rows, and H, K x T by rows.
struct Factors {
    size: Size,
    components: usize,
    w: Vec<f64>,
    h: Vec<f64>,
}

impl Factors {
    /// W and H with independent entries of these gamma shapes.
    fn gamma(size: Size, components: usize, shapes: (f64, f64), stream: &mut Stream) -> Self {
        let w = (0..size.0 * components).map(|_| stream.gamma(shapes.0)).collect();
        let h = (0..components * size.1).map(|_| stream.gamma(shapes.1)).collect();
        Self { size, components, w, h }
    }

    /// Switches components off, each in all columns but a share of them; a column in which all are off gets one back.
    /// Components before `first` stay on.
    fn thin_out(&mut self, share: f64, first: usize, stream: &mut Stream) {
        let (observations, components) = (self.size.1, self.components);
        for t in 0..observations {
            let mut on: Vec<bool> = (0..components).map(|k| k < first || stream.uniform() < share).collect();
            if !on.contains(&true) {
                on[(stream.uniform() * components as f64) as usize] = true;
            }
            for k in (0..components).filter(|&k| !on[k]) {
                self.h[k * observations + t] = 0.0;
            }
        }
    }

    /// The sum of all entries of one component.
    fn mass(&self, k: usize) -> f64 {
        let w: f64 = self.w.iter().skip(k).step_by(self.components).sum();
        w * self.h[k * self.size.1..][..self.size.1].iter().sum::<f64>()
    }

    /// Poisson counts around W H times what makes their mean this.
    fn data(self, name: String, mean: f64, stream: &mut Stream) -> Result<Data, Trouble> {
        self.counted(name, mean, |rate| stream.poisson(rate))
    }

    /// W H times what makes its mean this, column after column.
    fn rates(&self, mean: f64) -> Vec<f64> {
        let Self { size: (features, observations), components, ref w, ref h } = *self;
        let mut rates = Vec::with_capacity(features * observations);
        for t in 0..observations {
            for f in 0..features {
                rates.push(
                    (0..components).map(|k| w[f * components + k] * h[k * observations + t]).sum::<f64>(),
                );
            }
        }
        let scale = mean * rates.len() as f64 / rates.iter().sum::<f64>();
        rates.iter_mut().for_each(|rate| *rate *= scale);
        rates
    }

    /// The same with any other count of a rate.
    fn counted(self, name: String, mean: f64, count: impl FnMut(f64) -> f64) -> Result<Data, Trouble> {
        let values = self.rates(mean).into_iter().map(count).collect();
        let Self { size: (features, observations), components, w, h } = self;
        let parts = (0..components)
            .map(|k| Part {
                column: w.iter().skip(k).step_by(components).copied().collect(),
                usage: h[k * observations..][..observations].iter().filter(|h| **h > 0.0).count(),
            })
            .collect();
        Ok(Data {
            name,
            counts: Counts::from_dense(features, observations, values)?,
            truth: Some(Truth { components, parts }),
        })
    }
}

pub(crate) fn low_rank(mean: f64, seed: u64) -> Result<Data, Trouble> {
    let mut stream = bpnmf::bench::stream(seed);
    let factors = Factors::gamma(SIZE, 10, (0.5, 0.5), &mut stream);
    factors.data(format!("low rank, mean {mean}, seed {seed}"), mean, &mut stream)
}

pub(crate) fn grid(components: usize, shape: f64, mean: f64, size: Size, seed: u64) -> Result<Data, Trouble> {
    let mut stream = bpnmf::bench::stream(seed);
    let factors = Factors::gamma(size, components, (0.3, shape), &mut stream);
    factors.data(format!("K0 {components}, shape {shape}, mean {mean}, seed {seed}"), mean, &mut stream)
}

/// A data set of the grid with H of shape 1 whose counts scatter more than Poisson, variance rate + rate^2 / alpha: each is
/// Poisson about its rate times a draw of Gamma(alpha, alpha). Without alpha it is that of the grid.
pub(crate) fn scattered(
    components: usize,
    mean: f64,
    alpha: Option<f64>,
    size: Size,
    seed: u64,
) -> Result<Data, Trouble> {
    let Some(alpha) = alpha else { return grid(components, 1.0, mean, size, seed) };
    let mut stream = bpnmf::bench::stream(seed);
    let factors = Factors::gamma(size, components, GRID, &mut stream);
    let name = format!("K0 {components}, mean {mean}, alpha {alpha}, seed {seed}");
    factors.counted(name, mean, |rate| {
        let scatter = stream.gamma(alpha) / alpha;
        stream.poisson(rate * scatter)
    })
}

/// The rates of [`scattered`] counts, column after column.
pub(crate) fn scattered_rates(components: usize, mean: f64, size: Size, seed: u64) -> Vec<f64> {
    Factors::gamma(size, components, GRID, &mut bpnmf::bench::stream(seed)).rates(mean)
}

pub(super) fn sparse(components: usize, mean: f64, seed: u64) -> Result<Data, Trouble> {
    let mut stream = bpnmf::bench::stream(seed);
    let mut factors = Factors::gamma((300, 2000), components, (0.3, 1.0), &mut stream);
    factors.thin_out(0.05, 0, &mut stream);
    factors.data(format!("{components} sparse components, mean {mean}, seed {seed}"), mean, &mut stream)
}

/// Half of the counts are the background's, which is the first of the five components.
pub(super) fn background(mean: f64, seed: u64) -> Result<Data, Trouble> {
    const SPARSE: usize = 4;
    let mut stream = bpnmf::bench::stream(seed);
    let mut factors = Factors::gamma(SIZE, SPARSE + 1, (0.1, 1.0), &mut stream);
    factors.thin_out(0.25, 1, &mut stream);
    factors.w.iter_mut().step_by(SPARSE + 1).for_each(|w| *w = 1.0);
    factors.h[..SIZE.1].iter_mut().for_each(|h| *h = stream.gamma(5.0));
    let ratio = (1..=SPARSE).map(|k| factors.mass(k)).sum::<f64>() / factors.mass(0);
    factors.h[..SIZE.1].iter_mut().for_each(|h| *h *= ratio);
    factors.data(format!("background, mean {mean}, seed {seed}"), mean, &mut stream)
}

pub(super) fn rank_one(mean: f64, seed: u64) -> Result<Data, Trouble> {
    let mut stream = bpnmf::bench::stream(seed);
    let factors = Factors::gamma(SIZE, 1, (1.0, 1.0), &mut stream);
    factors.data(format!("rank 1, mean {mean}, seed {seed}"), mean, &mut stream)
}

pub(super) fn partial(percent: u32, seed: u64) -> Result<Data, Trouble> {
    let Data { counts, mut truth, .. } = low_rank(4.7, seed)?;
    let mut stream = bpnmf::bench::stream(seed + 1000);
    let (mut starts, mut rows) = (vec![0], Vec::new());
    for _ in 0..counts.observations() {
        let gone = |f: &u32| stream.uniform() < f64::from(percent) / 100.0 || *f == 0;
        rows.extend((0..counts.features() as u32).filter(gone));
        starts.push(rows.len());
    }
    // Of the first row nothing is known.
    truth.iter_mut().for_each(|truth| truth.parts.clear());
    Ok(Data {
        name: format!("{percent} % missing, seed {seed}"),
        counts: counts.with_missing(starts, rows)?,
        truth,
    })
}

pub(super) fn noise(rate: f64, seed: u64) -> Result<Data, Trouble> {
    let mut stream = bpnmf::bench::stream(seed);
    flat(format!("noise, Poisson({rate}), seed {seed}"), || stream.poisson(rate))
}

pub(super) fn constant() -> Result<Data, Trouble> {
    flat("constant".into(), || 3.0)
}

/// Counts that have no structure.
fn flat(name: String, count: impl FnMut() -> f64) -> Result<Data, Trouble> {
    let (features, observations) = SIZE;
    let values = std::iter::repeat_with(count).take(features * observations).collect();
    let part = Part { column: vec![1.0; features], usage: observations };
    Ok(Data {
        name,
        counts: Counts::from_dense(features, observations, values)?,
        truth: Some(Truth { components: 1, parts: vec![part] }),
    })
}

/// A sparse matrix from the positive entries of its columns.
pub(super) fn from_columns<C: IntoIterator<Item = (usize, f64)>>(
    features: usize,
    columns: impl IntoIterator<Item = C>,
) -> Result<Counts, Trouble> {
    let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for column in columns {
        for (f, value) in column {
            rows.push(f as u32);
            values.push(value);
        }
        starts.push(rows.len());
    }
    Ok(Counts::from_sparse(features, starts.len() - 1, starts, rows, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_count_is_the_one_asked_for() {
        for data in
            [low_rank(4.7, 1), grid(3, 1.0, 50.0, (96, 100), 1), background(10.0, 1), rank_one(5.0, 1)]
        {
            let Data { name, counts, .. } = data.unwrap();
            let entries = (counts.features() * counts.observations()) as f64;
            let mean: f64 = ["4.7", "50", "10", "5"]
                .iter()
                .find(|mean| name.contains(&format!("mean {mean},")))
                .and_then(|mean| mean.parse().ok())
                .unwrap();
            assert!((counts.total() / entries / mean - 1.0).abs() < 0.03, "{name}");
        }
    }

    #[test]
    fn scattered_counts_of_one_rate_have_the_variance_of_the_negative_binomial() {
        let alpha = 8.0;
        let factors = Factors { size: (100, 300), components: 1, w: vec![1.0; 100], h: vec![1.0; 300] };
        let mut stream = bpnmf::bench::stream(3);
        let count = |rate: f64| {
            let scatter = stream.gamma(alpha) / alpha;
            stream.poisson(rate * scatter)
        };
        let counts = factors.counted(String::new(), 40.0, count).unwrap().counts;
        let values =
            || (0..300).flat_map(|t| (0..100).map(move |f| (f, t))).map(|(f, t)| entry(&counts, f, t));
        let mean = counts.total() / 30_000.0;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / 30_000.0;
        assert!((mean - 40.0).abs() < 0.5 && (variance / 240.0 - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    fn entry(counts: &Counts, f: usize, t: usize) -> f64 {
        counts.column(t).positive().find(|(row, _)| *row == f).map_or(0.0, |(_, value)| value)
    }

    #[test]
    fn sparse_components_are_on_in_5_percent_and_no_column_is_empty() {
        let truth = sparse(60, 5.0, 1).unwrap().truth.unwrap();
        let usage: usize = truth.parts.iter().map(|part| part.usage).sum();
        assert!((5900..6300).contains(&usage), "{usage}");
        let mut stream = bpnmf::bench::stream(1);
        let mut factors = Factors::gamma((2, 500), 3, (1.0, 1.0), &mut stream);
        factors.thin_out(0.05, 0, &mut stream);
        assert!((0..500).all(|t| (0..3).any(|k| factors.h[k * 500 + t] > 0.0)));
    }

    #[test]
    fn the_background_is_flat_always_on_and_half_of_the_counts() {
        let Data { counts, truth, .. } = background(10.0, 1).unwrap();
        let parts = truth.unwrap().parts;
        assert!(parts[0].column.iter().all(|w| *w == 1.0) && parts[0].usage == SIZE.1);
        assert!(parts[1..].iter().all(|part| (30..70).contains(&part.usage)));
        // W of shape 0.1 has entries near zero in most rows: what is left there is the background.
        let mut rows = counts.row_totals();
        rows.sort_by(f64::total_cmp);
        let background = rows[SIZE.0 / 4] * SIZE.0 as f64 / counts.total();
        assert!((0.4..0.6).contains(&background), "{background}");
    }
}
