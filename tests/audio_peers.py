"""Sounds are read, resampled and cut into frames as libsndfile, scipy and numpy do it: run by `./run test` with the path
of the experiments program. --show prints the figures of docs/audio.md."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.signal as signal
import soundfile

PASSED = 0


def check(what, value, limit):
    global PASSED
    if "--show" in sys.argv:
        print(f"{what:42} {value:10.3g}  (at most {limit:g})")
    assert value <= limit, f"{what}: {value} is above {limit}"
    PASSED += 1


def ours(program, folder, *arguments):
    done = subprocess.run([program, "audio", *map(str, arguments), folder / "out.npy"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return np.load(folder / "out.npy").squeeze()


def refusal(program, folder, file):
    done = subprocess.run([program, "audio", "decode", file, folder / "out.npy"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, f"{file.name}: {done.stdout}{done.stderr}"
    return done.stderr


def music(rate, seconds=2.0, channels=2):
    """Falling tones and a little noise."""
    time = np.arange(int(rate * seconds)) / rate
    draw = np.random.default_rng(1)
    tones = [0.3 * np.sin(2 * np.pi * pitch * time) * np.exp(-2 * (time % 0.5)) for pitch in (220, 523.25, 1318.5, 3520)]
    return np.stack([sum(tones[i % 2::2]) + 0.01 * draw.standard_normal(len(time)) for i in range(channels)], 1)


def decoding(program, folder):
    for rate, channels in ((44100, 2), (22050, 1), (48000, 6), (192000, 1)):
        sound = music(rate, 0.7, channels)
        for form, depth in (("wav", "PCM_U8"), ("wav", "PCM_16"), ("wav", "PCM_24"), ("wav", "PCM_32"), ("wav", "FLOAT"),
                            ("wav", "DOUBLE"), ("wavex", "PCM_24"), ("flac", "PCM_16"), ("flac", "PCM_24"),
                            ("aiff", "PCM_16"), ("aiff", "PCM_24"), ("aiff", "FLOAT")):
            file = folder / f"{form}_{depth}_{rate}.{form}"
            soundfile.write(file, sound, rate, depth, format=form.upper())
            peer = soundfile.read(file, dtype="float64", always_2d=True)[0].mean(1)
            check(f"{form} {depth} {rate} Hz x {channels}", np.abs(ours(program, folder, "decode", file) - peer).max(),
                  0 if channels == 1 and depth not in ("PCM_32", "DOUBLE") else 3e-8)
    for form, rate, channels in (("ogg", 44100, 2), ("ogg", 22050, 1), ("mp3", 44100, 2), ("mp3", 22050, 1), ("mp3", 48000, 1)):
        file = folder / f"lossy_{rate}.{form}"
        soundfile.write(file, music(rate, 1.3, channels), rate, format=form.upper())
        peer = soundfile.read(file, dtype="float64", always_2d=True)[0].mean(1)
        sound = ours(program, folder, "decode", file)
        assert len(sound) == len(peer), f"{file.name}: {len(sound)} samples, libsndfile has {len(peer)}"
        check(f"{form} {rate} Hz x {channels}", np.abs(sound - peer).max(), 1e-4)


def damage(program, folder):
    sound = music(44100)
    for form in ("wav", "flac", "ogg", "mp3"):
        file = folder / f"whole.{form}"
        soundfile.write(file, sound, 44100, format=form.upper())
        whole = file.read_bytes()
        cut = folder / f"cut.{form}"
        cut.write_bytes(whole[:len(whole) * 2 // 3])
        text = refusal(program, folder, cut)
        assert "copied to the end?" in text and (form == "ogg" or " 88200 samples" in text or form == "mp3"), text
        if form != "wav":
            bad = bytearray(whole)
            for place in range(len(bad) // 2, len(bad) // 2 + 40):
                bad[place] ^= 0x5a
            (folder / f"bad.{form}").write_bytes(bad)
            refusal(program, folder, folder / f"bad.{form}")
    bare = folder / "bare.mp3"
    whole = (folder / "whole.mp3").read_bytes()
    # Without the frame that says how long it is an mp3 may end anywhere.
    start = next(at for at in range(len(whole)) if whole[at] == 0xff and whole[at + 1] & 0xe0 == 0xe0)
    second = next(at for at in range(start + 100, len(whole)) if whole[at:at + 2] == whole[start:start + 2])
    bare.write_bytes(whole[second:len(whole) * 2 // 3])
    assert len(ours(program, folder, "decode", bare)) > 44100


def decibels(error, reference):
    return 20 * np.log10(np.sqrt((error ** 2).mean() / (reference ** 2).mean()))


def resampling(program, folder):
    for before, after in ((44100, 22050), (48000, 22050), (22050, 44100), (8000, 44100), (192000, 48000), (44100, 48000),
                          (22050, 7001)):
        seconds, top = 3.0, 0.45 * min(before, after)
        time = np.arange(int(before * seconds) + 1) / before
        chirp = 0.8 * signal.chirp(time, 20, seconds, top)
        file = folder / "chirp.wav"
        soundfile.write(file, chirp, before, "FLOAT")
        sound = ours(program, folder, "resample", file, after)
        assert len(sound) == -(-len(chirp) * after // before), (before, after, len(sound))
        # Long enough for a transition of a tenth of the band and 120 dB.
        divisor = np.gcd(before, after)
        up, down = after // divisor, before // divisor
        length = 2 * 100 * max(up, down) + 1
        taps = signal.firwin(length, 1 / max(up, down), window=("kaiser", 12.0))
        peer = signal.resample_poly(chirp.astype(np.float32).astype(np.float64), up, down, window=taps)
        middle = slice(len(peer) // 10, -len(peer) // 10)
        check(f"chirp {before} to {after}, dB to scipy", decibels(sound[middle] - peer[middle], peer[middle]), -80)
        exact = 0.8 * signal.chirp(np.arange(len(sound)) / after, 20, seconds, top)
        check(f"chirp {before} to {after}, dB to the truth", decibels(sound[middle] - exact[middle], exact[middle]), -80)
        if after < before:
            high = 0.8 * np.sin(2 * np.pi * (0.55 * after) * time)
            soundfile.write(file, high, before, "FLOAT")
            left = ours(program, folder, "resample", file, after)[middle]
            check(f"a tone too high for {after}, dB left", decibels(left, high), -80)


def spectra(program, folder):
    sound = music(22050, 1.234, 1)[:, 0]
    file = folder / "stft.wav"
    soundfile.write(file, sound, 22050, "FLOAT")
    sound = sound.astype(np.float32).astype(np.float64)
    for window, hop in ((1024, 512), (2048, 512), (1000, 441)):
        padded = np.pad(sound, window // 2)
        hann = signal.get_window("hann", window)
        frames = [padded[at:at + window] * hann for at in range(0, len(padded) - window + 1, hop)]
        peer = np.abs(np.fft.rfft(frames))
        magnitudes = ours(program, folder, "stft", file, window, hop)
        assert magnitudes.shape == peer.shape == (1 + len(sound) // hop, window // 2 + 1)
        check(f"stft {window}/{hop}, of the largest", np.abs(magnitudes - peer).max() / peer.max(), 1e-6)


def main():
    program = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        for group in (decoding, damage, resampling, spectra):
            group(program, Path(name))
    print(f"{PASSED} passed, 0 failed")


if __name__ == "__main__":
    main()
