//! From numbers in memory to components: `cargo run --release -p bpnmf --example numbers`.

use bpnmf::{Counts, Error, Plan, fit};

fn main() -> Result<(), Error> {
    // How often five words occur in six short texts, text after text: the words of the sea, then those of the kitchen.
    let words = ["wave", "sail", "salt", "pan", "oven"];
    let texts: [[f64; 5]; 6] = [
        [21.0, 14.0, 9.0, 0.0, 0.0],
        [0.0, 0.0, 11.0, 17.0, 12.0],
        [17.0, 12.0, 6.0, 1.0, 0.0],
        [0.0, 1.0, 8.0, 13.0, 9.0],
        [9.0, 7.0, 9.0, 8.0, 6.0],
        [25.0, 15.0, 10.0, 0.0, 1.0],
    ];
    let counts = Counts::from_dense(words.len(), texts.len(), texts.concat())?;

    let chains = fit(&counts, &Plan { seed: 1, ..Plan::default() })?;
    let interval = chains.interval.map(|(first, last)| format!(" (90 %: {first} to {last})"));
    println!("{} components{}", chains.n_components, interval.unwrap_or_default());

    let model = &chains.fit().posterior;
    let components = model.components();
    for k in 0..components {
        // W is stored by features: feature f of component k is at f * components + k.
        let weight = |f: usize| model.dictionary[f * components + k];
        let mut order: Vec<usize> = (0..words.len()).collect();
        order.sort_by(|&f, &g| weight(g).total_cmp(&weight(f)));
        let strongest: Vec<&str> = order.iter().take(3).map(|&f| words[f]).collect();
        let share = 100.0 * model.share[k];
        println!("component {k}: {share:.0} % of the counts; {}", strongest.join(", "));
    }
    Ok(())
}
