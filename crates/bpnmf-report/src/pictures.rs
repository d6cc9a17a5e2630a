//! The large pictures: the data, the reconstruction, the parts and when they are on.

use crate::chart;
use crate::frame::{Axis, Height, figure, framed};
use crate::grid::{Grid, Side};
use crate::picture::{self, Scale};
use crate::report::{Report, SoundPage};
use crate::text::{compact, grouped};

/// The most pixels of a picture.
const MOST_COLUMNS: usize = 1000;
const MOST_ROWS: usize = 320;

/// Components that are named on an axis.
const MOST_NAMES: usize = 8;

/// The most pixels for parts.
const MOST_PARTS: usize = 600;

/// Pixels from the lowest to the highest frequency.
const FREQUENCY_ROWS: usize = 230;

/// The lowest frequency that is shown, in Hz.
const LOWEST: f64 = 50.0;

/// Pictures with fewer pixels than this on both sides are shown as squares, on one side they are enlarged: smoothing must
/// not run the rows of two parts into one.
const FEW: usize = 300;

/// The first position of a logarithmic frequency axis, in bins.
pub(crate) fn first_bin(sound: &SoundPage<'_>) -> f64 {
    (LOWEST * sound.window as f64 / f64::from(sound.rate)).max(0.5)
}

/// The frequency axis, in Hz.
pub(crate) fn frequency_axis(sound: &SoundPage<'_>, features: usize) -> Axis {
    let bin = f64::from(sound.rate) / sound.window as f64;
    Axis::logarithmic("Hz", first_bin(sound) * bin, (features as f64 - 0.5) * bin)
}

/// Whether a logarithmic frequency axis can be drawn.
pub(crate) fn frequencies<'a, 'b>(report: &'a Report<'b>) -> Option<&'a SoundPage<'b>> {
    report.sound.as_ref().filter(|sound| {
        sound.rate > 0 && sound.window > 0 && first_bin(sound) * 2.0 < report.model.features as f64
    })
}

fn feature_side(report: &Report<'_>) -> Side {
    match frequencies(report) {
        Some(sound) => Side::logarithmic(report.model.features, FREQUENCY_ROWS, first_bin(sound)),
        None => Side::even(report.model.features, MOST_ROWS),
    }
}

/// Features upwards: low frequencies at the bottom, the first row of a table at the top.
fn feature_axis(report: &Report<'_>) -> Axis {
    match frequencies(report) {
        Some(sound) => frequency_axis(sound, report.model.features),
        None => Axis::names("features", report.feature_names, report.model.features, 24).reversed(),
    }
}

/// Observations to the right.
pub(crate) fn observation_axis(report: &Report<'_>) -> Axis {
    let observations = report.model.observations;
    match &report.sound {
        Some(sound) if sound.rate > 0 => {
            let seconds = observations as f64 * sound.hop as f64 / f64::from(sound.rate);
            Axis::numbers("seconds", 0.0, seconds, 6)
        }
        _ => Axis::cells("observations", observations, 6),
    }
}

/// An image of a grid; `what` is plain words.
fn image(grid: Grid, scale: &Scale, upwards: bool, what: &str) -> String {
    let small = grid.rows < FEW && grid.columns < FEW;
    let few = if small { " class=\"few\"" } else { "" };
    let grid = if upwards { grid.flipped() } else { grid };
    let times = |pixels: usize| if small { 1 } else { FEW.div_ceil(pixels.max(1)) };
    let (down, across) = (times(grid.rows), times(grid.columns));
    let grid = grid.enlarged(down, across);
    format!("<img{few} alt=\"{what}\" src=\"{}\">", picture::address(&grid, scale))
}

/// A number to two digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.1e}").parse().unwrap_or(number)
}

/// What the colours mean.
fn legend(scale: &Scale, unit: &str) -> String {
    let more = if scale.exceeded { "≥ " } else { "" };
    let marks: String = [0.25, 0.5, 0.75]
        .into_iter()
        .map(|place| {
            format!("<i style=\"left:{}%\">{}</i>", 100.0 * place, compact(rounded(scale.value(place))))
        })
        .collect();
    format!(
        "<div class=\"legend\"><span>{unit}</span><div class=\"scale\"><div class=\"ramp\"></div>\
         <i class=\"a\" style=\"left:0\">0</i>{marks}<i class=\"z\" style=\"left:100%\">{more}{}</i></div></div>\n",
        compact(rounded(scale.top))
    )
}

/// The section with all of them.
pub(crate) fn section(report: &Report<'_>) -> String {
    let model = &report.model;
    if model.features == 0 || model.observations == 0 {
        return String::new();
    }
    let (rows, columns) = (feature_side(report), Side::even(model.observations, MOST_COLUMNS));
    let (x, y) = (observation_axis(report), feature_axis(report));
    let upwards = frequencies(report).is_some();
    let data = Grid::of_data(report.data, &rows, &columns);
    let scale = Scale::of(&data.values);
    let (what, unit) = match report.sound {
        Some(_) => ("The recording", "strength"),
        None => ("The matrix", "value"),
    };
    let shrunk = if rows.pixels() < model.features && !upwards || columns.pixels() < model.observations {
        " Every pixel is a mean over several entries."
    } else {
        ""
    };
    let size = format!("{} x {}.{shrunk}", grouped(model.features), grouped(model.observations));
    let show = |grid: Grid, name: &str| framed(&image(grid, &scale, upwards, name), &x, &y, Height::Tall);
    let mut figures = figure(what, &show(data, what), &size);
    if model.components() > 0 {
        let name = &report.say("What the {parts} add up to");
        let rebuilt = Grid::of_model(model, &rows, &columns);
        let about = "Same colours. What is missing here, the model takes for chance.";
        figures += &figure(name, &show(rebuilt, name), about);
    }
    let class = if report.sound.is_some() { "stack" } else { "pair" };
    let mut html = format!(
        "<section>\n<h2>The data and the model</h2>\n<div class=\"{class}\">\n{figures}</div>\n{}</section>\n",
        legend(&scale, unit)
    );
    if model.components() > 0 {
        html += &parts(report, &rows, &columns);
    }
    html
}

/// The figure of the paper: W on the left, the masked activations on the right.
fn parts(report: &Report<'_>, rows: &Side, columns: &Side) -> String {
    let model = &report.model;
    let number = model.components();
    let upwards = frequencies(report).is_some();
    let side = Side::even(number, MOST_PARTS);
    let dictionary = Grid::of_dictionary(model, rows, &side);
    let activations = Grid::of_activations(model, &side, columns);
    let (of_parts, of_times) = (Scale::of(&dictionary.values), Scale::of(&activations.values));
    let (sound_like, when) = match report.sound {
        Some(_) => ("What each part sounds like", "When each part is on"),
        None => ("What each component looks like", "Where each component is on"),
    };
    let left = framed(
        &image(dictionary, &of_parts, upwards, sound_like),
        &component_axis(report),
        &feature_axis(report),
        Height::Tall,
    );
    let right = framed(
        &image(activations, &of_times, false, when),
        &observation_axis(report),
        &component_axis(report).reversed(),
        Height::Tall,
    );
    format!(
        "<section>\n<h2>{}</h2>\n<div class=\"paper\">\n{}{}</div>\n<div class=\"pair\">\n{}{}</div>\n\
         </section>\n",
        report.say("The {parts}"),
        figure(
            sound_like,
            &left,
            &report.say("The dictionary W: one column a {part}, each over its own largest value.")
        ),
        figure(
            when,
            &(right + &legend(&of_times, "strength")),
            &report.say("The masked activations H S: one row a {part}. Dark means off.")
        ),
        figure(
            &report.say("How large each {part} is"),
            &bars(report, model.share, "%", 100.0, &report.say("share of every {part}")),
            &match report.sound {
                Some(_) => "Its share of the whole. Parts are numbered from 0, the largest first.".to_owned(),
                None => "Its share of the whole, the largest first.".to_owned(),
            }
        ),
        figure(
            &report.say("How often each {part} is on"),
            &bars(report, model.pi, "pi", 1.0, &report.say("pi of every {part}")),
            &report.say("The estimate of pi: the probability that a {part} is on at any one place.")
        ),
    )
}

/// The axis of the components.
fn component_axis(report: &Report<'_>) -> Axis {
    let number = report.model.components();
    if report.sound.is_some() {
        return Axis::cells("part", number, 8);
    }
    let every = number.div_ceil(MOST_NAMES).max(1);
    let named = (0..number).step_by(every);
    Axis::given("component", named.map(|k| ((k as f64 + 0.5) / number as f64, report.name(k))).collect())
}

/// A bar a component, named in units of `one`.
fn bars(report: &Report<'_>, values: &[f64], unit: &str, one: f64, label: &str) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let top = (1.08 * most).clamp(1e-3, 1.0);
    let heights: Vec<f64> = values.iter().map(|value| value / top).collect();
    let (x, y) = (component_axis(report), Axis::numbers(unit, 0.0, one * top, 4));
    framed(&chart::bars(&heights, |_| true, label), &x, &y, Height::Low)
}
