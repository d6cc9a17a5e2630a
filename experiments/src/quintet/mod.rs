//! Five instruments taken apart by the paper's protocol, beside KL-NMF and the limits: `quintet --help` says how to ask.

mod methods;
mod nmf;
pub(crate) mod rendering;
mod table;

use crate::document;
use crate::flags::Flags;
use crate::recording::{Recording, Trouble};
use bpnmf::Workers;
use methods::{Bench, Method, Plan};
use std::process::ExitCode;
use table::Done;

const WINDOW: usize = 1024;

/// How much of the recording a quick run hears.
const QUICK_SECONDS: usize = 8;

fn help() -> String {
    format!(
        "\
usage: cargo run --release -p experiments -- quintet [OPTIONS]

  --rendering              the same notes on other instruments, made in code; nothing is written
  --quick                  the first {QUICK_SECONDS} s, one seed, few iterations, to see that nothing is broken
  --only NAMES             only these, with commas in between: {}
  --seeds N                seeds of the fits, from 1 on; 10
  --printed-seeds N        seeds of ssmf and gibbs as printed, which are slow; 3
  --printed-iterations N   their iterations; 200 for ssmf, 400 for gibbs
  --threads N              threads of a fit; by default all there are
  --out PATH               the document the table goes into; docs/quintet.md if everything is run

The variable BPNMF_DATA names the folder of the data that is read, by default ../shared/data.
",
        Method::EVERY.map(Method::name).join(", ")
    )
}

/// `quintet ...`: 2 if it could not be run.
pub(crate) fn command(arguments: &[String]) -> ExitCode {
    if matches!(arguments.first().map(String::as_str), Some("--help" | "-h" | "help")) {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let others = ["--only", "--seeds", "--printed-seeds", "--printed-iterations"];
    let done = Flags::parse("quintet", arguments, &others).and_then(|flags| study(&flags));
    done.map_or_else(
        |reason| {
            eprintln!("{reason}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

fn study(flags: &Flags) -> Result<(), String> {
    let (methods, plan) = (methods(flags)?, plan(flags)?);
    let workers =
        Workers::new(flags.number("--threads")?.unwrap_or(0) as usize).map_err(|error| error.to_string())?;
    let out = flags.out("docs/quintet.md").filter(|_| !flags.on("--rendering"));
    if let Some(path) = &out {
        document::check(path)?;
    }
    let seconds = flags.quick.then_some(QUICK_SECONDS);
    let recording = match flags
        .on("--rendering")
        .then(rendering::recording)
        .unwrap_or_else(|| Recording::load("quintet", &rendering::NAMES, WINDOW, seconds))
    {
        Ok(recording) => recording,
        Err(Trouble::Absent(reason)) => {
            println!("quintet: skipped: {reason}");
            return Ok(());
        }
        Err(Trouble::Bad(reason)) => return Err(reason),
    };
    let mut bench = Bench::new(&recording, &workers, plan);
    let mut done = Vec::new();
    for method in methods {
        done.push(Done { method, outcomes: bench.outcomes(method)? });
        // After every method: fits take long, and what was measured shall not be lost.
        if let Some(path) = &out {
            let new = table::section(&done, &flags.command, &bench.plan, workers.threads());
            document::write(path, table::AROUND, &new)?;
        }
    }
    println!("\n{}", table::markdown(&done));
    if let Some(path) = &out {
        println!("written to {}", path.display());
    }
    Ok(())
}

fn methods(flags: &Flags) -> Result<Vec<Method>, String> {
    let Some(only) = flags.text("--only") else {
        return Ok(Method::EVERY.to_vec());
    };
    let find = |name: &str| {
        let method = Method::EVERY.into_iter().find(|method| method.name() == name);
        let every = Method::EVERY.map(Method::name).join(", ");
        method.ok_or_else(|| format!("there is no method {name}; there are: {every}"))
    };
    only.split(',').map(find).collect()
}

fn plan(flags: &Flags) -> Result<Plan, String> {
    let quick = flags.quick;
    let iterations = flags.number("--printed-iterations")?.map(|many| [many as usize; 2]);
    Ok(Plan {
        seeds: flags.number("--seeds")?.unwrap_or(if quick { 1 } else { 10 }),
        printed_seeds: flags.number("--printed-seeds")?.unwrap_or(if quick { 1 } else { 3 }),
        printed_iterations: iterations.unwrap_or(if quick { [10, 10] } else { [200, 400] }),
        ladder: if quick { vec![10, 20] } else { vec![10, 20, 30, 40, 60, 80] },
    })
}
