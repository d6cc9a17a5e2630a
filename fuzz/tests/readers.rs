//! A short round of every reader with fixed seeds; longer ones are `./run fuzz`.

use fuzz::{Dice, Target, targets};
use std::time::{Duration, Instant};

const EXECUTIONS: u64 = 300_000;

#[test]
fn no_damaged_file_makes_a_reader_panic_or_hang() {
    let mut dice = Dice(2014);
    let mut script = [0; 64];
    for target in targets() {
        let (mut read, mut refused) = (0, 0);
        for number in 0..EXECUTIONS * u64::from(target.share) / 1000 {
            dice.script(&mut script);
            let bytes = target.file(&script);
            let begin = Instant::now();
            let good = target.read(&bytes);
            assert!(begin.elapsed() < Duration::from_secs(5), "{} {number}: {bytes:?}", target.name);
            if good { read += 1 } else { refused += 1 }
        }
        assert!(refused > 0, "{}: damage that nobody notices is none", target.name);
        // Checksums notice all damage of these two.
        if !["ogg", "checkpoint, its file"].contains(&target.name) {
            assert!(read > 0, "{}: damage that is always noticed at once reaches no deep code", target.name);
        }
    }
}

#[test]
fn the_same_script_makes_the_same_file() {
    for target in targets() {
        let mut script = [0; 64];
        Dice(7).script(&mut script);
        assert_eq!(target.file(&script), target.file(&script), "{}", target.name);
    }
}

/// Other seeds every time, shrunk when something is found. BOLERO_RANDOM_ITERATIONS says how many.
macro_rules! random {
    ($($test:ident: $name:literal),* $(,)?) => {$(
        #[test]
        #[ignore = "other seeds every time; ./run fuzz runs it"]
        fn $test() {
            let target = std::panic::AssertUnwindSafe(named($name));
            bolero::check!().with_iterations(20_000).for_each(|script: &[u8]| {
                target.read(&target.file(script));
            });
        }
    )*};
}

fn named(name: &str) -> Target {
    targets().into_iter().find(|target| target.name == name).expect("a reader of that name")
}

random! {
    npy: "npy",
    npz: "npz",
    npz_array: "npz, an array",
    csv: "csv",
    txt: "txt",
    csv_gz: "csv.gz",
    mtx: "mtx",
    mtx_gz: "mtx.gz",
    h5ad: "h5ad",
    wav: "wav",
    aiff: "aiff",
    flac: "flac",
    mp3: "mp3",
    ogg: "ogg, repaired",
    checkpoint: "checkpoint",
    checkpoint_repaired: "checkpoint, repaired",
    groups: "groups.json",
    command_line: "command line",
}
