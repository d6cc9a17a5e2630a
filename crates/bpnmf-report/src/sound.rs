//! What can be heard: the mixture as it is, and the model from which the page makes the sounds of parts and stems.

use crate::report::{Model, SoundPage, Stem};
use crate::text::{base64, escaped, percent, significant};
use std::fmt::Write as _;

/// The longest sound that a page holds, in samples: 11 minutes at 22,050 Hz. It is base64 of 16 bits, 40 MB.
const MOST_SAMPLES: usize = 15_000_000;

/// The pieces of a page that make sounds.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Players of the mixture and of the stems.
    pub(crate) section: String,
    /// What the script needs.
    pub(crate) model: String,
    /// Whether the script can work.
    pub(crate) plays: bool,
}

/// All of that for a recording.
pub(crate) fn listening(sound: Option<&SoundPage<'_>>, model: &Model<'_>) -> Listening {
    let Some(sound) = sound else {
        return Listening::default();
    };
    let begin = "<section>\n<h2>Listen</h2>\n";
    if sound.mixture.len() > MOST_SAMPLES {
        let minutes = sound.mixture.len() as f64 / f64::from(sound.rate.max(1)) / 60.0;
        let section = format!(
            "{begin}<p>With {} minutes the recording is too long to stand in this page.</p>\n</section>\n",
            significant(minutes, 2)
        );
        return Listening { section, ..Default::default() };
    }
    let plays = can_play(sound, model);
    let mut section = begin.to_owned();
    if plays {
        section += "<p>A part's sound is what is left of the recording when everything is turned down that the model \
                    ascribes to other parts. The sounds are made in this page, from the recording and the model; they \
                    are those of the files of the program.</p>\n<p id=\"making\" role=\"status\"></p>\n\
                    <noscript><p>The sounds of the parts need JavaScript; everything else does not.</p></noscript>\n";
    }
    let _ = write!(
        section,
        "<ul class=\"players\">\n<li><b>The recording</b><audio controls id=\"mixture\" preload=\"metadata\" \
         aria-label=\"The recording\" src=\"data:audio/wav;base64,{}\"></audio></li>\n",
        base64(&wav(sound.mixture, sound.rate))
    );
    if plays {
        let shares = shares(sound, model);
        for (i, stem) in sound.stems.iter().enumerate() {
            let name = escaped(&stem.name);
            let _ = writeln!(
                section,
                "<li><b>{name}</b><small>{}</small><audio controls data-stem=\"{i}\" aria-label=\"{name}\"></audio></li>",
                percent(share(stem, &shares))
            );
        }
        if let Some(residual) = &sound.residual {
            let name = escaped(&residual.name);
            let _ = writeln!(
                section,
                "<li><b>{name}</b><small>unexplained</small><audio controls data-residual \
                 aria-label=\"{name}\"></audio></li>"
            );
        }
    }
    section += "</ul>\n</section>\n";
    let model = if plays { model_for_script(sound, model) } else { String::new() };
    Listening { section, model, plays }
}

/// Whether sound and model fit together.
fn can_play(sound: &SoundPage<'_>, model: &Model<'_>) -> bool {
    let parts = model.components();
    sound.rate > 0
        && sound.window >= 2
        && sound.window.is_multiple_of(2)
        && (1..=sound.window / 2).contains(&sound.hop)
        && model.features == sound.window / 2 + 1
        && model.observations == 1 + sound.mixture.len() / sound.hop
        && parts > 0
        && sound.stems.iter().all(|stem| stem.weights.len() == members(sound, model))
        && sound.pieces.as_ref().is_none_or(|pieces| {
            let many = members(sound, model);
            pieces.dictionary.len() == many * model.features
                && pieces.activations.len() == many * model.observations
        })
}

/// How many parts or pieces stems can be made of.
fn members(sound: &SoundPage<'_>, model: &Model<'_>) -> usize {
    let pieces = sound.pieces.as_ref().map(|pieces| pieces.activations.len() / model.observations.max(1));
    pieces.unwrap_or_else(|| model.components())
}

/// How much of the whole every part or piece is.
fn shares(sound: &SoundPage<'_>, model: &Model<'_>) -> Vec<f64> {
    let Some(pieces) = &sound.pieces else {
        return model.share.to_vec();
    };
    let many = members(sound, model);
    let sum = |values: &mut dyn Iterator<Item = &f32>| values.map(|&value| f64::from(value)).sum::<f64>();
    let size = |k: usize| {
        sum(&mut pieces.dictionary.iter().skip(k).step_by(many))
            * sum(&mut pieces.activations[k * model.observations..][..model.observations].iter())
    };
    let sizes: Vec<f64> = (0..many).map(size).collect();
    let whole = sizes.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    sizes.into_iter().map(|size| size / whole).collect()
}

/// How much of the whole a stem is.
fn share(stem: &Stem, shares: &[f64]) -> f64 {
    stem.weights.iter().zip(shares).map(|(&weight, share)| f64::from(weight) * share).sum()
}

/// The models as bytes and what else the script must know. There are no names in it.
fn model_for_script(sound: &SoundPage<'_>, model: &Model<'_>) -> String {
    let stems: Vec<String> = sound
        .stems
        .iter()
        .map(|stem| stem.weights.iter().map(f32::to_string).collect::<Vec<_>>().join(","))
        .map(|weights| format!("[{weights}]"))
        .collect();
    let mut models = factors(model.dictionary, model.activations, model.components());
    if let Some(pieces) = &sound.pieces {
        models =
            format!("{models},{}", factors(pieces.dictionary, pieces.activations, members(sound, model)));
    }
    format!(
        "<script type=\"application/json\" id=\"model\">{{\"rate\":{},\"window\":{},\"hop\":{},\"stems\":[{}],\
         \"residual\":{},\"models\":[{models}]}}</script>\n",
        sound.rate,
        sound.window,
        sound.hop,
        stems.join(","),
        sound.residual.as_ref().map_or(0.0, |residual| residual.scale),
    )
}

/// W and H as bytes, part after part.
fn factors(dictionary: &[f32], activations: &[f32], parts: usize) -> String {
    let columns = (0..parts).flat_map(|k| dictionary.iter().skip(k).step_by(parts));
    let dictionary: Vec<u8> = columns.flat_map(|w| w.to_le_bytes()).collect();
    let activations: Vec<u8> = activations.iter().flat_map(|h| h.to_le_bytes()).collect();
    format!(
        "{{\"parts\":{parts},\"dictionary\":\"{}\",\"activations\":\"{}\"}}",
        base64(&dictionary),
        base64(&activations)
    )
}

/// A wav file of 16 bits and one channel.
fn wav(samples: &[f32], rate: u32) -> Vec<u8> {
    let bytes = 2 * samples.len() as u32;
    let mut file = Vec::with_capacity(44 + bytes as usize);
    file.extend(b"RIFF");
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend([1, 0, 1, 0]);
    file.extend(rate.to_le_bytes());
    file.extend((2 * rate).to_le_bytes());
    file.extend([2, 0, 16, 0]);
    file.extend(b"data");
    file.extend(bytes.to_le_bytes());
    // Casts of floats saturate.
    file.extend(samples.iter().flat_map(|x| ((x * 32_768.0).round() as i16).to_le_bytes()));
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wav_file_has_the_length_it_says_and_clips() {
        let file = wav(&[0.0, 0.5, -1.0, 2.0], 8000);
        assert_eq!(file.len(), 44 + 8);
        assert_eq!(file[4..8], 44u32.to_le_bytes());
        assert_eq!(file[28..32], 16_000u32.to_le_bytes());
        assert_eq!(file[44..], [0, 0, 0, 64, 0, 128, 255, 127]);
    }
}
