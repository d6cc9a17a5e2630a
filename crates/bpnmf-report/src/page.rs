//! The page from top to bottom.

use crate::chart::{self, Curve};
use crate::frame::{Axis, Height, figure, framed};
use crate::plateau::plateau_sentence;
use crate::report::{Model, Report, SoundPage, Step, Trace};
use crate::text::{escaped, grouped, percent, plural, resolution};
use crate::{parts, picture, pictures, residuals, roll, sound};
use std::fmt::Write as _;

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/sound.js");

/// What the page may load: only what is inside it.
const POLICY: &str = "default-src 'none'; img-src data:; media-src data: blob:; style-src 'unsafe-inline'; \
                      script-src 'unsafe-inline'";

/// Points of a curve.
const MOST_POINTS: usize = 400;

/// The page.
///
/// ```
/// use bpnmf::*;
/// let counts = Recipe { features: 20, observations: 60, ..Default::default() }.draw(3)?.counts;
/// let prior = Prior { components: 30, ..Default::default() }.check()?;
/// let options = RunOptions { iterations: 20, ..Default::default() };
/// let fit = run(&Ssmf::default(), &counts, &prior, &options, &Workers::new(1)?, &mut |_: &TraceRow| true)?;
/// let chains = Chains::new(vec![fit])?;
/// let mut report = bpnmf_report::Report::new(bpnmf_report::Data::Counts(&counts), &chains);
/// report.title = "a < b".to_owned();
/// assert!(bpnmf_report::html(&report).contains("<h1>a &lt; b</h1>"));
/// # Ok::<(), Error>(())
/// ```
pub fn html(report: &Report<'_>) -> String {
    let title = escaped(&report.title);
    let listening = sound::listening(report.sound.as_ref(), &report.model);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>{title}: {}</title>\n<style>\n{STYLE}.ramp {{ background: {}; }}\n</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"source\">{}</p>\n",
        plural(report.n_components, report.words().0, report.words().1),
        picture::gradient(),
        escaped(&report.source)
    );
    page += &headline(report);
    page += "</header>\n<main>\n";
    page += &marked(HEARD, &(listening.section + &roll::section(report.sound.as_ref())));
    page += &sureness(report);
    page += &pictures::section(report);
    page += &residuals::section(report);
    page += &parts::section(report, listening.plays);
    page += &course(report);
    page += "</main>\n";
    if listening.plays {
        let model = marked(MODEL, &listening.model);
        let _ = write!(page, "{model}<script>\n{SCRIPT}</script>\n");
    }
    page += "</body>\n</html>\n";
    page
}

/// What is heard, and the model that it is made from, stand between marks with these names.
const HEARD: &str = "heard";
const MODEL: &str = "sounds";

/// A piece of a page between marks. No name can be a mark: all are escaped.
fn marked(name: &str, piece: &str) -> String {
    format!("<!--{name}-->\n{piece}<!--/{name}-->\n")
}

/// A page of a recording with other stems; `None` if it is not one that can play.
pub fn with_sound(page: &str, sound: &SoundPage<'_>, model: &Model<'_>) -> Option<String> {
    let listening = sound::listening(Some(sound), model);
    if !listening.plays {
        return None;
    }
    let heard = listening.section + &roll::section(Some(sound));
    let mut page = page.to_owned();
    for (name, piece) in [(HEARD, heard), (MODEL, listening.model)] {
        let from = page.find(&format!("<!--{name}-->"))?;
        let end = format!("<!--/{name}-->\n");
        let to = from + page[from..].find(&end)? + end.len();
        page.replace_range(from..to, &marked(name, &piece));
    }
    Some(page)
}

/// How many parts and how sure that is, in words.
fn headline(report: &Report<'_>) -> String {
    let thing = if report.sound.is_some() { "recording" } else { "matrix" };
    let number = report.n_components;
    let (one, many) = report.words();
    let count = plural(number, one, many);
    let claim = match (number, report.forced) {
        (0, _) => format!("Nothing was found in this {thing}."),
        (_, true) => format!("This {thing} as a sum of <b>{count}</b>, as asked for."),
        (1, false) => format!("This {thing} is made of <b>1 {one}</b>."),
        (_, false) => format!("This {thing} is made of <b>{count}</b>."),
    };
    let chains = plural(report.traces.len(), "chain", "chains");
    let sure = match report.interval {
        _ if report.forced || number == 0 => String::new(),
        None => "How sure is that? One chain: not known.".to_owned(),
        Some((first, last)) if first == last => {
            format!("90 % interval: exactly {}, from {chains}.", grouped(first))
        }
        Some((first, last)) => {
            format!("90 % interval: {} to {}, from {chains}.", grouped(first), grouped(last))
        }
    };
    let about = match (number, report.sound.is_some()) {
        (0, _) => "No {part} is on in at least 1 % of the columns.",
        (_, true) => {
            "A {part} is one sound that comes back: a spectrum, the moments at which it is heard, and how loudly. \
             Added up, the {parts} give the recording. Nobody told the program how many there are."
        }
        (_, false) => {
            "A {part} is a pattern of features that rise together, with the observations in which it is on, and how \
             strongly. Added up, the {parts} give the matrix. Nobody told the program how many there are."
        }
    };
    let about = report.say(about);
    let about =
        if report.forced { about.replace(" Nobody told the program how many there are.", "") } else { about };
    let mut html = format!("<p class=\"claim\">{claim}</p>\n<p class=\"sure\">{sure}</p>\n<p>{about}</p>\n");
    for (class, sentences) in [("warning", &report.warnings), ("note", &report.notes)] {
        for sentence in sentences {
            let word = if class == "warning" { "Warning" } else { "Note" };
            let _ = writeln!(html, "<p class=\"{class}\"><b>{word}:</b> {}</p>", escaped(sentence));
        }
    }
    html
}

/// The numbers of parts that are likely, and the number by resolution.
fn sureness(report: &Report<'_>) -> String {
    let mut figures = String::new();
    if !report.pmf.is_empty() && !report.forced && report.n_components > 0 {
        figures += &probabilities(report);
    }
    if report.path.len() > 1 {
        figures += &resolutions(report);
    }
    if figures.is_empty() {
        return figures;
    }
    format!(
        "<section>\n<h2>How sure is the number?</h2>\n<div class=\"pair\">\n{figures}</div>\n</section>\n"
    )
}

fn probabilities(report: &Report<'_>) -> String {
    // A few numbers around what was found: an axis of one bar says nothing.
    let most_likely = report.pmf.iter().map(|at| at.1).fold(0.0, f64::max);
    let own = report.pmf.iter().find(|at| at.0 == report.n_components).map_or(0.0, |at| at.1);
    let first = report.pmf[0].0.saturating_sub(1);
    let last = (report.pmf[report.pmf.len() - 1].0 + 1).max(first + 4).min(first + 400);
    let mut shares = vec![0.0; last - first + 1];
    for &(number, share) in &report.pmf {
        if let Some(place) = shares.get_mut(number - first) {
            *place = share;
        }
    }
    let top = (most_likely * 1.08).clamp(f64::MIN_POSITIVE, 1.0);
    let heights: Vec<f64> = shares.iter().map(|share| share / top).collect();
    let bars = chart::bars(
        &heights,
        |i| first + i == report.n_components,
        &report.say("probability of every number of {parts}"),
    );
    let n = shares.len();
    let every = n.div_ceil(12);
    let ticks = (0..n).filter(|i| i.is_multiple_of(every));
    let ticks = ticks.map(|i| ((i as f64 + 0.5) / n as f64, grouped(first + i))).collect();
    let y = Axis::numbers("%", 0.0, 100.0 * top, 4);
    figure(
        &report.say("Probability of each number of {parts}"),
        &framed(&bars, &Axis::given(&report.say("number of {parts}"), ticks), &y, Height::Low),
        &format!(
            "How often so many were counted in the iterations of all chains, the first ones left out. The model that is \
             shown has {}, which came up in {} of them.",
            grouped(report.n_components),
            percent(own)
        ),
    )
}

fn resolutions(report: &Report<'_>) -> String {
    let path = &report.path;
    let most = path.iter().map(|at| at.1).max().unwrap_or(0).max(1) as f64;
    let heights: Vec<f64> = path.iter().map(|at| at.1 as f64 / (most * 1.08)).collect();
    let bars = chart::bars(&heights, |i| i + 1 == path.len(), &report.say("number of {parts} by resolution"));
    let n = path.len() as f64;
    let tick = |(i, at): (usize, &(f64, usize))| {
        ((i as f64 + 0.5) / n, format!("{}: {}", resolution(at.0), grouped(at.1)))
    };
    let x = Axis::given(
        &report.say("resolution: number of {parts}"),
        path.iter().enumerate().map(tick).collect(),
    );
    figure(
        &report.say("Number of {parts} when the data are read more coarsely"),
        &framed(&bars, &x, &Axis::numbers(report.words().1, 0.0, most * 1.08, 4).whole(), Height::Low),
        &plateau_sentence(path).unwrap_or_default(),
    )
}

/// How the run went.
fn course(report: &Report<'_>) -> String {
    let mut html = "<section>\n<h2>How the run went</h2>\n".to_owned();
    if report.traces.iter().any(|trace| trace.steps.len() > 1) {
        let _ = write!(
            html,
            "<div class=\"pair\">\n{}{}</div>\n",
            curve(
                report,
                "Fit by iteration",
                "log joint probability",
                "How well data and model go together. A curve that no longer climbs has settled; the shaded \
                 iterations are not used.",
                &|step| step.objective
            ),
            curve(
                report,
                &report.say("Number of {parts} by iteration"),
                report.words().1,
                &report.say(
                    "In every iteration; the middle one of a chain is the number of {parts} of its model."
                ),
                &|step| step.components as f64
            )
        );
    }
    if !report.facts.is_empty() {
        html += "<dl class=\"facts\">\n";
        for (name, value) in &report.facts {
            let _ = writeln!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value));
        }
        html += "</dl>\n";
    }
    html + "</section>\n"
}

/// A quantity by iteration, a curve a chain.
fn curve(report: &Report<'_>, title: &str, unit: &str, about: &str, value: &dyn Fn(&Step) -> f64) -> String {
    let used = |trace: &'_ Trace| -> Vec<(f64, f64)> {
        let every = trace.steps.len().div_ceil(MOST_POINTS).max(1);
        let kept = trace.steps.iter().enumerate().filter(|(i, _)| {
            let last = i + 1 == trace.steps.len();
            last || i.is_multiple_of(every)
        });
        kept.map(|(_, step)| (step.iteration as f64, value(step))).filter(|at| at.1.is_finite()).collect()
    };
    // The chain that is shown lies on top.
    let mut all: Vec<(Vec<(f64, f64)>, bool)> =
        report.traces.iter().map(|trace| (used(trace), trace.shown)).collect();
    all.sort_by_key(|&(_, shown)| shown);
    let points = || all.iter().flat_map(|(points, _)| points);
    let last = points().map(|at| at.0).fold(1.0, f64::max);
    let (least, most) = points()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), at| (least.min(at.1), most.max(at.1)));
    if least > most {
        return String::new();
    }
    let margin = if most > least { 0.06 * (most - least) } else { 0.5 };
    let (bottom, top) = (least - margin, most + margin);
    let place = |&(x, y): &(f64, f64)| (x / last, (y - bottom) / (top - bottom));
    let curves: Vec<Curve> = all
        .iter()
        .map(|(points, shown)| (points.iter().map(place).collect(), if *shown { "curve" } else { "faint" }))
        .collect();
    let shown = report.traces.iter().find(|trace| trace.shown).or(report.traces.first());
    let shaded = shown.map_or(0.0, |trace| trace.burn_in as f64 / last);
    let chains = match report.traces.len() {
        0 | 1 => String::new(),
        n => format!(" A curve for each of the {n} chains; the strong one is of the model that is shown."),
    };
    let picture = chart::curves(&curves, shaded.min(1.0), title);
    let (x, y) = (Axis::numbers("iteration", 0.0, last, 5), Axis::numbers(unit, bottom, top, 4));
    let y = if unit == report.words().1 { y.whole() } else { y };
    figure(title, &framed(&picture, &x, &y, Height::Low), &format!("{about}{chains}"))
}
