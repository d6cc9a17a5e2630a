//! The whole page, from small data to strange data.

use crate::grid::{Grid, Side};
use crate::report::{Data, Model, PlayedNote, Report, SoundPage, Stem, Step, Trace};
use crate::text::escaped;
use bpnmf::Counts;

/// A model that owns its numbers: part k is strong at features k, k + K, ... and on in every column but each third.
struct Made {
    features: usize,
    observations: usize,
    dictionary: Vec<f32>,
    activations: Vec<f32>,
    inclusion: Vec<f32>,
    each: Vec<f64>,
    data: Vec<f32>,
}

impl Made {
    fn new(features: usize, observations: usize, parts: usize) -> Self {
        let strength = |f: usize, k: usize| if f % parts == k { 1.0 } else { 0.01 };
        let dictionary: Vec<f32> =
            (0..features).flat_map(|f| (0..parts).map(move |k| strength(f, k))).collect();
        let on = |k: usize, t: usize| f32::from(u8::from(!(t + k).is_multiple_of(3)));
        let inclusion: Vec<f32> = (0..parts).flat_map(|k| (0..observations).map(move |t| on(k, t))).collect();
        let noise = |i: usize| ((i * 7919) % 1013) as f32 / 50.0;
        Self {
            features,
            observations,
            dictionary,
            activations: inclusion.iter().map(|s| 10.0 * s).collect(),
            inclusion,
            each: (0..parts).map(|_| 1.0 / parts as f64).collect(),
            data: (0..features * observations).map(noise).collect(),
        }
    }

    fn report(&self) -> Report<'_> {
        let parts = self.each.len();
        let step = |iteration| Step {
            iteration,
            objective: -1e4 / iteration as f64,
            components: parts + iteration % 2,
        };
        Report {
            title: "counts.csv".to_owned(),
            source: "a table".to_owned(),
            n_components: parts,
            interval: Some((parts, parts + 1)),
            pmf: vec![(parts, 0.7), (parts + 1, 0.3)],
            forced: false,
            path: vec![(0.1, parts / 2), (1.0, parts)],
            traces: vec![Trace { steps: (1..=100).map(step).collect(), burn_in: 30, shown: true }],
            data: Data::Dense(&self.data),
            model: Model {
                features: self.features,
                observations: self.observations,
                dictionary: &self.dictionary,
                activations: &self.activations,
                inclusion: &self.inclusion,
                pi: &self.each,
                share: &self.each,
                usage: &self.each,
                evidence: Some(&self.each),
            },
            recurrence: &[],
            intervals: None,
            noise: bpnmf::Noise::Poisson,
            variance_factor: None,
            feature_names: None,
            observation_names: None,
            sound: None,
            matches: Vec::new(),
            warnings: Vec::new(),
            notes: Vec::new(),
            facts: Vec::new(),
        }
    }
}

/// The page, of which some things must always be true.
fn html(report: &Report<'_>) -> String {
    let page = crate::html(report);
    for bad in ["NaN", "inf ", "infinity", "http:", "https:", "//cdn", "<script src", "@import"] {
        assert!(!page.contains(bad), "{bad}");
    }
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let name: String = tag.chars().take_while(|&c| c.is_ascii_alphanumeric() || c == '/').collect();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name), "{tag:.60}"),
            None if ["meta", "img", ""].contains(&name.as_str()) || tag.contains("/>") => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    page
}

#[test]
fn a_page_says_how_many_parts_there_are_and_how_sure_that_is() {
    let made = Made::new(20, 30, 4);
    let page = html(&made.report());
    assert!(page.contains("This matrix is made of <b>4 components</b>."));
    assert!(page.contains("90 % interval: 4 to 5, from 1 chain."));
    assert_eq!(page.matches("<article>").count(), 4);
    assert_eq!(page.matches("<img").count(), 4);
    assert!(!page.contains("<script>") && !page.contains("<audio"), "there is nothing to hear");

    let mut report = made.report();
    report.forced = true;
    let page = html(&report);
    assert!(page.contains("a sum of <b>4 components</b>, as asked for") && !page.contains("Nobody told"));
    assert!(!page.contains("Probability of each number"));
}

#[test]
fn one_chain_does_not_say_how_sure_it_is() {
    let made = Made::new(20, 30, 4);
    let mut report = made.report();
    (report.interval, report.pmf) = (None, Vec::new());
    let page = html(&report);
    assert!(page.contains("How sure is that? One chain: not known."));
    assert!(!page.contains("90 % interval") && !page.contains("Probability of each number"));
    assert!(!page.contains("found by"));
}

#[test]
fn a_card_says_how_many_chains_found_its_part_and_marks_what_is_to_be_doubted() {
    // Two components that take turns: every chain finds them.
    let count =
        |f: usize, t: usize| if (f < 3) == t.is_multiple_of(2) { (20 + 5 * f + t) as f64 } else { 0.0 };
    let entries = (0..6).flat_map(|f| (0..12).map(move |t| count(f, t))).collect();
    let counts = Counts::from_dense(6, 12, entries).unwrap();
    let plan = bpnmf::Plan { iterations: Some(6), chains: Some(3), seed: 1, ..Default::default() };
    let (job, _) = plan.job(&counts).unwrap();
    let workers = bpnmf::Workers::serial();
    let mut chains = job.run(&counts, &workers, |_| None, |_| |_: &bpnmf::TraceRow| true).unwrap();
    let page = html(&Report::new(Data::Counts(&counts), &chains));
    let all = chains.n_components;
    assert!(all > 0);
    assert_eq!(
        page.matches("<p class=\"found\">found by 3 of 3 chains, ").count(),
        all,
        "{:?}",
        chains.recurrence
    );
    assert!(page.contains(" of the whole</p>") && !page.contains("found doubtful"));
    assert!(page.matches("<i style=\"left:").count() >= all && page.contains("with a probability of 90 %"));
    for found in chains.recurrence.as_mut().unwrap() {
        (found.found_by, found.share) = (1, None);
    }
    let page = html(&Report::new(Data::Counts(&counts), &chains));
    assert_eq!(page.matches("<p class=\"found doubtful\">found by 1 of 3 chains</p>").count(), all);
}

#[test]
fn no_name_can_be_markup() {
    let made = Made::new(6, 5, 2);
    let evil = "</script><img src=x onerror='alert(\"&\")'>";
    let names: Vec<String> = (0..6).map(|i| format!("{evil}{i}")).collect();
    let sound = Made::new(5, 4, 2);
    let (mut report, mut heard) = (made.report(), sound.report());
    heard.sound = Some(SoundPage {
        rate: 8000,
        window: 8,
        hop: 4,
        mixture: &[0.1; 13],
        stems: vec![Stem { name: evil.to_owned(), weights: vec![1.0, 0.0] }],
        pieces: None,
        residual: None,
        notes: vec![PlayedNote {
            onset: 0.0,
            offset: 0.001,
            midi: 69.0,
            name: evil.to_owned(),
            part: 0,
            sure: 1.0,
            stem: Some((0, 0.5)),
        }],
    });
    for report in [&mut report, &mut heard] {
        (report.title, report.source) = (evil.to_owned(), evil.to_owned());
        (report.warnings, report.notes) = (vec![evil.to_owned()], vec![evil.to_owned()]);
        report.facts = vec![(evil.to_owned(), evil.to_owned())];
    }
    (report.feature_names, report.observation_names) = (Some(&names[..]), Some(&names[..5]));
    for report in [&report, &heard] {
        let page = html(report);
        assert!(!page.contains(evil) && !page.contains("onerror='"));
        assert!(page.matches(&escaped(evil)).count() >= 7);
    }
}

#[test]
fn a_page_without_parts_still_shows_the_data() {
    let mut made = Made::new(6, 5, 1);
    (made.dictionary, made.activations, made.inclusion, made.each) = Default::default();
    let page = html(&made.report());
    assert!(page.contains("Nothing was found"));
    assert_eq!((page.matches("<img").count(), page.matches("<article>").count()), (1, 0));
}

#[test]
fn a_single_column_and_a_single_feature_make_a_page() {
    for (features, observations) in [(1, 1), (40, 1), (1, 40)] {
        let page = html(&Made::new(features, observations, 1).report());
        assert!(page.contains("<b>1 component</b>"));
    }
}

#[test]
fn a_page_of_five_hundred_parts_shows_the_largest_and_counts_the_rest() {
    let page = html(&Made::new(600, 200, 500).report());
    assert_eq!(page.matches("<article>").count(), 60);
    assert!(page.contains("440 smaller components are not shown here"));
    assert!(page.len() < 600_000, "{}", page.len());
}

#[test]
fn a_page_of_a_large_matrix_stays_small() {
    let made = Made::new(513, 2326, 40);
    let mut report = made.report();
    report.sound = Some(SoundPage {
        rate: 22_050,
        window: 1024,
        hop: 512,
        mixture: &[0.0; 7],
        stems: Vec::new(),
        pieces: None,
        residual: None,
        notes: vec![],
    });
    let page = html(&report);
    assert!(!page.contains("data-part"), "the sound does not belong to the model");
    // The data are noise, which no picture can make small.
    assert!(page.len() < 1_000_000, "{}", page.len());
}

#[test]
fn sparse_counts_of_any_size_are_drawn_without_being_made_dense() {
    // 2^31 x 1000 entries would not fit in memory.
    let features = 1usize << 31;
    let (rows, values) = ((0..1000).map(|i| i * 2_000_000).collect(), vec![3.0; 1000]);
    let counts = Counts::from_sparse(features, 1000, (0..=1000).collect(), rows, values).unwrap();
    let (down, across) = (Side::even(features, 256), Side::even(1000, 250));
    let grid = Grid::of_data(Data::Counts(&counts), &down, &across);
    let mean = grid.values.iter().sum::<f64>() / grid.values.len() as f64;
    assert!((mean * features as f64 / 3.0 - 1.0).abs() < 1e-9);
}

#[test]
fn one_giant_value_and_values_that_are_no_numbers_make_a_page() {
    let mut made = Made::new(30, 40, 3);
    (made.data[7], made.data[9], made.data[11]) = (1e15, f32::NAN, f32::INFINITY);
    (made.activations[3], made.dictionary[5]) = (1e30, 1e30);
    let mut report = made.report();
    report.traces[0].steps[4].objective = f64::NEG_INFINITY;
    report.traces[0].steps[5].objective = f64::NAN;
    html(&report);
}

#[test]
fn a_recording_brings_its_sound_and_its_model_if_they_fit_together() {
    let made = Made::new(17, 9, 3);
    let mut report = made.report();
    let mixture = [0.25; 35];
    let stem = |name: &str, weights: &[f32]| Stem { name: name.to_owned(), weights: weights.to_vec() };
    let stems = vec![stem("oboe", &[1.0, 0.0, 0.5]), stem("horn", &[0.0, 1.0, 0.5])];
    let sound = SoundPage {
        rate: 8000,
        window: 32,
        hop: 4,
        mixture: &mixture,
        stems,
        pieces: None,
        residual: None,
        notes: vec![],
    };
    report.sound = Some(sound.clone());
    let page = html(&report);
    assert!(page.contains("This recording is made of"));
    assert!(page.contains("\"stems\":[[1,0,0.5],[0,1,0.5]]"));
    assert_eq!(page.matches("<audio").count(), 1 + 2 + 3);
    assert!(page.contains("<b>oboe</b><small>50.0 %</small>"));

    assert!(!page.contains("<h2>Notes</h2>"));

    let note = |onset: f64, midi: f64, stem| PlayedNote {
        onset,
        offset: onset + 0.001,
        midi,
        name: "A4".to_owned(),
        part: 1,
        sure: 0.5,
        stem,
    };
    let notes = vec![note(0.0, 69.0, Some((1, 0.25))), note(0.002, 60.0, None)];
    report.sound = Some(SoundPage { notes, ..sound.clone() });
    let page = html(&report);
    assert!(page.contains("<title>A4, 0.00 to 0.00 s, part 1, stem horn (25.0 %)</title>"));
    assert!(page.contains("<title>A4, 0.00 to 0.00 s, part 1</title>"));

    report.sound = Some(SoundPage { hop: 5, ..sound });
    let page = html(&report);
    assert_eq!(page.matches("<audio").count(), 1, "the number of frames is wrong: only the mixture plays");
}
