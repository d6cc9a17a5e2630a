//! A sound at another rate. The only file that knows the resampling library.

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler, WindowFunction};

use crate::error::{Error, MAX_RATE};
use crate::sound::Sound;

/// Samples in a block on its shorter side, at least: the longer it is, the closer to half the rate the filter reaches.
const BLOCK: usize = 2048;

/// The sound at `rate` samples a second: ceil(length x rate / rate before) samples, in time with those before.
///
/// What the lower of the two rates cannot hold is filtered out.
///
/// ```
/// let sound = bpnmf_audio::Sound { samples: vec![0.25; 44_101], rate: 44_100 };
/// let half = bpnmf_audio::resample(&sound, 22_050)?;
/// assert_eq!((half.samples.len(), half.rate), (22_051, 22_050));
/// assert!((half.samples[10_000] - 0.25).abs() < 1e-6);
/// # Ok::<(), bpnmf_audio::Error>(())
/// ```
pub fn resample(sound: &Sound, rate: u32) -> Result<Sound, Error> {
    for rate in [sound.rate, rate] {
        if rate == 0 || rate > MAX_RATE {
            return Err(Error::Rate { rate });
        }
    }
    if sound.rate == rate || sound.samples.is_empty() {
        return Ok(Sound { samples: sound.samples.clone(), rate });
    }
    let (from, to) = (sound.rate as usize, rate as usize);
    let common = greatest_common_divisor(from, to);
    let (from, to) = (from / common, to / common);
    // Even, or the delay of the filter would be no whole number of samples.
    let blocks = 2 * BLOCK.div_ceil(2 * from.min(to));
    let length = (sound.samples.len() as u64 * to as u64).div_ceil(from as u64) as usize;
    let resampled = Fft::<f32>::new_custom(from, to, blocks * from, 1, 1, WINDOW, FixedSync::Both)
        .map_err(|error| error.to_string())
        .and_then(|mut resampler| {
            let whole = InterleavedSlice::new(&sound.samples, 1, sound.samples.len());
            let whole = whole.map_err(|error| error.to_string())?;
            resampler.process_all(&whole, sound.samples.len(), None).map_err(|error| error.to_string())
        });
    match resampled {
        Ok(resampled) => {
            let mut samples = resampled.take_data();
            // The library finds the length by a product of floats.
            samples.resize(length, 0.0);
            Ok(Sound { samples, rate })
        }
        Err(reason) => Err(Error::Resample { from: sound.rate, to: rate, reason }),
    }
}

/// Its stop band is below -100 dB.
const WINDOW: WindowFunction = WindowFunction::BlackmanHarris2;

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
