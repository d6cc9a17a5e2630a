//! Numbers stay numbers: random matrices of every awkward kind through all engines and the search.

use crate::random::{Key, Site, Stream};
use crate::*;

/// Counts up to a million millions, empty rows and columns, one giant, copies of rows and columns, missing entries.
fn awkward(number: u64) -> (String, Counts) {
    let mut stream: Stream = Key::new(number).stream(Site::Synthesis, 9, 0, 0);
    let mut below = |n: usize| (stream.uniform() * n as f64) as usize;
    let shapes = [(1, 1), (1, 7), (9, 1), (2, 2), (5, 17), (33, 6), (12, 30)];
    let (features, observations) = shapes[below(shapes.len())];
    let kind = below(8);
    let whole = below(2) == 0;
    let scale = if whole { 10f64.powi(below(13) as i32) } else { 10f64.powi(below(13) as i32 - 6) };
    let density = [1.0, 0.5, 0.05][below(3)];
    let missing = [0.0, 0.0, 0.2, 0.95][below(4)];
    let mut values = vec![0.0; features * observations];
    for value in &mut values {
        if stream.uniform() < density {
            let x = (scale * stream.gamma(0.5)).min(1e15);
            *value = if whole { x.round() } else { x };
        }
    }
    match kind {
        0 => values.fill(0.0),
        1 => values[..features].fill(0.0),
        2 => values.iter_mut().step_by(features).for_each(|value| *value = 0.0),
        3 => values[(number as usize) % (features * observations)] = 1e12,
        4 => {
            let first = values[..features].to_vec();
            values.chunks_mut(features).for_each(|column| column.copy_from_slice(&first));
        }
        5 => values.chunks_mut(features).for_each(|column| column.fill(column[0])),
        _ => {}
    }
    for value in &mut values {
        if stream.uniform() < missing {
            *value = f64::NAN;
        }
    }
    let about = format!(
        "case {number}: {features} x {observations}, kind {kind}, scale {scale:e}, density {density}, missing {missing}"
    );
    (about, Counts::from_dense_with_missing(features, observations, values).unwrap())
}

fn check(about: &str, fit: &Fit) {
    let finite = |name: &str, values: &[f64]| {
        assert!(values.iter().all(|value| value.is_finite()), "{about}: {name} is not finite");
    };
    let shares = |name: &str, values: &[f64]| {
        let wrong = values.iter().find(|value| !(0.0..=1.0 + 1e-6).contains(*value));
        assert!(wrong.is_none(), "{about}: {name} is {wrong:?}");
    };
    let double = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    for row in &fit.trace {
        finite("the log joint", &[row.log_joint, row.log_likelihood]);
        finite("the activation", &[row.activation]);
        finite("the reconstruction", &row.reconstruction);
        assert!(row.activation >= 0.0, "{about}");
    }
    let posterior = &fit.posterior;
    let positive = |values: &[f32]| values.iter().all(|&value| value >= 0.0);
    assert!(positive(&posterior.dictionary) && positive(&posterior.activations), "{about}");
    finite("W", &double(&posterior.dictionary));
    finite("H", &double(&posterior.activations));
    shares("a probability of S", &double(&posterior.inclusion));
    shares("pi", &posterior.pi);
    shares("a share", &posterior.share);
    finite("the usage", &posterior.usage);
    assert!(posterior.usage.iter().all(|usage| *usage <= posterior.observations as f64 + 1e-6), "{about}");
    // The only component has infinite evidence: without it the data have no explanation.
    let evidence = posterior.evidence.as_deref().unwrap_or_default();
    assert!(evidence.iter().all(|value| *value > f64::NEG_INFINITY), "{about}: evidence {evidence:?}");
    finite("the mean log likelihood", &[posterior.log_likelihood]);
    if let Some(discovery) = &fit.discovery {
        let Prior { a, b, c, d, a0, b0, .. } = discovery.prior.get();
        finite("the learned prior", &[a, b, c, d, a0, b0, discovery.coarsening]);
    }
}

#[test]
fn numbers_stay_numbers_in_all_engines_and_in_the_search() {
    let cases = std::env::var("BPNMF_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(120);
    let noise = Noise::Scattered { alpha: 3.0 };
    let engines: [(&str, Box<dyn Engine>); 12] = [
        ("gibbs", Box::new(Gibbs { burn_in: 3, ..Default::default() })),
        (
            "gibbs-expected",
            Box::new(Gibbs { expected: true, burn_in: 3, init: Init::Scaled, ..Default::default() }),
        ),
        ("gibbs, scattered", Box::new(Gibbs { burn_in: 3, noise, ..Default::default() })),
        (
            "gibbs-expected, scattered",
            Box::new(Gibbs { expected: true, burn_in: 3, init: Init::Scaled, noise, jumps: None }),
        ),
        ("ssmf", Box::new(Ssmf::default())),
        ("ssmf, scattered", Box::new(Ssmf { noise, ..Default::default() })),
        (
            "ssmf, scattered, pruned",
            Box::new(Ssmf { noise, prune: Some(0.05), prune_from: 2, ..Default::default() }),
        ),
        (
            "ssmf, full gradient",
            Box::new(Ssmf { gradient: Gradient::Full { draws: 2, from: 2 }, ..Default::default() }),
        ),
        ("map", Box::new(Map::default())),
        ("map, scattered", Box::new(Map { init: Init::Scaled, noise })),
        ("nb-process", Box::new(NbProcess { burn_in: 3, init: Init::Random })),
        ("ssmf, pruned", Box::new(Ssmf { prune: Some(0.05), prune_from: 2, ..Default::default() })),
    ];
    let prior = Prior { components: 7, ..Default::default() }.check().unwrap();
    let workers = Workers::serial();
    for number in 0..cases {
        let (about, counts) = awkward(number);
        for (name, engine) in &engines {
            if engine.check(&counts).is_err() {
                continue;
            }
            for searched in [false, true] {
                let about = format!("{about}, {name}, search {searched}");
                let search = searched.then(Search::default);
                let options =
                    RunOptions { iterations: 6, seed: number, stop: None, search, ..Default::default() };
                let fit = run(engine.as_ref(), &counts, &prior, &options, &workers, &mut |_: &TraceRow| true);
                check(&about, &fit.unwrap_or_else(|error| panic!("{about}: {error}")));
            }
        }
    }
}
