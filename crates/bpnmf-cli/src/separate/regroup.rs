//! `bpnmf regroup`: other stems of a recording that was taken apart, from the files of the separation.

use super::groups::Groups;
use super::input::samples_in_memory;
use super::notes::{self, Notes};
use super::output::{sound_page, split};
use super::sounds::{self, RECORDING, STEMS};
use super::stems::{Plan, RESIDUAL};
use crate::args::RegroupArgs;
use crate::failure::Failure;
use crate::fit::thread_count;
use crate::folder::Folder;
use crate::text;
use bpnmf_audio::{Channel, Framing, Parts, Recording};
use serde_json::Value;
use std::fs;
use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// The folder in that of the separation.
const REGROUPED: &str = "regrouped";

/// The page.
const PAGE: &str = "report.html";

pub(crate) fn regroup(args: &RegroupArgs) -> Result<ExitCode, Failure> {
    let groups = Groups::read(&args.groups)?;
    if args.residual && groups.has(RESIDUAL) {
        return Err(Failure::Request(format!(
            "a stem cannot be called {RESIDUAL}, that is the name of another: rename it"
        )));
    }
    let pool = super::pool(thread_count(args.threads)?)?;
    let out = args.out.clone().unwrap_or_else(|| args.folder.join(REGROUPED));
    let files = [&notes::FILES[..], &[PAGE]].concat();
    let names = [&[STEMS], &files[..]].concat();
    let folder = Folder::unused(&out, &names, args.force)?;
    pool.install(|| {
        let Taken { recording, parts, inclusion, pi, share } = Taken::read(&args.folder)?;
        let heard = recording.transcription(&parts, &inclusion);
        let stems = Plan::Groups(groups).stems(&recording, &parts, &heard, &[], args.residual)?;
        let _claim = folder.claim(&names, args.force)?;
        let staging = folder.staged()?;
        let clipped = sounds::write(staging.folder(), &recording, &parts, &stems, false, args.format)?;
        for clipped in &clipped {
            eprintln!("warning: {} samples of {} are beyond full scale", clipped.samples, clipped.file);
        }
        let notes = Notes { heard: &heard, stems: &stems };
        notes.write(staging.folder())?;
        if let Ok(page) = fs::read_to_string(args.folder.join(PAGE)) {
            let split = split(&parts, &stems.stems);
            let (dictionary, activations) = (parts.dictionary(), parts.activations());
            let model = bpnmf_report::Model {
                features: parts.bins(),
                observations: parts.frames(),
                dictionary: &dictionary,
                activations: &activations,
                inclusion: &inclusion,
                pi: &pi,
                share: &share,
                usage: &[],
                evidence: None,
            };
            let sound = sound_page(&recording, &parts, &stems, &split, notes.roll());
            if let Some(page) = bpnmf_report::with_sound(&page, &sound, &model) {
                let file = staging.folder().file(PAGE);
                bpnmf_io::write_atomically(&file, |writer| writer.write_all(page.as_bytes()))
                    .map_err(Failure::writing)?;
            }
        }
        staging.commit(&folder, &[STEMS], &files)?;
        if std::io::stdout().is_terminal() {
            let many = text::plural(stems.names.len(), "stem", "stems");
            text::print(&format!("{many}: {}\n", folder.file(STEMS).display()))?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A recording that was taken apart.
struct Taken {
    recording: Recording,
    parts: Parts,
    inclusion: Vec<f32>,
    pi: Vec<f64>,
    share: Vec<f64>,
}

impl Taken {
    /// From what `bpnmf separate` wrote.
    fn read(folder: &Path) -> Result<Self, Failure> {
        let no_separation = |what: &str| {
            Failure::Request(format!(
                "{}: {what}: a folder that bpnmf separate wrote is needed",
                folder.display()
            ))
        };
        let text = fs::read_to_string(folder.join("summary.json"))
            .map_err(|_| no_separation("there is no summary.json in it"))?;
        let summary: Value = serde_json::from_str(&text)
            .map_err(|error| no_separation(&format!("summary.json cannot be read ({error})")))?;
        let number = |name: &str| {
            let value = summary["sound"][name].as_u64().and_then(|value| usize::try_from(value).ok());
            value.ok_or_else(|| no_separation("its summary.json tells of no sound"))
        };
        let framing = Framing { window: Some(number("window")?), hop: Some(number("hop")?) };
        let path = folder.join(RECORDING);
        if !path.is_file() {
            return Err(no_separation(&format!("there is no {RECORDING} in it")));
        }
        let sound =
            bpnmf_audio::read_within(&path, Channel::Mean, samples_in_memory()).map_err(Failure::sound)?;
        let arrays = bpnmf_io::read_npz_arrays(&folder.join("model.npz")).map_err(Failure::reading)?;
        let array = |wanted: &str| {
            let found = arrays.iter().find(|(name, _)| name == wanted).map(|(_, array)| array);
            found.ok_or_else(|| no_separation(&format!("its model.npz holds no {wanted}")))
        };
        let floats = |name: &str| -> Result<Vec<f32>, Failure> {
            Ok(array(name)?.to_f64().into_iter().map(|value| value as f32).collect())
        };
        let (pi, scale) = (array("pi")?.to_f64(), array("scale")?.to_f64());
        let (dictionary, activations) = (floats("W_filter")?, floats("H_filter")?);
        let inclusion = floats("S")?;
        let stft = framing.of(sound.rate, sound.samples.len()).map_err(Failure::sound)?;
        let (bins, frames) = (stft.bins(), stft.frames(sound.samples.len()));
        let fits = !pi.is_empty()
            && dictionary.len() == bins * pi.len()
            && activations.len() == frames * pi.len()
            && inclusion.len() == activations.len()
            && dictionary.iter().chain(&activations).all(|value| value.is_finite() && *value >= 0.0);
        let [scale] = scale[..] else { return Err(no_separation("its model.npz holds no scale")) };
        if !fits {
            return Err(no_separation(&format!("its model.npz does not belong to its {RECORDING}")));
        }
        let share = summary["components"].as_array().into_iter().flatten();
        let mut share: Vec<f64> = share.map(|part| part["share"].as_f64().unwrap_or(0.0)).collect();
        share.resize(pi.len(), 0.0);
        Ok(Self {
            recording: Recording::restored(sound, stft, scale),
            parts: Parts::polished(&dictionary, &activations, pi.len()),
            inclusion,
            pi,
            share,
        })
    }
}
