//! A run of one chain that is watched and stopped: `cargo run --release -p bpnmf --example watch`.

use bpnmf::{Error, Observer, Plan, Recipe, RunOptions, SearchStep, Settings, TraceRow, Workers, run};

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
    let Settings { engine, prior, options } = Plan::default().settings_for(&counts)?;
    let options = RunOptions { iterations: 100, ..options };
    let fit = run(engine.as_ref(), &counts, &prior, &options, &Workers::new(0)?, &mut Watcher)?;
    println!("{} components; ended: {}", fit.posterior.components(), fit.stop_reason.name());
    Ok(())
}
