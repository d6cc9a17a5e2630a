//! The audio crate from outside, one step a call, for tests/audio_peers.py; and what the filter costs.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use bpnmf_audio::{Channel, Parts, Sound, Stft, read, resample};
use bpnmf_io::Array;

const HELP: &str = "\
usage: experiments audio decode FILE OUT.npy
       experiments audio resample FILE RATE OUT.npy
       experiments audio stft FILE WINDOW HOP OUT.npy    frames x bins magnitudes
       experiments audio filter SECONDS OUTPUTS          seconds one pass of the filter takes at 22,050 Hz
       experiments audio refine FRAMES COMPONENTS ON     seconds 30 updates of parts take, ON of them on at a time
";

pub(crate) fn command(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["decode", file, out] => sound(file).and_then(|sound| write(out, &sound.samples, 1)),
        ["resample", file, rate, out] => {
            resampled(file, rate).and_then(|sound| write(out, &sound.samples, 1))
        }
        ["stft", file, window, hop, out] => magnitudes(file, window, hop, out),
        ["filter", seconds, outputs] => filter(seconds, outputs),
        ["refine", frames, components, on] => refine(frames, components, on),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn sound(file: &str) -> Result<Sound, Box<dyn Error>> {
    Ok(read(Path::new(file), Channel::Mean)?)
}

fn resampled(file: &str, rate: &str) -> Result<Sound, Box<dyn Error>> {
    Ok(resample(&sound(file)?, rate.parse()?)?)
}

fn magnitudes(file: &str, window: &str, hop: &str, out: &str) -> Result<(), Box<dyn Error>> {
    let stft = Stft::new(window.parse()?, hop.parse()?)?;
    write(out, &stft.magnitudes(&sound(file)?.samples), stft.bins())
}

fn write(out: &str, values: &[f32], width: usize) -> Result<(), Box<dyn Error>> {
    Ok(bpnmf_io::write_npy(Path::new(out), &Array::new(&[values.len() / width, width], values))?)
}

fn filter(seconds: &str, outputs: &str) -> Result<(), Box<dyn Error>> {
    let (seconds, outputs): (usize, usize) = (seconds.parse()?, outputs.parse()?);
    let sound: Vec<f32> = (0..seconds * 22_050).map(|i| (i as f32 * 0.1).sin()).collect();
    let stft = Stft::new(1024, 512)?;
    let mut parts = vec![Vec::new(); outputs];
    let start = Instant::now();
    let share = |_: usize, gains: &mut [f32]| gains.fill(1.0 / outputs as f32);
    stft.filter(&sound, outputs, share, |output, samples| {
        parts[output].extend_from_slice(samples);
        Ok::<(), bpnmf_audio::Error>(())
    })?;
    println!("{:.3}", start.elapsed().as_secs_f64());
    Ok(())
}

fn refine(frames: &str, components: &str, on: &str) -> Result<(), Box<dyn Error>> {
    let (frames, components, on): (usize, usize, usize) = (frames.parse()?, components.parse()?, on.parse()?);
    let bins = 513;
    let rough = |i: usize| ((i * 7919) % 1009) as f32 / 1009.0;
    let dictionary: Vec<f32> = (0..bins * components).map(rough).collect();
    let is_on = |k: usize, t: usize| (k + 7 * (t / 5)) % components < on;
    let inclusion: Vec<f32> =
        (0..components * frames).map(|i| f32::from(u8::from(is_on(i / frames, i % frames)))).collect();
    let activations: Vec<f32> = inclusion.iter().enumerate().map(|(i, on)| on * (1.0 + rough(i))).collect();
    let magnitudes: Vec<f32> = (0..bins * frames).map(|i| 3.0 * rough(i)).collect();
    let mut parts = Parts::new(&dictionary, &activations, &inclusion, components);
    let before = parts.divergence(&magnitudes);
    let start = Instant::now();
    parts.refine(&magnitudes, 30);
    println!(
        "{:.3} s, from a divergence of {before:.4e} to {:.4e}",
        start.elapsed().as_secs_f64(),
        parts.divergence(&magnitudes)
    );
    Ok(())
}
