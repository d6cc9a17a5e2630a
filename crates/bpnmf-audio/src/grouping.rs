//! Parts that belong together, when nobody says which: those that sound alike and play in the same stretches.

use crate::parts::Parts;
use crate::sources::correlation;

/// Bands of a spectral envelope.
const BANDS: usize = 24;

/// How far below the loudest band an envelope is looked at, as a factor.
const FAINTEST: f64 = 1e-3;

/// The weight of timbre; the rest is that of playing in the same stretches.
const TIMBRE: f64 = 0.5;

/// Groups of parts, `wanted` of them (as many as there are parts if those are fewer), largest first by what they add to
/// W H. `second` is the number of frames in a second.
///
/// Two parts are alike by the mean of two similarities. Timbre: the correlation of their spectra in 24 bands, equally wide on
/// a scale that is nearly logarithmic above a 16th of the range, in decibels down to -60 of the loudest. Playing together: the
/// correlation of their loudness, averaged over a second. Groups are merged, those that are most alike on average first,
/// until so many are left. No group is empty.
pub fn group(parts: &Parts, wanted: usize, second: usize) -> Vec<Vec<usize>> {
    let many = parts.components;
    let envelopes: Vec<Vec<f64>> = (0..many).map(|k| envelope(parts.spectrum(k))).collect();
    let courses: Vec<Vec<f64>> = courses(parts, second);
    let mut alike = vec![0.0; many * many];
    for k in 0..many {
        for l in 0..k {
            let timbre = correlation(&envelopes[k], &envelopes[l]);
            let together = correlation(&courses[k], &courses[l]);
            let value = TIMBRE * timbre + (1.0 - TIMBRE) * together;
            alike[k * many + l] = value;
            alike[l * many + k] = value;
        }
    }
    let mut groups = agglomerate(&alike, many, wanted.max(1));
    let size = |group: &[usize]| group.iter().map(|&k| size_of(parts, k)).sum::<f64>();
    let mut order: Vec<(f64, Vec<usize>)> = groups.drain(..).map(|group| (size(&group), group)).collect();
    order.sort_by(|(x, one), (y, two)| y.total_cmp(x).then(one.cmp(two)));
    order.into_iter().map(|(_, group)| group).collect()
}

/// Merges the two groups that are most alike on average, again and again. Parts of a group are in order.
fn agglomerate(alike: &[f64], many: usize, wanted: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..many).map(|k| vec![k]).collect();
    while groups.len() > wanted {
        let mean = |one: &[usize], two: &[usize]| {
            let pairs = one.iter().flat_map(|&k| two.iter().map(move |&l| alike[k * many + l]));
            pairs.sum::<f64>() / (one.len() * two.len()) as f64
        };
        let (mut best, mut place) = (f64::NEG_INFINITY, (0, 1));
        for i in 0..groups.len() {
            for j in i + 1..groups.len() {
                let value = mean(&groups[i], &groups[j]);
                if value > best {
                    (best, place) = (value, (i, j));
                }
            }
        }
        let merged = groups.remove(place.1);
        groups[place.0].extend(merged);
        groups[place.0].sort_unstable();
    }
    groups
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

/// The activations of every part, averaged over a second.
fn courses(parts: &Parts, second: usize) -> Vec<Vec<f64>> {
    let (rows, frames) = (parts.activations(), parts.frames.max(1));
    let half = second / 2;
    rows.chunks_exact(frames)
        .map(|row| {
            let mut before = vec![0.0];
            for &h in row {
                before.push(before[before.len() - 1] + f64::from(h));
            }
            (0..frames)
                .map(|t| {
                    let (from, to) = (t.saturating_sub(half), (t + half + 1).min(frames));
                    ((before[to] - before[from]) / (to - from) as f64).max(0.0)
                })
                .collect()
        })
        .collect()
}

/// What a part adds to W H in all.
fn size_of(parts: &Parts, k: usize) -> f64 {
    let spectrum: f64 = parts.spectrum(k).iter().map(|&w| f64::from(w)).sum();
    let entries = parts.active.iter().zip(&parts.strength).filter(|(part, _)| **part as usize == k);
    spectrum * entries.map(|(_, &h)| f64::from(h)).sum::<f64>()
}
