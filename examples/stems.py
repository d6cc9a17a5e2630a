"""A recording to stems: ten notes of a clarinet and an electric piano, taken apart and scored.

Without the recording two instruments are made up. With --pictures DIR the stems are written there as wav files, too.
"""

import wave

import numpy as np
from common import arguments, data, save

import bpnmf


def read(path):
    """The samples of a wav file of 16 bits and one channel, and its rate."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), dtype="<i2") / 32768, file.getframerate()


def write(path, sound, rate):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(np.clip(np.round(32768 * sound), -32768, 32767).astype("<i2").tobytes())


def made_up(rate=16000, seconds=2.75):
    """Two instruments of three notes each; every note sounds with two of the other instrument's."""
    time = np.arange(int(rate * seconds)) / rate

    def play(pitches, onset, overtones):
        sound = np.zeros_like(time)
        for number, pitch in enumerate(pitches):
            since = time - onset - 0.5 * number
            shape = np.clip(np.minimum(since, 0.5 - since) / 0.01, 0, 1) * np.exp(-np.clip(since, 0, None))
            sound += shape * sum(a * np.sin(2 * np.pi * pitch * (n + 1) * time) for n, a in enumerate(overtones))
        return 0.2 * sound

    low = play([220, 262, 330, 262, 220], 0.0, [1, 0.1, 0.6, 0.1, 0.3])
    high = play([494, 587, 784, 494, 587], 0.25, [1, 0.5, 0.25])
    return {"low": low, "high": high}, rate


options = arguments(__doc__)
folder = data("clip_identifiable", needed=False)
if folder:
    rate = read(folder / "mix.wav")[1]
    sources = {name: read(folder / f"{name}.wav")[0] for name in ("clarinet", "piano")}
else:
    sources, rate = made_up()
truth = np.stack(list(sources.values()))
mix = truth.sum(axis=0)

found = bpnmf.separate(mix, rate, n_stems=len(truth), random_state=0, n_jobs=-1)
print(f"{mix.size / rate:.2f} s of sound: {found.model.n_components_} parts")
for k, spectrum in enumerate(found.spectra):
    on = found.times[found.activations[:, k] > 0.1 * found.activations[:, k].max()]
    loudest = found.frequencies[np.argmax(spectrum)]
    print(f"  {k + 1:>2}: loudest at {loudest:4.0f} Hz, on for {on.size * (found.times[1] - found.times[0]):.2f} s")

known = bpnmf.separate(mix, rate, reference=truth, random_state=0, n_jobs=-1)
print("Stems, in dB:                            SDR    SIR    SAR")
for told, stems in (("notes that belong together", found.stems), ("parts chosen by the sources", known.stems)):
    sdr, sir, sar, order = bpnmf.bss_eval(truth, stems)
    for i, name in enumerate(sources):
        print(f"  {name:<9} {told:<28} {sdr[i]:>6.1f} {sir[i]:>6.1f} {sar[i]:>6.1f}")
    if options.pictures and stems is found.stems:
        for i, name in enumerate(sources):
            write(options.pictures / f"{name}.wav", stems[order[i]], rate)
            print(f"  written: {options.pictures / f'{name}.wav'}")

if options.pictures:
    save(bpnmf.plot.components(found.model, positions=found.frequencies), options.pictures, "stems-spectra.png")
    save(bpnmf.plot.activations(found.model, positions=found.times), options.pictures, "stems-activations.png")
