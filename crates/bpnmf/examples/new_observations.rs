//! Components learned once, activations of observations that come later:
//! `cargo run --release -p bpnmf --example new_observations`.

use bpnmf::{Basis, Error, Plan, ProjectOptions, Recipe, Workers, fit};

fn main() -> Result<(), Error> {
    let recipe = Recipe { features: 30, observations: 200, ..Recipe::default() };
    let learned_from = recipe.draw(1)?.counts;
    let chains = fit(&learned_from, &Plan { seed: 1, ..Plan::default() })?;

    // What the search learned belongs to the components: the prior, the resolution of the data, and the noise.
    let found = chains.fit();
    let discovery = found.discovery.as_ref().expect("the default plan searches first");
    let basis =
        Basis::of(&found.posterior, &discovery.prior, discovery.coarsening)?.with_noise(found.noise())?;

    // Any counts with the same features can be projected; here, the first ones again.
    let projection = basis.project(&learned_from, &ProjectOptions::default(), &Workers::new(0)?, &|| true)?;
    let components = found.posterior.components();
    println!("{components} components; the first three observations:");
    for t in 0..3 {
        println!("{:.2?}", &projection.activations[t * components..][..components]);
    }
    Ok(())
}
