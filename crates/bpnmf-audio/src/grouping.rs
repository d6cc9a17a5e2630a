//! Parts that belong together, when nobody says which: those that sound alike.

use crate::parts::Parts;
use crate::sources::correlation;

/// Bands of a spectral envelope.
const BANDS: usize = 40;

/// How far below the loudest band an envelope is looked at, as a factor: 60 dB.
const FAINTEST: f64 = 1e-3;

/// Rounds of k-means; it settles long before.
const ROUNDS: usize = 100;

/// Groups of parts, `wanted` of them (as many as there are parts if those are fewer), largest first by what they add to
/// W H. No group is empty.
///
/// Two parts are alike by the correlation r of their envelopes: the spectrum in 40 bands, equally wide on a scale that is
/// nearly logarithmic above a 16th of the range, in decibels down to -60 of the loudest. The groups are those of spectral
/// clustering (Ng, Jordan & Weiss 2002) with the affinity max(r, 0)^2; its k-means starts with the first part and then
/// always the one farthest from all before, so that nothing is left to chance.
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
    let mut affinity = vec![0.0; many * many];
    for k in 0..many {
        for l in 0..k {
            let alike = correlation(&envelopes[k], &envelopes[l]).max(0.0).powi(2);
            affinity[k * many + l] = alike;
            affinity[l * many + k] = alike;
        }
    }
    affinity
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

    #[test]
    fn points_that_are_all_the_same_still_fill_every_cluster() {
        let labels = k_means(&vec![vec![1.0, 0.0]; 5], 3);
        assert!((0..3).all(|c| labels.contains(&c)), "{labels:?}");
    }
}
