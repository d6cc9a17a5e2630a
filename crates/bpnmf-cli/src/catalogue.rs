//! A catalogue of known signatures: read, brought into the order of somebody's features, and compared with components.
//! Knows no results and no pages.

use crate::failure::Failure;
use crate::text;
use bpnmf_io::ReadOptions;
use bpnmf_report::Channels;
use std::collections::HashMap;
use std::path::Path;

/// A component whose cosine with a signature is at least this is one.
const SAME: f64 = 0.9;

/// A component is a mixture of at most so many signatures, each of which adds so much to the cosine and has such a share.
const MOST_MIXED: usize = 3;
const LEAST_GAIN: f64 = 0.02;
const LEAST_SHARE: f64 = 0.1;

/// Steps of the non-negative least squares.
const STEPS: usize = 2000;

/// Known signatures.
pub(crate) struct Catalogue {
    pub(crate) names: Vec<String>,
    /// F x S by rows, in the order of the features it was asked for; columns add up to 1.
    pub(crate) signatures: Vec<f64>,
    /// Sentences about what was left out.
    pub(crate) doubts: Vec<String>,
}

/// What a component is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Match {
    /// The nearest signature, and the cosine with it.
    pub(crate) best: usize,
    pub(crate) cosine: f64,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// The nearest one.
    Known,
    /// A mixture: signatures, their shares and the cosine with it.
    Mixed(Vec<(usize, f64)>, f64),
    /// Neither.
    New,
}

impl Catalogue {
    /// Reads a table of features x signatures for these `features`, or for so many without names.
    pub(crate) fn read(path: &Path, features: Option<&[String]>, number: usize) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::Request(format!("{}: {what}", path.display()));
        let table = bpnmf_io::read(path, &ReadOptions::default()).map_err(Failure::reading)?;
        let (counts, rows) = (&table.counts, table.counts.features());
        let size = counts.observations();
        let names =
            table.observation_names.unwrap_or_else(|| (1..=size).map(|k| format!("signature {k}")).collect());
        let (order, doubts) = rows_of(path, table.feature_names.as_deref(), rows, features, number)?;
        let mut dense = vec![0.0; rows * size];
        for s in 0..size {
            counts.column(s).positive().for_each(|(f, value)| dense[f * size + s] = value);
        }
        let sums: Vec<f64> = (0..size).map(|s| order.iter().map(|&f| dense[f * size + s]).sum()).collect();
        if let Some(empty) = sums.iter().position(|sum| *sum <= 0.0) {
            return Err(wrong(format!(
                "signature {:?} has nothing in these features: take it out",
                names[empty]
            )));
        }
        let signatures = order.iter().flat_map(|&f| (0..size).map(move |s| (f, s)));
        let signatures = signatures.map(|(f, s)| dense[f * size + s] / sums[s]).collect();
        Ok(Self { names, signatures, doubts })
    }

    /// Signature `s`.
    pub(crate) fn signature(&self, s: usize) -> Vec<f64> {
        self.signatures.iter().skip(s).step_by(self.names.len()).copied().collect()
    }

    /// What each component is: columns of `components`, F x K by rows.
    pub(crate) fn matches(&self, components: &[f32], number: usize) -> Vec<Match> {
        let known: Vec<Vec<f64>> = (0..self.names.len()).map(|s| self.signature(s)).collect();
        let column =
            |k: usize| components.iter().skip(k).step_by(number).map(|&w| f64::from(w)).collect::<Vec<_>>();
        (0..number).map(|k| matched(&column(k), &known)).collect()
    }

    /// A match in one line.
    pub(crate) fn sentence(&self, found: &Match) -> String {
        let best = format!("{} (cosine {:.2})", self.names[found.best], found.cosine);
        match &found.kind {
            Kind::Known => best,
            Kind::Mixed(parts, cosine) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|&(s, share)| format!("{:.0} % {}", 100.0 * share, self.names[s]))
                    .collect();
                format!("{} (cosine {cosine:.2}); the nearest one is {best}", parts.join(" + "))
            }
            Kind::New => {
                format!("new: no signature of the catalogue, nor a mixture; the nearest one is {best}")
            }
        }
    }

    /// matches.tsv.
    pub(crate) fn table(&self, names: &[String], matches: &[Match]) -> String {
        let mut table =
            "component\tstatus\tbest_match\tcosine\tsignatures\tshares\tcosine_of_signatures\n".to_owned();
        for (name, found) in names.iter().zip(matches) {
            let best = &self.names[found.best];
            let (status, parts, cosine) = match &found.kind {
                Kind::Known => ("match", vec![(found.best, 1.0)], format!("{:.4}", found.cosine)),
                Kind::Mixed(parts, cosine) => ("mixture", parts.clone(), format!("{cosine:.4}")),
                Kind::New => ("new", Vec::new(), String::new()),
            };
            let listed =
                |of: &dyn Fn(&(usize, f64)) -> String| parts.iter().map(of).collect::<Vec<_>>().join(";");
            table += &format!(
                "{name}\t{status}\t{best}\t{:.4}\t{}\t{}\t{cosine}\n",
                found.cosine,
                listed(&|(s, _)| self.names[*s].clone()),
                listed(&|(_, share)| format!("{share:.3}"))
            );
        }
        table
    }
}

/// Which of its `rows` rows, called `known`, are the `features`, or so many without names; and sentences about what was left
/// out.
pub(crate) fn rows_of(
    path: &Path,
    known: Option<&[String]>,
    rows: usize,
    features: Option<&[String]>,
    number: usize,
) -> Result<(Vec<usize>, Vec<String>), Failure> {
    let wrong = |what: String| Failure::Request(format!("{}: {what}", path.display()));
    let (Some(known), Some(features)) = (known, features) else {
        if rows != number {
            return Err(wrong(format!("it has {rows} rows, the data have {number} features")));
        }
        let doubt = "rows are taken in their order for the features, because not both have names";
        return Ok(((0..rows).collect(), vec![format!("{}: {doubt}", path.display())]));
    };
    let places: HashMap<String, usize> =
        known.iter().enumerate().map(|(at, name)| (Channels::key(name), at)).collect();
    let found: Vec<Option<usize>> =
        features.iter().map(|name| places.get(&Channels::key(name)).copied()).collect();
    let missing = found.iter().filter(|at| at.is_none()).count();
    if missing > 0 {
        let at = found.iter().position(Option::is_none).unwrap_or(0);
        return Err(wrong(format!(
            "{missing} of {} features of the data are not in it, {:?} is one: name its rows as the features are named",
            text::grouped(number),
            features[at]
        )));
    }
    let mut doubts = Vec::new();
    if rows > number {
        let more = text::plural(rows - number, "row of it is", "rows of it are");
        doubts.push(format!("{}: {more} no feature of the data and left out", path.display()));
    }
    Ok((found.into_iter().flatten().collect(), doubts))
}

fn cosine(x: &[f64], y: &[f64]) -> f64 {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    dot(x, y) / (dot(x, x) * dot(y, y)).sqrt().max(f64::MIN_POSITIVE)
}

fn matched(component: &[f64], known: &[Vec<f64>]) -> Match {
    let cosines: Vec<f64> = known.iter().map(|signature| cosine(component, signature)).collect();
    let best = (0..known.len()).rev().max_by(|&i, &j| cosines[i].total_cmp(&cosines[j])).unwrap_or(0);
    let nearest = cosines.get(best).copied().unwrap_or(0.0);
    let found = |kind| Match { best, cosine: nearest, kind };
    if nearest >= SAME {
        return found(Kind::Known);
    }
    // Signature after signature, each the one that helps most.
    let (mut members, mut reached, mut shares) = (Vec::new(), 0.0, Vec::new());
    while members.len() < MOST_MIXED {
        let tried = (0..known.len()).filter(|s| !members.contains(s)).map(|s| {
            let with: Vec<usize> = members.iter().copied().chain([s]).collect();
            let weights = decomposed(component, &with.iter().map(|&s| &known[s][..]).collect::<Vec<_>>());
            (cosine(component, &mixed(&with, &weights, known)), with, weights)
        });
        let Some((reaches, with, weights)) = tried.max_by(|x, y| x.0.total_cmp(&y.0)) else { break };
        let total: f64 = weights.iter().sum();
        let small = weights.iter().any(|weight| *weight < LEAST_SHARE * total);
        if reaches < reached + LEAST_GAIN || small {
            break;
        }
        (members, reached) = (with, reaches);
        shares = weights.iter().map(|weight| weight / total).collect();
    }
    if members.len() > 1 && reached >= SAME {
        let mut parts: Vec<(usize, f64)> = members.into_iter().zip(shares).collect();
        parts.sort_by(|x, y| y.1.total_cmp(&x.1));
        return found(Kind::Mixed(parts, reached));
    }
    found(Kind::New)
}

fn mixed(members: &[usize], weights: &[f64], known: &[Vec<f64>]) -> Vec<f64> {
    (0..known[0].len()).map(|f| members.iter().zip(weights).map(|(&s, w)| w * known[s][f]).sum()).collect()
}

/// Non-negative least squares by coordinate descent.
pub(crate) fn decomposed(x: &[f64], signatures: &[&[f64]]) -> Vec<f64> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let n = signatures.len();
    let gram: Vec<f64> = (0..n * n).map(|i| dot(signatures[i / n], signatures[i % n])).collect();
    let target: Vec<f64> = signatures.iter().map(|signature| dot(x, signature)).collect();
    let mut weights = vec![0.0f64; n];
    for _ in 0..STEPS {
        let mut moved = 0.0f64;
        for i in 0..n {
            let others: f64 = (0..n).filter(|&j| j != i).map(|j| gram[i * n + j] * weights[j]).sum();
            let next = ((target[i] - others) / gram[i * n + i].max(f64::MIN_POSITIVE)).max(0.0);
            moved = moved.max((next - weights[i]).abs());
            weights[i] = next;
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if moved <= 1e-10 * largest {
            break;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three peaks beside each other.
    fn known() -> Vec<Vec<f64>> {
        (0..3).map(|s| (0..12).map(|f| if f / 4 == s { 0.24 } else { 0.005 }).collect()).collect()
    }

    #[test]
    fn a_signature_is_itself_a_mixture_is_its_parts_and_anything_else_is_new() {
        let known = known();
        assert_eq!(matched(&known[1], &known).kind, Kind::Known);
        let both: Vec<f64> = (0..12).map(|f| 0.6 * known[2][f] + 0.4 * known[0][f]).collect();
        let Kind::Mixed(parts, cosine) = matched(&both, &known).kind else { panic!("it is a mixture") };
        assert!(cosine > 0.999 && parts.len() == 2 && (parts[0].0, parts[1].0) == (2, 0), "{parts:?}");
        assert!((parts[0].1 - 0.6).abs() < 1e-6, "{parts:?}");
        let other: Vec<f64> = (0..12).map(|f| if f % 4 == 0 { 0.3 } else { 0.01 }).collect();
        assert_eq!(matched(&other, &known).kind, Kind::New);
    }

    #[test]
    fn least_squares_are_not_negative() {
        let known = known();
        let all: Vec<&[f64]> = known.iter().map(Vec::as_slice).collect();
        let x: Vec<f64> = (0..12).map(|f| 3.0 * known[0][f] - 0.01 * known[1][f]).collect();
        let weights = decomposed(&x, &all);
        assert!(
            weights.iter().all(|weight| *weight >= 0.0) && (weights[0] - 3.0).abs() < 0.01,
            "{weights:?}"
        );
    }
}
