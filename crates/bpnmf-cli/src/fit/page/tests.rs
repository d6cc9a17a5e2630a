use super::*;
use crate::args::{Cli, Command};
use crate::checkpoint::Keeper;
use crate::fit;
use crate::fit::config::{Place, Request};
use crate::fit::output::{Extra, Source};
use crate::progress::{Mode, Progress};
use bpnmf::Counts;
use clap::Parser;
use std::path::Path;

/// The page of a fit with these flags to 6 features x 40 observations, in which two parts take turns, times `scale`.
fn page(flags: &str, scale: f64) -> String {
    let arguments = format!("bpnmf fit table.csv --out nowhere {flags}");
    let Command::Fit(args) = Cli::parse_from(arguments.split_whitespace()).command else {
        panic!("it says fit");
    };
    let request = Request::check(&args.model).unwrap_or_else(|_| panic!("{flags}"));
    let value = |f: usize, t: usize| {
        if (f < 3) == t.is_multiple_of(2) { scale * (9 + f + t % 3) as f64 } else { 0.0 }
    };
    let values = (0..6 * 40).map(|i| value(i % 6, i / 6)).collect();
    let counts = Counts::from_dense(6, 40, values).unwrap();
    let source = Source {
        path: "table.csv".to_owned(),
        features: 6,
        observations: 40,
        nonzeros: counts.nonzeros(),
        missing: 0,
        total: counts.total(),
        whole_counts: true,
        recording: false,
        read_as: None,
        feature_names: Some((0..6).map(|f| format!("a name that is rather long {f}")).collect()),
        observation_names: None,
    };
    let place = Place { path: &args.input, transposed: false };
    let (config, counts) = request.meet(counts, place).unwrap_or_else(|_| panic!("{flags}"));
    let progress = Progress::new(Mode::Silent, config.job.options.iterations, config.job.chains);
    let (chains, _) =
        fit::run(&config, &counts, progress, &Keeper::none()).unwrap_or_else(|_| panic!("{flags}"));
    let folder = Folder::unused(Path::new("nowhere"), &[], false).unwrap_or_else(|_| panic!("no files"));
    let warnings = config.job.warnings(&chains, &counts);
    let page = Results { source: &source, config: &config, chains: &chains, warnings, seconds: 1.0 }
        .for_people(&folder, &Extra::default());
    assert!(page.lines().all(|line| line.chars().count() < 100), "{page}");
    page
}

#[test]
fn the_headline_says_how_many_and_how_sure_and_one_chain_does_not_know() {
    let first = |flags: &str| page(flags, 1.0).lines().next().unwrap().to_owned();
    assert_eq!(first(""), "2 components (90 %: 2), 4 chains, R-hat 1.00");
    assert_eq!(first("--chains 1"), "2 components (one chain: how sure is not known)");
    assert_eq!(first("--chains 2 --force-components 3"), "3 components, as asked for");
    assert_eq!((range(11, 12), range(7, 7)), ("11 to 12".to_owned(), "7".to_owned()));
    assert_eq!([r_hat_text(1.0123), r_hat_text(f64::INFINITY)], ["1.01", "infinite"]);
}

#[test]
fn the_path_is_a_line_of_bars() {
    assert_eq!(
        path_picture(&[(0.03, 8), (0.1, 16), (0.3, 20), (1.0, 21)], "parts"),
        "parts by resolution   1/33 ▄ 8   1/10 ▇ 16   1/3 █ 20   full █ 21\n"
    );
    assert_eq!(
        path_picture(&[(0.0005, 1), (0.6, 9)], "parts"),
        "parts by resolution   1/2,000 ▁ 1   1/1.7 █ 9\n"
    );
    assert_eq!(path_picture(&[], "parts"), "");
}

#[test]
fn evidence_beyond_doubt_is_not_spelled_out() {
    assert_eq!([nats(1234.5), nats(999.6), nats(-3.2)], ["> 1000", "1000", "-3"]);
}

#[test]
fn the_page_shows_the_path_and_the_evidence_after_a_search_and_neither_without_one() {
    let auto = page("", 1.0);
    assert!(auto.lines().nth(1).unwrap().starts_with("components by resolution   1/"), "{auto}");
    assert!(auto.contains(" 2\nA plateau: the number stays at 2 from 1/"), "{auto}");
    assert!(auto.contains("  evidence  chains   strongest features\n"), "{auto}");
    assert_eq!(auto.matches("     4/4   ").count(), 2, "{auto}");
    assert!(!auto.contains("half of the chains"), "{auto}");
    let alone = page("--chains 1", 1.0);
    assert!(alone.contains("  evidence   strongest features\n"), "{alone}");
    let paper = page("--preset paper -k 10", 1.0);
    assert!(
        ["resolution", "evidence", "plateau", "chains"].iter().all(|word| !paper.contains(word)),
        "{paper}"
    );
    let forced = page("--chains 1 --force-components 2", 1.0);
    assert!(!forced.contains("resolution"), "{forced}");
}

#[test]
fn the_page_says_when_the_data_were_read_more_coarsely_and_how_to_read_them_in_full() {
    let asked = page("--chains 1 --coarsening 0.2", 5.0);
    assert!(asked.contains("1/5 █ 2\n"), "{asked}");
    assert!(asked.contains("The data were read at 1/5 of their resolution, as asked for.\n"), "{asked}");
    assert!(!page("--chains 1 --coarsening 1", 5.0).contains("as asked for"));
}
