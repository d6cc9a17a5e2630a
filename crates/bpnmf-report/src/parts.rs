//! Part by part: how large, how often on, how sure, and small pictures of each.

use crate::channels::Channels;
use crate::channels_panel::panel;
use crate::chart;
use crate::grid::Side;
use crate::pictures::{first_bin, frequencies};
use crate::report::{Report, SoundPage};
use crate::text::{compact, escaped, grouped, percent, plural, shortened};
use std::fmt::Write as _;

/// Parts that are shown in detail.
const MOST_PARTS: usize = 60;

/// Features that are named for each.
const MOST_FEATURES: usize = 7;

/// Observations that are named for each.
const MOST_OBSERVATIONS: usize = 3;

/// Peaks of a spectrum that are named.
const MOST_PEAKS: usize = 4;

/// A peak is at least so much of the highest one.
const LEAST_PEAK: f64 = 0.1;

/// Steps of a small picture.
const STEPS: usize = 120;

/// Above this nobody cares how many nats exactly a part is worth.
const MUCH_EVIDENCE: f64 = 1000.0;

/// One card a part, the largest parts first.
pub(crate) fn section(report: &Report<'_>, plays: bool) -> String {
    let number = report.model.components();
    if number == 0 {
        return String::new();
    }
    let evidence = match report.model.evidence {
        Some(_) => {
            " Evidence is what the explanation of the data loses, in nats, when a {part} is taken out and the others \
             may fill in: more than a handful speaks for the {part}."
        }
        None => "",
    };
    let recurrence = if report.recurrence.is_empty() {
        ""
    } else {
        " A {part} that half of the chains or fewer have found is one to doubt; the percentages beside it are how large the \
         chains that have it find it."
    };
    let bars = match report.intervals {
        Some(_) if frequencies(report).is_none() => {
            " The thin line on a bar says where that share is with a probability of 90 %; hover over it for its ends."
        }
        _ => "",
    };
    let channels = report.feature_names.and_then(Channels::of);
    let pictures = match frequencies(report) {
        None if channels.is_some() => {
            "The bars are its shares of every type of mutation, in the usual order; the curve is"
        }
        Some(_) => "The first picture is its spectrum, the second one",
        None => "The bars are its strongest features and their shares of it; the curve is",
    };
    let mut html = format!(
        "<section>\n<h2>{{Part}} by {{part}}</h2>\n<p>The percentage is how much of the whole a {{part}} makes up. {pictures} how \
         strongly it is on; the grey band below it says how sure it is that it is on.{bars}{evidence}{recurrence}</p>\n\
         <div class=\"cards{}\">\n",
        if channels.is_some() { " wide" } else { "" }
    );
    html = report.say(&html);
    for k in 0..number.min(MOST_PARTS) {
        html += &card(report, channels.as_ref(), k, plays);
    }
    html += "</div>\n";
    if number > MOST_PARTS {
        let (one, many) = report.words();
        let more = plural(number - MOST_PARTS, &format!("smaller {one} is"), &format!("smaller {many} are"));
        let _ = writeln!(html, "<p>{more} not shown here; all of them are in the files of the result.</p>");
    }
    html + "</section>\n"
}

fn card(report: &Report<'_>, channels: Option<&Channels>, k: usize, plays: bool) -> String {
    let model = &report.model;
    let largest = model.share.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let heading = if report.sound.is_some() { format!("Part {k}") } else { report.name(k) };
    let mut html = format!(
        "<article><h3>{heading} <small>{}</small></h3><div class=\"meter\"><b style=\"width:{:.1}%\"></b></div>\
         <dl><div><dt>on in</dt><dd>{} of {}</dd></div><div><dt>pi</dt><dd>{:.3}</dd></div>",
        percent(model.share[k]),
        (100.0 * model.share[k] / largest).clamp(0.0, 100.0),
        grouped(model.usage[k].round() as usize),
        grouped(model.observations),
        model.pi[k]
    );
    if let Some(evidence) = model.evidence {
        let _ = write!(html, "<div><dt>evidence</dt><dd>{}</dd></div>", nats(evidence[k]));
    }
    html += "</dl>";
    html += &found_by(report, k);
    html += &match frequencies(report) {
        Some(sound) => spectrum(report, sound, k),
        None => match channels {
            Some(channels) => panel(report, channels, k) + &matches(report, k),
            None => features(report, k) + &matches(report, k),
        },
    };
    html += &times(report, k);
    html += &strongest(report, k);
    if plays {
        let _ = write!(html, "<audio controls data-part=\"{k}\" aria-label=\"Part {k}\"></audio>");
    }
    html + "</article>\n"
}

/// How many chains have the part and how large they find it; nothing for one chain.
fn found_by(report: &Report<'_>, k: usize) -> String {
    let Some(found) = report.recurrence.get(k) else {
        return String::new();
    };
    let class = if found.is_doubtful() { "found doubtful" } else { "found" };
    let share = match found.share {
        Some((least, most)) => format!(", {} to {} of the whole", percent(least), percent(most)),
        None => String::new(),
    };
    let chains = grouped(found.chains);
    format!("<p class=\"{class}\">found by {} of {chains} chains{share}</p>", grouped(found.found_by))
}

/// A number with the beginning of its unit: "50 ", "11 k".
fn prefixed(number: f64) -> String {
    let text = compact(number);
    if text.contains(' ') { text } else { text + " " }
}

/// Evidence as people read it.
fn nats(evidence: f64) -> String {
    match evidence {
        evidence if evidence > MUCH_EVIDENCE => format!("&gt; {}", grouped(MUCH_EVIDENCE as usize)),
        evidence if evidence >= 0.0 => grouped(evidence.round() as usize),
        evidence => format!("{evidence:.0}"),
    }
}

/// The places of the largest values of `count`, largest first, at most `most` and none that is 0.
fn largest(count: usize, most: usize, value: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).filter(|&i| value(i) > 0.0).collect();
    let larger = |&i: &usize, &j: &usize| value(j).total_cmp(&value(i)).then(i.cmp(&j));
    if places.len() > most {
        places.select_nth_unstable_by(most, larger);
        places.truncate(most);
    }
    places.sort_by(larger);
    places
}

/// The strongest features, with how much of the part each one is.
fn features(report: &Report<'_>, k: usize) -> String {
    let model = &report.model;
    let total: f64 = (0..model.features).map(|f| model.weight(f, k)).sum();
    let order = largest(model.features, MOST_FEATURES, |f| model.weight(f, k));
    let ends = |f: usize| {
        let [low, high] = &report.intervals?.dictionary;
        Some([low, high].map(|end| f64::from(end[f * model.components() + k])))
    };
    let reach = |&f: &usize| ends(f).map_or(model.weight(f, k), |[_, high]| high);
    let most = order.iter().map(reach).fold(f64::MIN_POSITIVE, f64::max);
    let mut html = "<ol class=\"features\">".to_owned();
    for f in order {
        let weight = model.weight(f, k);
        let name = report.feature_names.map_or_else(|| format!("feature {f}"), |names| names[f].clone());
        let _ = write!(
            html,
            "<li><span title=\"{}\">{}</span><s><b style=\"width:{:.0}%\"></b>{}</s><em>{}</em></li>",
            escaped(&name),
            escaped(&shortened(&name, 24)),
            100.0 * weight / most,
            ends(f).map_or_else(String::new, |ends| error_bar(ends, most, total)),
            percent(weight / total)
        );
    }
    html + "</ol>"
}

/// A line from the low to the high end of an interval on a bar of length `most`, with its ends in shares of `total`.
fn error_bar([low, high]: [f64; 2], most: f64, total: f64) -> String {
    format!(
        "<i style=\"left:{:.1}%;width:{:.1}%\" title=\"{} to {}\"></i>",
        100.0 * low / most,
        100.0 * (high - low) / most,
        percent(low / total),
        percent(high / total)
    )
}

/// The spectrum and its highest peaks.
fn spectrum(report: &Report<'_>, sound: &SoundPage<'_>, k: usize) -> String {
    let model = &report.model;
    let side = Side::logarithmic(model.features, STEPS, first_bin(sound));
    let values = side.largest(|f| model.weight(f, k));
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // Roots: harmonics are much weaker than what they belong to.
    let heights: Vec<f64> = values.iter().map(|w| (w / most).sqrt()).collect();
    let bin = f64::from(sound.rate) / sound.window as f64;
    let column: Vec<f64> = (0..model.features).map(|f| model.weight(f, k)).collect();
    let peaks: Vec<String> =
        peaks(&column).into_iter().map(|at| grouped((at * bin).round() as usize)).collect();
    let peaks = if peaks.is_empty() { String::new() } else { format!("peaks at {} Hz", peaks.join(", ")) };
    format!(
        "<div class=\"small\">{}</div><div class=\"ends\"><span>{}Hz</span><span>{peaks}</span><span>{}Hz</span></div>",
        chart::area(&heights, "area", "its spectrum"),
        prefixed(first_bin(sound) * bin),
        prefixed((model.features as f64 - 1.0) * bin)
    )
}

/// The highest peaks of a curve, in order of place: with a parabola through the logarithms, finer than its steps.
fn peaks(values: &[f64]) -> Vec<f64> {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let at = |f: usize| values.get(f).copied().unwrap_or(0.0);
    let mut tops: Vec<usize> = (1..values.len())
        .filter(|&f| at(f) > at(f - 1) && at(f) >= at(f + 1) && at(f) >= LEAST_PEAK * highest)
        .collect();
    tops.sort_by(|&i, &j| at(j).total_cmp(&at(i)));
    tops.truncate(MOST_PEAKS);
    tops.sort_unstable();
    let finer = |f: usize| {
        let [before, here, after] = [f - 1, f, f + 1].map(|f| at(f).max(1e-9 * highest).ln());
        let bend = before - 2.0 * here + after;
        f as f64 + if bend < 0.0 { 0.5 * (before - after) / bend } else { 0.0 }
    };
    tops.into_iter().map(finer).collect()
}

/// How strongly the part is on, and how surely.
fn times(report: &Report<'_>, k: usize) -> String {
    let model = &report.model;
    let side = Side::even(model.observations, STEPS);
    let activation = model.activation(k);
    let values = side.largest(|t| f64::from(activation[t]));
    let most = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let heights: Vec<f64> = values.iter().map(|h| h / most).collect();
    let inclusion = &model.inclusion[k * model.observations..][..model.observations];
    // The band is a few pixels high.
    let sure: Vec<f64> =
        side.means(|t| f64::from(inclusion[t])).iter().map(|s| (5.0 * s).round() / 5.0).collect();
    let (first, last) = match &report.sound {
        Some(sound) if sound.rate > 0 => {
            let seconds = model.observations as f64 * sound.hop as f64 / f64::from(sound.rate);
            ("0 s".to_owned(), format!("{}s", prefixed(seconds)))
        }
        _ => ("0".to_owned(), grouped(model.observations - 1)),
    };
    let what = if report.sound.is_some() { "time" } else { "observations" };
    format!(
        "<div class=\"small\">{}</div><div class=\"band\">{}</div>\
         <div class=\"ends\"><span>{first}</span><span>{what}</span><span>{last}</span></div>",
        chart::area(&heights, "area", "how strongly it is on"),
        chart::area(&sure, "surely", "how sure it is that it is on")
    )
}

/// What a catalogue says about the component, if there is one.
fn matches(report: &Report<'_>, k: usize) -> String {
    report
        .matches
        .get(k)
        .map_or_else(String::new, |sentence| format!("<p class=\"where\">{}</p>", escaped(sentence)))
}

/// The observations in which the part is strongest, if they have names.
fn strongest(report: &Report<'_>, k: usize) -> String {
    let Some(names) = report.observation_names else {
        return String::new();
    };
    let activation = report.model.activation(k);
    let order = largest(activation.len(), MOST_OBSERVATIONS, |t| f64::from(activation[t]));
    let names: Vec<String> = order.into_iter().map(|t| escaped(&shortened(&names[t], 24))).collect();
    format!("<p class=\"where\">strongest in {}</p>", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_nothing_is_none_of_them() {
        let values = [0.0, 3.0, 1.0, 3.0, 0.0, 2.0];
        assert_eq!(largest(6, 3, |i| values[i]), [1, 3, 5]);
        assert_eq!(largest(6, 9, |i| values[i]), [1, 3, 5, 2]);
        assert!(largest(6, 3, |_| 0.0).is_empty());
    }

    #[test]
    fn peaks_are_found_between_the_steps() {
        let bump = |f: f64| (-0.5 * (f - 20.3f64).powi(2)).exp() + 0.3 * (-0.5 * (f - 40.0f64).powi(2)).exp();
        let values: Vec<f64> = (0..60).map(|f| bump(f as f64)).collect();
        let found = peaks(&values);
        assert_eq!(found.len(), 2);
        assert!((found[0] - 20.3).abs() < 1e-3 && (found[1] - 40.0).abs() < 1e-3, "{found:?}");
        assert!(peaks(&[]).is_empty() && peaks(&[0.0; 9]).is_empty());
    }
}
