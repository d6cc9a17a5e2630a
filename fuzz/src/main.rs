//! Executions without end: every reader on damaged files, and what came of it.
//!
//! `fuzz [EXECUTIONS [SEED]]`. Exits with 1 if anything panicked or took longer than a second.

use fuzz::{Dice, targets};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What a reader may take for a small file.
const HANG: Duration = Duration::from_secs(1);

/// Panics, also those that a reader caught itself.
static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).map(|word| word.replace('_', "").parse::<u64>());
    let (Ok(executions), Ok(seed)) =
        (numbers.next().unwrap_or(Ok(1_000_000)), numbers.next().unwrap_or(Ok(1)))
    else {
        eprintln!("usage: fuzz [EXECUTIONS [SEED]]");
        return ExitCode::from(2);
    };
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Relaxed);
        LAST.with_borrow_mut(|last| *last = panic.to_string().replace('\n', " "));
    }));
    println!(
        "{:<22}{:>12}{:>10}{:>12}{:>9}{:>9}{:>9}{:>14}",
        "reader", "executions", "read", "a second", "panics", "caught", "hangs", "slowest in s"
    );
    let (begin, mut dice) = (Instant::now(), Dice(seed));
    let (mut total, mut bad) = (0, 0);
    let mut script = [0; 64];
    for target in targets() {
        let share = (executions * u64::from(target.share)).div_ceil(1000);
        let (start, mut slowest, mut read) = (Instant::now(), Duration::ZERO, 0u64);
        let (mut panics, mut caught, mut hangs) = (0, 0, 0);
        for number in 0..share {
            dice.script(&mut script);
            let bytes = target.file(&script);
            let (before, moment) = (PANICS.load(Relaxed), Instant::now());
            let result = catch_unwind(AssertUnwindSafe(|| target.read(&bytes)));
            let took = moment.elapsed();
            slowest = slowest.max(took);
            read += u64::from(matches!(result, Ok(true)));
            hangs += u64::from(took > HANG);
            let escaped = result.is_err();
            panics += u64::from(escaped);
            caught += u64::from(!escaped && PANICS.load(Relaxed) > before);
            if (escaped && panics <= 3)
                || (took > HANG && hangs <= 3)
                || (PANICS.load(Relaxed) > before && caught <= 3)
            {
                let name = target.name.replace([' ', ',', '.'], "-");
                let path = std::env::temp_dir().join(format!("bpnmf-fuzz-{name}-{number}"));
                let kept = std::fs::write(&path, &bytes).is_ok();
                let place = if kept { path.display().to_string() } else { format!("{bytes:?}") };
                println!("  {place}: {:.3} s, {}", took.as_secs_f64(), LAST.with_borrow(String::clone));
            }
        }
        let rate = share as f64 / start.elapsed().as_secs_f64();
        println!(
            "{:<22}{share:>12}{read:>10}{rate:>12.0}{panics:>9}{caught:>9}{hangs:>9}{:>14.3}",
            target.name,
            slowest.as_secs_f64()
        );
        total += share;
        bad += panics + hangs;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{total} executions in {seconds:.0} s, {:.0} a second; seed {seed}; peak memory {}",
        total as f64 / seconds,
        peak()
    );
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The most memory that this process ever had, as the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "not known".to_owned(), |line| line.trim().to_owned())
}
