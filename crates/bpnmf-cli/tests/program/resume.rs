//! Runs that are killed and go on: the same bytes, and a clear word where that is not possible.

use crate::separate::write_sounds;
use crate::{Bench, exists};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Starts a run that shall not come to its end by itself.
fn begin(bench: &Bench, arguments: &str) -> Child {
    let mut command = bench.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until `done` is true.
fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(120), "waited in vain for {what}");
        sleep(Duration::from_millis(2));
    }
}

/// Runs until there are two checkpoints with iterations in them, then kills it.
fn kill_after_checkpoints(bench: &Bench, arguments: &str) {
    let mut child = begin(bench, &format!("{arguments} --out out --checkpoint-every 0.01 -v"));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let after =
        |line: &String| line.starts_with("checkpoint of chain ") && line.contains(" after iteration ");
    let told = lines.by_ref().map(Result::unwrap).filter(after).nth(2);
    assert!(told.is_some(), "{arguments}: over before three checkpoints");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "killed");
    assert!(!exists(&bench.path("out/model.npz")) && !exists(&bench.path("out/summary.json")));
}

/// summary.json and trace.csv without times.
fn timeless(bench: &Bench, folder: &str) -> (Value, Vec<Vec<String>>) {
    let mut summary = bench.json(&format!("{folder}/summary.json"));
    for key in ["seconds", "seconds_by_stage", "threads"] {
        summary.as_object_mut().unwrap().remove(key);
    }
    let text = String::from_utf8(bench.bytes(&format!("{folder}/trace.csv"))).unwrap();
    let mut rows: Vec<Vec<String>> =
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect();
    let at = rows[0].iter().position(|name| name == "seconds").unwrap();
    rows.iter_mut().for_each(|row| drop(row.remove(at)));
    (summary, rows)
}

/// Resumes, and compares with the unbroken run in `whole`.
fn resume_and_compare(bench: &Bench, flags: &str) -> String {
    let output = bench.run(&format!("resume out {flags}"));
    let told = crate::told(output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(bench.bytes("out/model.npz"), bench.bytes("whole/model.npz"));
    assert_eq!(timeless(bench, "out"), timeless(bench, "whole"));
    assert!(!exists(&bench.path("out/checkpoint")), "a complete run keeps no checkpoints");
    let hidden = |name: &str| name.starts_with('.');
    assert!(!names(&bench.path("out")).iter().any(|name| hidden(name)), "nothing hidden is left");
    told
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A run of every engine that lasts long enough to be killed.
fn jobs() -> [&'static str; 4] {
    [
        "fit data/X.npy --preset paper --engine gibbs -k 100 -n 1000 --no-stop --threads 2",
        "fit data/X.npy --preset paper --engine ssmf -k 100 -n 1000 --no-stop --threads 2 --held-out 0.1",
        "fit data/X.npy --engine gibbs-expected -n 2000 --no-stop --threads 2",
        "fit data/X.npy --preset paper --engine gibbs -k 60 -n 800 --no-stop --threads 2 --chains 3",
    ]
}

#[test]
fn a_killed_run_goes_on_with_the_same_bytes_on_other_threads_too() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    for job in jobs() {
        bench.ok(&format!("{job} --out whole --force"));
        kill_after_checkpoints(&bench, job);
        let told = resume_and_compare(&bench, "--threads 1 -v");
        assert!(told.contains("goes on after iteration "), "{job}: {told}");
        fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

#[test]
fn a_killed_separation_goes_on_with_the_same_sounds() {
    let bench = Bench::new();
    write_sounds(&bench);
    let job = "separate mix.wav --reference low.wav high.wav -n 3000 --no-stop";
    bench.ok(&format!("{job} --out whole"));
    kill_after_checkpoints(&bench, job);
    resume_and_compare(&bench, "");
    for name in ["stems/low.wav", "stems/high.wav", "components/0.wav"] {
        assert_eq!(bench.bytes(&format!("out/{name}")), bench.bytes(&format!("whole/{name}")), "{name}");
    }
}

#[test]
fn a_run_that_was_stopped_in_its_search_goes_on_there_with_the_same_bytes() {
    let bench = Bench::new();
    bench.ok("synth --seed 1 --features 40 --observations 300 --out data");
    let job = "fit data/X.npy -n 12 --seed 4";
    bench.ok(&format!("{job} --out whole"));
    // With checkpoints in the search, and before the first of them: then it starts again by itself.
    for (every, goes_on) in [("0.001", true), ("1000", false)] {
        for stages in [1, 4] {
            let mut child =
                begin(&bench, &format!("{job} --out out --json-progress --checkpoint-every {every}"));
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!((0..stages).all(|_| lines.next().unwrap().unwrap().contains("\"search\"")));
            let newest = bench.path("out/checkpoint/chain-1.before.bin");
            until("a checkpoint", || !goes_on || exists(&newest));
            child.kill().unwrap();
            child.wait().unwrap();
            let told = resume_and_compare(&bench, "-v");
            assert_eq!(told.starts_with("chain 1 goes on in its search\n"), goes_on, "{told}");
            fs::remove_dir_all(bench.path("out")).unwrap();
        }
    }
    // An interrupt ends a stage in its middle: that one is done again.
    let mut child = begin(&bench, &format!("{job} --out out --json-progress"));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    resume_and_compare(&bench, "");
}

#[test]
fn an_interrupted_run_goes_on_from_another_folder_and_replaces_what_it_had_written() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    for (signal, job) in [("-INT", jobs()[0]), ("-TERM", jobs()[3])] {
        bench.ok(&format!("{job} --out whole --force"));
        let mut child = begin(&bench, &format!("{job} --out out --json-progress"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (0..20).for_each(|_| drop(lines.next().unwrap().unwrap()));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        lines.last();
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{told}");
        assert!(told.ends_with(": the results so far are in out; go on with bpnmf resume out\n"), "{told}");
        assert_eq!(bench.json("out/summary.json")["stop_reason"], "interrupted");
        assert_eq!(
            bench.fails(&format!("{job} --out out"), 2),
            "out holds an unfinished run: go on with it by bpnmf resume out, or start again with --force"
        );
        // The paths of the command line mean what they meant.
        fs::rename(bench.path("out"), bench.path("data/moved")).unwrap();
        let mut elsewhere = bench.command("resume moved");
        let output = elsewhere.current_dir(bench.path("data")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        fs::rename(bench.path("data/moved"), bench.path("out")).unwrap();
        assert_eq!(bench.bytes("out/model.npz"), bench.bytes("whole/model.npz"));
        assert_eq!(timeless(&bench, "out"), timeless(&bench, "whole"));
        assert_eq!(bench.fails("resume out", 2), "out: its run is complete, nothing to go on with");
        fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

#[test]
fn a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let job = jobs()[1];
    bench.ok(&format!("{job} --out whole"));
    kill_after_checkpoints(&bench, job);
    let newest = bench.path("out/checkpoint/chain-1.bin");
    let whole = fs::read(&newest).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&newest, &damaged).unwrap();
    fs::copy(bench.path("out/checkpoint/chain-1.before.bin"), bench.path("before.bin")).unwrap();
    let told = resume_and_compare(&bench, "");
    assert!(
        told.starts_with(
            "warning: out/checkpoint/chain-1.bin is damaged (its checksum is wrong): going on from the one before, \
             after iteration "
        ),
        "{told}"
    );

    // Both damaged: the job is lost with them.
    fs::create_dir_all(bench.path("lost/checkpoint")).unwrap();
    fs::write(bench.path("lost/checkpoint/chain-1.bin"), &whole[..middle]).unwrap();
    fs::write(bench.path("lost/checkpoint/chain-1.before.bin"), b"nothing of the kind").unwrap();
    let told = bench.fails("resume lost", 2);
    assert!(told.starts_with("no checkpoint in lost can be read ("), "{told}");
    assert!(told.ends_with("): start again with --force"), "{told}");
    assert_eq!(
        bench.fails("resume nowhere", 2),
        "nowhere: there is no checkpoint in it, nothing to go on with"
    );

    // The job of a chain that is whole serves the others, which start again.
    fs::copy(bench.path("before.bin"), bench.path("lost/checkpoint/chain-1.before.bin")).unwrap();
    assert_eq!(bench.run("resume lost").status.code(), Some(0));
    assert_eq!(bench.bytes("lost/model.npz"), bench.bytes("whole/model.npz"));
}

#[test]
fn another_input_is_refused_and_the_right_one_is_taken_again() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let job = jobs()[0];
    bench.ok(&format!("{job} --out whole"));
    kill_after_checkpoints(&bench, job);
    let right = bench.bytes("data/X.npy");
    let mut wrong = right.clone();
    *wrong.last_mut().unwrap() ^= 1;
    bench.write("data/X.npy", &wrong);
    let told = bench.fails("resume out", 2);
    assert_eq!(
        told,
        "data/X.npy is not the file that the run began with: bring that one back, or start again with --force"
    );
    fs::remove_file(bench.path("data/X.npy")).unwrap();
    bench.fails("resume out", 2);
    bench.write("data/X.npy", &right);
    resume_and_compare(&bench, "");
}

#[test]
fn two_runs_do_not_share_a_folder_and_a_killed_one_leaves_no_lock() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let long = "fit data/X.npy --preset paper -n 100000000 --no-stop --out out --json-progress";
    let mut child = begin(&bench, long);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    let busy = "another run is writing to out: wait for it or choose another folder";
    assert_eq!(bench.fails("fit data/X.npy --out out --force", 2), busy);
    assert_eq!(bench.fails("resume out", 2), busy);
    child.kill().unwrap();
    child.wait().unwrap();
    bench.ok("fit data/X.npy --preset paper -n 5 --out out --force");
    assert!(!exists(&bench.path("out/checkpoint")) && !exists(&bench.path("out/.bpnmf.lock")));
}

/// Ends a run by a checkpoint that cannot be written, and gives its sentence.
fn told_by(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let told = crate::told(output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let last = told.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow_ends_the_run_with_its_last_good_checkpoint() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let job = jobs()[0];
    bench.ok(&format!("{job} --out whole"));
    // The trace grows with every iteration: at some checkpoint the limit, in blocks of 512 bytes, is reached.
    let largest = {
        kill_after_checkpoints(&bench, job);
        let bytes = fs::metadata(bench.path("out/checkpoint/chain-1.bin")).unwrap().len();
        fs::remove_dir_all(bench.path("out")).unwrap();
        bytes
    };
    let program = env!("CARGO_BIN_EXE_bpnmf");
    let limited = format!(
        "trap '' XFSZ; ulimit -f {}; exec {program} {job} --out out --checkpoint-every 0.01",
        largest / 512 + 10
    );
    let shell =
        Command::new("sh").args(["-c", &limited]).current_dir(bench.path("")).stderr(Stdio::piped()).spawn();
    let told = told_by(shell.unwrap());
    assert!(told.starts_with("cannot write a checkpoint to out: "), "{told}");
    assert!(told.ends_with("; go on with bpnmf resume out"), "{told}");
    resume_and_compare(&bench, "");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_ends_the_run_with_its_last_good_checkpoint() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let job = jobs()[0];
    bench.ok(&format!("{job} --out whole"));
    fs::create_dir(bench.path("out")).unwrap();
    let mount = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(bench.path("")).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", "out"]) {
        eprintln!("skipped: no right to mount a small disk");
        return;
    }
    let mut child = begin(&bench, &format!("{job} --out out --checkpoint-every 0.01"));
    until("two checkpoints", || exists(&bench.path("out/checkpoint/chain-1.before.bin")));
    // Somebody else fills the disk, and takes what a checkpoint gives back.
    let mut big = fs::File::create(bench.path("out/big")).unwrap();
    while child.try_wait().unwrap().is_none() {
        while std::io::Write::write_all(&mut big, &[1; 4096]).is_ok() {}
        sleep(Duration::from_millis(1));
    }
    drop(big);
    let told = told_by(child);
    fs::remove_file(bench.path("out/big")).unwrap();
    let output = bench.run("resume out");
    let model = fs::read(bench.path("out/model.npz"));
    assert!(mount(&["umount", "--lazy", "out"]));
    assert_eq!(told, "cannot write a checkpoint to out: no space is left; go on with bpnmf resume out");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(model.unwrap(), bench.bytes("whole/model.npz"));
}

#[test]
fn a_folder_that_is_removed_under_way_is_told() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let child = begin(
        &bench,
        "fit data/X.npy --preset paper -n 100000000 --no-stop --out out --checkpoint-every 0.01",
    );
    until("a checkpoint", || exists(&bench.path("out/checkpoint/chain-1.before.bin")));
    fs::rename(bench.path("out"), bench.path("gone")).unwrap();
    assert_eq!(told_by(child), "cannot write a checkpoint to out: the folder is gone");
    assert!(!exists(&bench.path("out")));
}

#[cfg(unix)]
#[test]
fn a_folder_that_becomes_unwritable_ends_the_run_with_its_last_good_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let job = jobs()[0];
    bench.ok(&format!("{job} --out whole"));
    let folder = bench.path("out/checkpoint");
    let allow = |mode: u32| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    let child = begin(&bench, &format!("{job} --out out --checkpoint-every 0.01"));
    until("two checkpoints", || exists(&folder.join("chain-1.before.bin")));
    allow(0o555);
    if fs::write(folder.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        drop(fs::remove_file(folder.join("probe")));
        allow(0o755);
        let mut child = child;
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    let told = told_by(child);
    allow(0o755);
    assert_eq!(told, "cannot write a checkpoint to out: permission denied; go on with bpnmf resume out");
    resume_and_compare(&bench, "");
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_leaves_nothing_hidden_behind() {
    let bench = Bench::new();
    bench.ok("synth --seed 3 --features 30 --observations 200 --out data");
    let job = "fit data/X.npy --preset paper -n 100000000 --no-stop --out out --json-progress";
    let mut child = begin(&bench, job);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (0..20).for_each(|_| drop(lines.next().unwrap().unwrap()));
    for _ in 0..2 {
        // The second one may come too late: then the run has ended by the first.
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    }
    lines.for_each(drop);
    let code = child.wait().unwrap().code();
    assert!(code == Some(130) || code == Some(1), "{code:?}");
    let left = names(&bench.path("out"));
    assert!(!left.iter().any(|name| name.starts_with('.')), "{left:?}");
}

#[test]
fn checkpoints_are_told_with_v_and_none_are_kept_when_nobody_wants_them() {
    let bench = Bench::new();
    bench.write_table("table.csv");
    let job = "fit table.csv --preset paper -k 20 -n 300 --no-stop --out out --force";
    let output = bench.run(&format!("{job} -v --checkpoint-every 0.005"));
    let told = crate::told(output.stderr);
    assert!(told.starts_with("checkpoint of chain 1 after iteration "), "{told}");
    assert!(told.contains(" MB in ") && told.ends_with(" s\n"), "{told}");
    let output = bench.run(&format!("{job} -v --checkpoint-every 0"));
    assert_eq!(crate::told(output.stderr), "no checkpoints are kept\n");
    assert_eq!(
        bench.fails("fit table.csv --out new --checkpoint-every -1", 2),
        "--checkpoint-every is -1: it must be at least 0, the seconds between two checkpoints"
    );
}
