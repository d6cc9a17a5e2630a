//! A run of one chain that is watched and stopped: `cargo run --release -p bpnmf --example watch`.

use bpnmf::{Error, Observer, Plan, Recipe, SearchStep, TraceRow, Workers};

/// Prints what happens and ends the run after ten iterations.
struct Watcher;

impl Observer for Watcher {
    fn search(&mut self, step: &SearchStep) -> bool {
        println!("search, {}: {} components", step.stage, step.active);
        true
    }

    fn step(&mut self, row: &TraceRow) -> bool {
        println!("iteration {}: {} components, log joint {:.1}", row.iteration, row.active, row.log_joint);
        row.iteration < 10
    }
}

fn main() -> Result<(), Error> {
    let counts = Recipe { features: 30, observations: 100, ..Recipe::default() }.draw(1)?.counts;
    let (job, _) = Plan { chains: Some(1), iterations: Some(100), ..Plan::default() }.job(&counts)?;
    let chains = job.run(&counts, &Workers::new(0)?, |_| None, |_| Watcher)?;
    println!("{} components; ended: {}", chains.n_components, chains.stop_reason().name());
    Ok(())
}
