//! Parts that belong together, when nobody says which: those that sound alike.

use crate::parts::Parts;
use crate::sources::correlation;

/// Bands of a spectral envelope.
const BANDS: usize = 40;

/// How far below the loudest band an envelope is looked at, as a factor: 60 dB.
const FAINTEST: f64 = 1e-3;

/// Partials that are compared.
const PARTIALS: usize = 10;

/// How much less likely parts that always sound together are to be of one instrument.
const SOUNDING_TOGETHER: f64 = 0.5;

/// Rounds of k-means; it settles long before.
const ROUNDS: usize = 100;

/// Groups of parts, `wanted` of them (as many as there are parts if those are fewer), largest first by what they add to
/// W H. No group is empty.
///
/// Two parts are alike by r, the mean of two correlations. One is of their envelopes: the spectrum in 40 bands, equally wide
/// on a scale that is nearly logarithmic above a 16th of the range, in decibels down to -60 of the loudest. The other is of
/// the levels of their first ten partials, which do not know the pitch. An instrument mostly plays one note after the
/// other, so parts that sound together are less likely to be of one: their affinity max(r, 0)^2 is less by up to a half,
/// by the share of the frames of the rarer one that both are on in. The groups are those of spectral clustering (Ng,
/// Jordan & Weiss 2002); its k-means starts with the first part and then always the one farthest from all before, so that
/// nothing is left to chance.
pub fn group(parts: &Parts, wanted: usize) -> Vec<Vec<usize>> {
    let (many, wanted) = (parts.components, wanted.max(1));
    let labels = if wanted >= many { (0..many).collect() } else { clusters(&affinity(parts), many, wanted) };
    let size = |group: &[usize]| group.iter().map(|&k| size_of(parts, k)).sum::<f64>();
    let members = |label: usize| (0..many).filter(|&k| labels[k] == label).collect::<Vec<_>>();
    let mut groups: Vec<Vec<usize>> = (0..wanted.min(many)).map(members).collect();
    groups.sort_by(|one, two| size(two).total_cmp(&size(one)).then(one.cmp(two)));
    groups
}

/// How alike any two parts are, none like itself.
fn affinity(parts: &Parts) -> Vec<f64> {
    let many = parts.components;
    let envelopes: Vec<Vec<f64>> = (0..many).map(|k| envelope(parts.spectrum(k))).collect();
    let partials: Vec<Vec<f64>> = (0..many).map(|k| partials(parts.spectrum(k))).collect();
    let together = together(parts);
    let mut affinity = vec![0.0; many * many];
    for k in 0..many {
        for l in 0..k {
            let r =
                [&envelopes, &partials].map(|all| correlation(&all[k], &all[l])).iter().sum::<f64>() / 2.0;
            let rarer = together[k * many + k].min(together[l * many + l]).max(1.0);
            let alike = r.max(0.0).powi(2) * (1.0 - SOUNDING_TOGETHER * together[k * many + l] / rarer);
            affinity[k * many + l] = alike;
            affinity[l * many + k] = alike;
        }
    }
    affinity
}

/// The frames that two parts are on in together; with itself, those that a part is on in.
fn together(parts: &Parts) -> Vec<f64> {
    let many = parts.components;
    let mut together = vec![0.0; many * many];
    for frame in parts.starts.windows(2) {
        let on = &parts.active[frame[0]..frame[1]];
        for &k in on {
            on.iter().for_each(|&l| together[k as usize * many + l as usize] += 1.0);
        }
    }
    together
}

/// The cluster of every part, by the largest eigenvectors of D^-1/2 A D^-1/2. There are fewer clusters than parts.
fn clusters(affinity: &[f64], many: usize, wanted: usize) -> Vec<usize> {
    let root: Vec<f64> =
        affinity.chunks_exact(many).map(|row| (row.iter().sum::<f64>() + 1e-9).sqrt()).collect();
    let scaled = (0..many * many).map(|i| affinity[i] / (root[i / many] * root[i % many])).collect();
    let (values, vectors) = eigen(scaled, many);
    let mut order: Vec<usize> = (0..many).collect();
    order.sort_by(|&i, &j| values[j].total_cmp(&values[i]).then(i.cmp(&j)));
    let points: Vec<Vec<f64>> = (0..many)
        .map(|k| {
            let point: Vec<f64> = order[..wanted].iter().map(|&i| vectors[k * many + i]).collect();
            let length = point.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
            point.into_iter().map(|x| x / length).collect()
        })
        .collect();
    k_means(&points, wanted)
}

/// The cluster of every point; none is empty.
fn k_means(points: &[Vec<f64>], wanted: usize) -> Vec<usize> {
    let mut centres = vec![points[0].clone()];
    while centres.len() < wanted {
        let apart = |k: usize| centres.iter().map(|c| distance(c, &points[k])).fold(f64::INFINITY, f64::min);
        // The first of equal ones.
        let farthest = (0..points.len()).rev().max_by(|&k, &l| apart(k).total_cmp(&apart(l))).unwrap_or(0);
        centres.push(points[farthest].clone());
    }
    let mut labels = vec![0; points.len()];
    for _ in 0..ROUNDS {
        let before = labels.clone();
        for (label, point) in labels.iter_mut().zip(points) {
            let apart = |c: usize| distance(&centres[c], point);
            *label = (0..wanted).min_by(|&c, &d| apart(c).total_cmp(&apart(d))).unwrap_or(0);
        }
        fill_empty(&mut labels, points, &centres);
        for (c, centre) in centres.iter_mut().enumerate() {
            let members = || labels.iter().zip(points).filter(|(label, _)| **label == c);
            let size = members().count() as f64;
            for (i, x) in centre.iter_mut().enumerate() {
                *x = members().map(|(_, point)| point[i]).sum::<f64>() / size;
            }
        }
        if labels == before {
            break;
        }
    }
    labels
}

/// Gives every empty cluster the point that is farthest from its centre, out of those that are not alone.
fn fill_empty(labels: &mut [usize], points: &[Vec<f64>], centres: &[Vec<f64>]) {
    for c in 0..centres.len() {
        if labels.contains(&c) {
            continue;
        }
        let alone = |k: usize| labels.iter().filter(|&&label| label == labels[k]).count() == 1;
        let apart = |k: usize| distance(&centres[labels[k]], &points[k]);
        let free = (0..points.len()).rev().filter(|&k| !alone(k));
        if let Some(k) = free.max_by(|&k, &l| apart(k).total_cmp(&apart(l))) {
            labels[k] = c;
        }
    }
}

fn distance(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// The eigenvalues of a symmetric n x n matrix and its eigenvectors, one a column, by Jacobi's rotations.
fn eigen(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i / n == i % n))).collect();
    let all: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..ROUNDS {
        let off: f64 = (0..n * n).filter(|i| i / n != i % n).map(|i| a[i] * a[i]).sum();
        if off <= 1e-24 * all {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let between = a[p * n + q];
                if between == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * between);
                let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for i in 0..n {
                    let (x, y) = (a[i * n + p], a[i * n + q]);
                    (a[i * n + p], a[i * n + q]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (vectors[i * n + p], vectors[i * n + q]);
                    (vectors[i * n + p], vectors[i * n + q]) = (c * x - s * y, s * x + c * y);
                }
                for i in 0..n {
                    let (x, y) = (a[p * n + i], a[q * n + i]);
                    (a[p * n + i], a[q * n + i]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), vectors)
}

/// The loudness of a spectrum by bands, in nats from the loudest.
fn envelope(spectrum: &[f32]) -> Vec<f64> {
    let bins = spectrum.len() as f64;
    let corner = (bins / 16.0).max(1.0);
    let place = |f: f64| (1.0 + f / corner).ln() / (1.0 + bins / corner).ln() * (BANDS + 1) as f64;
    let (mut sums, mut weights) = (vec![0.0; BANDS], vec![0.0; BANDS]);
    for (f, &w) in spectrum.iter().enumerate() {
        // Triangles: a bin is between the middles of two bands.
        let at = place(f as f64) - 1.0;
        for band in [at.floor(), at.floor() + 1.0] {
            if (0.0..BANDS as f64).contains(&band) {
                let weight = 1.0 - (at - band).abs();
                sums[band as usize] += weight * f64::from(w);
                weights[band as usize] += weight;
            }
        }
    }
    let means: Vec<f64> =
        sums.iter().zip(&weights).map(|(sum, &w)| if w > 0.0 { sum / w } else { 0.0 }).collect();
    let loudest = means.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    means.iter().map(|mean| (mean / loudest + FAINTEST).ln()).collect()
}

/// The loudness of the partials of a spectrum, in nats from the loudest.
fn partials(spectrum: &[f32]) -> Vec<f64> {
    let levels = levels(spectrum, fundamental(spectrum));
    let loudest = levels.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    (0..PARTIALS).map(|i| (levels.get(i).unwrap_or(&0.0) / loudest + FAINTEST).ln()).collect()
}

/// The level at each multiple of a frequency, in bins, that is in the spectrum: the largest of three bins.
fn levels(spectrum: &[f32], frequency: f64) -> Vec<f64> {
    let last = spectrum.len().saturating_sub(2);
    (1..=PARTIALS)
        .map(|i| (i as f64 * frequency).round() as usize)
        .take_while(|&bin| bin < last)
        .map(|bin| f64::from(spectrum[bin.saturating_sub(1)..bin + 2].iter().copied().fold(0.0, f32::max)))
        .collect()
}

/// The frequency, in bins, whose multiples hold most of the spectrum; the first few count most. One whose own level is
/// faint is likely an octave too low.
fn fundamental(spectrum: &[f32]) -> f64 {
    /// From 2 bins on, in steps of a quarter of a tone.
    const LOWEST: f64 = 2.0;
    const STEPS: f64 = 24.0;
    let (mut best, mut most) = (LOWEST, 0.0);
    for step in 0.. {
        let frequency = LOWEST * (f64::from(step) / STEPS).exp2();
        if 3.0 * frequency > spectrum.len() as f64 {
            break;
        }
        let levels = levels(spectrum, frequency);
        let loudest = levels.iter().copied().fold(0.0, f64::max);
        let mut score: f64 = levels.iter().rev().fold(0.0, |sum, level| 0.9 * sum + level);
        if levels.first().is_some_and(|first| *first < 0.05 * loudest) {
            score *= 0.5;
        }
        if score > 1.001 * most {
            (best, most) = (frequency, score);
        }
    }
    best
}

/// What a part adds to W H in all.
fn size_of(parts: &Parts, k: usize) -> f64 {
    let spectrum: f64 = parts.spectrum(k).iter().map(|&w| f64::from(w)).sum();
    let entries = parts.active.iter().zip(&parts.strength).filter(|(part, _)| **part as usize == k);
    spectrum * entries.map(|(_, &h)| f64::from(h)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_take_a_matrix_apart() {
        let n = 12;
        let a: Vec<f64> = (0..n * n).map(|i| (((i / n) * (i % n) * 7 + i / n + i % n) % 11) as f64).collect();
        let (values, vectors) = eigen(a.clone(), n);
        for i in 0..n {
            for j in 0..n {
                let back: f64 = (0..n).map(|k| values[k] * vectors[i * n + k] * vectors[j * n + k]).sum();
                assert!((back - a[i * n + j]).abs() < 1e-9, "{back} {}", a[i * n + j]);
                let product: f64 = (0..n).map(|k| vectors[k * n + i] * vectors[k * n + j]).sum();
                assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
    }

    /// A note at this frequency, in bins, with partials of the given levels.
    fn note(frequency: f64, levels: &[f64]) -> Vec<f32> {
        let bump = |f: usize, at: f64| (-(f as f64 - at).powi(2)).exp();
        let level = |f: usize| {
            levels
                .iter()
                .enumerate()
                .map(|(i, level)| level * bump(f, (i + 1) as f64 * frequency))
                .sum::<f64>()
        };
        (0..257).map(|f| (level(f) + 1e-4) as f32).collect()
    }

    #[test]
    fn the_fundamental_of_a_note_is_found_and_its_partials_are_its_own() {
        let (odd, all) = ([1.0, 0.02, 0.6, 0.02, 0.3, 0.01, 0.1], [0.6, 1.0, 0.5, 0.4, 0.2, 0.1, 0.05]);
        for frequency in [9.0, 13.0, 17.3, 24.0] {
            for levels in [&odd, &all] {
                let found = fundamental(&note(frequency, levels));
                assert!((found / frequency - 1.0).abs() < 0.04, "{found} for {frequency}");
            }
        }
        let alike = |x: &[f32], y: &[f32]| correlation(&partials(x), &partials(y));
        let same = alike(&note(13.0, &odd), &note(17.3, &odd));
        let other = alike(&note(13.0, &odd), &note(13.0, &all));
        assert!(same > other + 0.1, "{same} {other}");
    }

    #[test]
    fn points_that_are_all_the_same_still_fill_every_cluster() {
        let labels = k_means(&vec![vec![1.0, 0.0]; 5], 3);
        assert!((0..3).all(|c| labels.contains(&c)), "{labels:?}");
    }
}
