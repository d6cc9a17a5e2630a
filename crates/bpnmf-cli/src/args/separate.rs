//! What can be said to `bpnmf separate`.

use super::ModelArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  bpnmf separate mix.wav --out parts                     every part as a sound of its own
  bpnmf separate mix.wav --out parts --stems 2           and two stems, by the notes and their sound
  bpnmf separate mix.wav --out parts --groups groups.json --force
                                                         as you heard it: {\"piano\": [0, 2], \"voice\": [1]}
  bpnmf separate mix.wav --out parts --reference piano.wav voice.wav
                                                         the sources are known: which parts are whose?
  bpnmf separate mix.flac --out parts --rate 22050 --window 1024 --format 16

Written to the output folder:
  components/   a wav file a part, numbered as in model.npz
  stems/        sums of parts or of their notes, if stems were asked for: the files add up to the recording
  notes.csv     the notes that are heard: onset, offset, pitch, part, stem, how sure
  notes.mid     the same for players, a track a stem
  report.html   all of it in pictures, to listen to; needs no network
  model.npz     W, H, S, pi as bpnmf fit writes them, and W_filter and H_filter, which made the sounds
  summary.json  how many parts there are and how sure that is, and which part is in which stem
  trace.csv     the number of parts by resolution, then one row an iteration of every chain";

/// Take a recording apart into parts you can hear
///
/// MIX is a wav, flac, mp3, ogg or aiff file. The parts of its spectrogram are found as `bpnmf fit` finds those of a
/// matrix, and every part becomes a sound: what is left of the recording when everything else is turned down. Stems
/// are sums of parts, and add up to the recording, sample for sample.
///
/// The same seed gives the same result, whatever the number of threads.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = "More, with examples: bpnmf separate --help")]
pub(crate) struct SeparateArgs {
    /// The recording
    #[arg(value_name = "MIX")]
    pub(crate) input: PathBuf,

    /// The folder for the results; made if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Overwrite results or an unfinished run that are already in the folder, and try what needs more memory than there is
    #[arg(long)]
    pub(crate) force: bool,

    /// So many stems, each of the notes of one instrument: a guess
    #[arg(long, value_name = "N", conflicts_with_all = ["groups", "reference"])]
    pub(crate) stems: Option<usize>,

    /// With --stems: an instrument may play several notes at once, as a piano does
    #[arg(long, requires = "stems")]
    pub(crate) polyphonic: bool,

    /// The stems by a JSON file, {"name": [part, ...], ...}, parts counted from 0 as in components/; those that are in no
    /// group go to the stem `rest`
    #[arg(long, value_name = "FILE", conflicts_with = "reference")]
    pub(crate) groups: Option<PathBuf>,

    /// A stem for each of these recordings of the sources alone, as long as MIX: it tells which parts are whose
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) reference: Vec<PathBuf>,

    /// Which parts a reference gets [default: all]
    #[arg(long, value_enum, requires = "reference")]
    pub(crate) pick: Option<PickName>,

    /// One stem more, for what no part explains; without it that is shared out
    #[arg(long)]
    pub(crate) residual: bool,

    /// Samples in a frame, even [default: the power of two nearest to 46 ms, or half of it for a recording of
    /// less than 200 such frames]
    #[arg(long, value_name = "SAMPLES")]
    pub(crate) window: Option<usize>,

    /// Samples from one frame to the next [default: half a window]
    #[arg(long, value_name = "SAMPLES")]
    pub(crate) hop: Option<usize>,

    /// Samples a second to work at [default: those of MIX, at most 48000]
    #[arg(long, value_name = "HZ")]
    pub(crate) rate: Option<u32>,

    /// Only this channel, from 1 [default: the mean of all]
    #[arg(long, value_name = "N")]
    pub(crate) channel: Option<usize>,

    /// The count that the largest magnitude becomes: more levels, more parts [default: such that a typical count is 11]
    #[arg(long, value_name = "N")]
    pub(crate) levels: Option<u32>,

    /// How samples are written
    #[arg(long, value_enum, default_value_t = FormatName::Float)]
    pub(crate) format: FormatName,

    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PickName {
    /// The one part that comes and goes most as the reference does; all other parts go to the stem `residual`
    One,
    /// Every part goes to the references that play it; one that several share is split between them
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    /// Whole numbers of 16 bits
    #[value(name = "16")]
    Int16,
    /// Whole numbers of 24 bits
    #[value(name = "24")]
    Int24,
    /// Floats of 32 bits: stems add up to the recording best
    Float,
}
