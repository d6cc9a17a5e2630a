//! Files of other versions and broken ones: told, not trusted.

use super::file::{self, Unusable};
use super::*;

fn saved(version: &str) -> (tempfile::TempDir, PathBuf) {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join(FOLDER);
    fs::create_dir(&folder).unwrap();
    let path = folder.join("chain-1.bin");
    file::write(&path, &folder.join("chain-1.tmp"), None, &Job::of_version(version), None).unwrap();
    (out, path)
}

fn told(result: Result<Job, Failure>) -> String {
    match result {
        Err(Failure::Request(sentence)) => sentence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_whole_checkpoint_of_another_version_is_refused_with_both_versions_named() {
    let (out, _) = saved("0.0.7");
    let place = out.path().display();
    assert_eq!(
        told(job(out.path())),
        format!(
            "{place} was begun by bpnmf 0.0.7, this is {}: go on with that version, or start again with --force",
            bpnmf::VERSION
        )
    );
    let (out, _) = saved(bpnmf::VERSION);
    assert!(job(out.path()).is_ok());
}

#[test]
fn another_format_is_told_apart_from_damage() {
    let (out, path) = saved(bpnmf::VERSION);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 9;
    fs::write(&path, bytes).unwrap();
    assert!(told(job(out.path())).contains("another version of bpnmf, whose checkpoints have format 9"));
}

#[test]
fn every_changed_byte_and_every_cut_is_noticed() {
    let (out, path) = saved(bpnmf::VERSION);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(file::read(&path).is_err(), "byte {at}");
        fs::write(&path, &whole[..at]).unwrap();
        assert!(matches!(file::read(&path), Err(Unusable::Damaged(_))), "{at} bytes");
    }
    fs::write(&path, [&whole[..], b"x"].concat()).unwrap();
    assert!(told(job(out.path())).contains("its length is not what it says"));
}

#[test]
fn a_slow_checkpoint_waits_so_that_it_takes_a_hundredth_of_the_time() {
    let seconds = Duration::from_secs_f64;
    assert_eq!(wait(seconds(60.0), seconds(0.02)), seconds(60.0));
    assert_eq!(wait(seconds(60.0), seconds(3.0)), seconds(300.0));
    assert_eq!(wait(seconds(0.01), seconds(3.0)), seconds(0.01));
}
