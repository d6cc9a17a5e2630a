// Makes the sounds of parts and stems from the mixture and the model, a little at a time so that the page stays quick:
// short-time Fourier transform, Wiener filter, weighted overlap-add.
(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("model").textContent);
  const { rate, window: size, hop, stems, residual } = page; // residual: 0 without one
  const bins = size / 2 + 1;
  const mixture = document.getElementById("mixture");
  const making = document.getElementById("making");

  // Sounds made without being asked for, in bytes: more than this is for nobody's telephone.
  const MOST_BYTES = 500e6;
  // How long the page may be kept from anything else, in milliseconds.
  const SLICE = 20;

  function decoded(text) {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
    return bytes.buffer;
  }

  const samples = new Int16Array(decoded(mixture.getAttribute("src").split(",")[1]), 44);
  // The parts, and what stems are made of: pieces of them, or the parts themselves.
  const models = page.models.map(({ parts, dictionary, activations }) => ({
    parts,
    dictionary: new Float32Array(decoded(dictionary)), // part after part
    activations: new Float32Array(decoded(activations)), // part after part
    everything: Array.from({ length: parts }, (_, k) => [k, 1]),
  }));
  const ofParts = models[0], ofStems = models[models.length - 1];
  const frames = ofParts.activations.length / ofParts.parts;
  for (const model of models) {
    model.sums = new Float64Array(frames * bins); // W H; as floats, small ones would vanish
    model.empty = new Uint8Array(frames); // whether W H is 0 anywhere in the frame
  }
  // One frame more, filtered like the last, if the last samples are under the edge of a window alone.
  const total = frames + (samples.length % hop > 0 ? 1 : 0);

  // A discrete Fourier transform in place, of a power of two of numbers.
  function radix2(n) {
    const cos = new Float64Array(n / 2), sin = new Float64Array(n / 2), place = new Uint32Array(n);
    for (let i = 0; i < n / 2; i++) {
      cos[i] = Math.cos(2 * Math.PI * i / n);
      sin[i] = Math.sin(2 * Math.PI * i / n);
    }
    for (let i = 1; i < n; i++) place[i] = place[i >> 1] >> 1 | (i & 1 ? n >> 1 : 0);
    return (re, im) => {
      for (let i = 0; i < n; i++) {
        const j = place[i];
        if (j > i) {
          [re[i], re[j]] = [re[j], re[i]];
          [im[i], im[j]] = [im[j], im[i]];
        }
      }
      for (let half = 1, stride = n / 2; half < n; half *= 2, stride /= 2) {
        for (let start = 0; start < n; start += 2 * half) {
          for (let i = start, turn = 0; i < start + half; i++, turn += stride) {
            const j = i + half;
            const x = re[j] * cos[turn] + im[j] * sin[turn];
            const y = im[j] * cos[turn] - re[j] * sin[turn];
            re[j] = re[i] - x;
            im[j] = im[i] - y;
            re[i] += x;
            im[i] += y;
          }
        }
      }
    };
  }

  // The same for any length: Bluestein's convolution with a chirp.
  function bluestein(n) {
    let m = 1;
    while (m < 2 * n - 1) m *= 2;
    const inner = radix2(m);
    const cos = new Float64Array(n), sin = new Float64Array(n);
    const filterRe = new Float64Array(m), filterIm = new Float64Array(m);
    for (let i = 0; i < n; i++) {
      const angle = Math.PI * (i * i % (2 * n)) / n;
      cos[i] = Math.cos(angle);
      sin[i] = Math.sin(angle);
      filterRe[i] = filterRe[(m - i) % m] = cos[i];
      filterIm[i] = filterIm[(m - i) % m] = sin[i];
    }
    inner(filterRe, filterIm);
    const a = new Float64Array(m), b = new Float64Array(m);
    return (re, im) => {
      a.fill(0);
      b.fill(0);
      for (let i = 0; i < n; i++) {
        a[i] = re[i] * cos[i] + im[i] * sin[i];
        b[i] = im[i] * cos[i] - re[i] * sin[i];
      }
      inner(a, b);
      for (let i = 0; i < m; i++) {
        const x = a[i] * filterRe[i] - b[i] * filterIm[i];
        b[i] = a[i] * filterIm[i] + b[i] * filterRe[i];
        a[i] = x;
      }
      inner(b, a); // exchanged: backwards
      for (let i = 0; i < n; i++) {
        re[i] = (a[i] * cos[i] + b[i] * sin[i]) / m;
        im[i] = (b[i] * cos[i] - a[i] * sin[i]) / m;
      }
    };
  }

  const transform = (size & size - 1) === 0 ? radix2(size) : bluestein(size);
  const hann = Float64Array.from({ length: size }, (_, i) => 0.5 - 0.5 * Math.cos(2 * Math.PI * i / size));
  const re = new Float64Array(size), im = new Float64Array(size);
  const spectrumRe = new Float32Array(total * bins), spectrumIm = new Float32Array(total * bins);
  const cover = new Float32Array(samples.length); // the squares of all windows over a sample

  // Two frames at a time, as the real and the imaginary part of one transform.
  function* analyse() {
    for (let t = 0; t < total; t += 2) {
      re.fill(0);
      im.fill(0);
      for (let i = 0, at = t * hop - size / 2; i < size; i++, at++) {
        if (at >= 0 && at < samples.length) {
          re[i] = samples[at] * hann[i];
          cover[at] += hann[i] * hann[i];
        }
        if (t + 1 < total && at + hop >= 0 && at + hop < samples.length) {
          im[i] = samples[at + hop] * hann[i];
          cover[at + hop] += hann[i] * hann[i];
        }
      }
      transform(re, im);
      for (let f = 0; f < bins; f++) {
        const g = (size - f) % size, first = t * bins + f, second = first + bins;
        spectrumRe[first] = (re[f] + re[g]) / 2;
        spectrumIm[first] = (im[f] - im[g]) / 2;
        if (t + 1 < total) {
          spectrumRe[second] = (im[f] + im[g]) / 2;
          spectrumIm[second] = (re[g] - re[f]) / 2;
        }
      }
      yield;
    }
    const sum = new Float64Array(bins);
    for (const model of models) {
      for (let t = 0; t < frames; t++) {
        numerator(model, model.everything, t, sum);
        for (let f = 0; f < bins; f++) {
          const at = t * bins + f;
          const magnitude = residual / 32768 * Math.hypot(spectrumRe[at], spectrumIm[at]);
          model.sums[at] = Math.max(sum[f], magnitude);
          if (model.sums[at] === 0) model.empty[t] = 1;
        }
        yield;
      }
    }
  }

  // The sum of some parts in one frame; whether there is anything.
  function numerator({ dictionary, activations }, weights, t, sum) {
    let any = false;
    sum.fill(0);
    for (const [k, weight] of weights) {
      const strength = weight * activations[k * frames + t];
      if (strength === 0) continue;
      any = true;
      for (let f = 0, at = k * bins; f < bins; f++, at++) sum[f] += strength * dictionary[at];
    }
    return any;
  }

  // The sound of some parts, [part, weight] each, as a wav file, or of what they leave. Where no part is on, it gets
  // `share` of the mixture.
  function* filtered(model, weights, share, left) {
    const { sums, empty } = model;
    const sound = new Float32Array(samples.length);
    const gains = [new Float64Array(bins), new Float64Array(bins)];
    for (let t = 0; t < total; t += 2) {
      let any = false;
      for (const second of [0, 1]) {
        const gain = gains[second], frame = Math.min(t + second, frames - 1);
        gain.fill(0);
        if (t + second >= total) continue;
        any = numerator(model, weights, frame, gain) || any || left || empty[frame] === 1;
        for (let f = 0, at = frame * bins; f < bins; f++, at++) {
          const what = left ? Math.max(sums[at] - gain[f], 0) : gain[f];
          gain[f] = sums[at] > 0 ? what / sums[at] : share;
        }
      }
      if (any) {
        for (let f = 0, at = t * bins; f < bins; f++, at++) {
          const a = gains[0][f] * spectrumRe[at], b = gains[0][f] * spectrumIm[at];
          const more = t + 1 < total;
          const c = more ? gains[1][f] * spectrumRe[at + bins] : 0, d = more ? gains[1][f] * spectrumIm[at + bins] : 0;
          const real = f === 0 || f === size / 2; // as in the spectrum of any real frame
          re[f] = a - (real ? 0 : d);
          im[f] = c + (real ? 0 : b);
          if (!real) {
            re[size - f] = a + d;
            im[size - f] = c - b;
          }
        }
        transform(im, re); // exchanged: backwards
        for (let i = 0, at = t * hop - size / 2; i < size; i++, at++) {
          if (at >= 0 && at < samples.length) sound[at] += re[i] * hann[i];
          if (at + hop >= 0 && at + hop < samples.length) sound[at + hop] += im[i] * hann[i];
        }
      }
      yield;
    }
    return wav(sound);
  }

  function wav(sound) {
    const file = new DataView(new ArrayBuffer(44 + 2 * sound.length));
    const word = (at, letters) => [...letters].forEach((letter, i) => file.setUint8(at + i, letter.charCodeAt(0)));
    word(0, "RIFF");
    file.setUint32(4, 36 + 2 * sound.length, true);
    word(8, "WAVEfmt ");
    file.setUint32(16, 16, true);
    file.setUint16(20, 1, true);
    file.setUint16(22, 1, true);
    file.setUint32(24, rate, true);
    file.setUint32(28, 2 * rate, true);
    file.setUint16(32, 2, true);
    file.setUint16(34, 16, true);
    word(36, "data");
    file.setUint32(40, 2 * sound.length, true);
    for (let i = 0; i < sound.length; i++) {
      const value = cover[i] > 0 ? Math.round(sound[i] / (cover[i] * size)) : 0;
      file.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, value)), true);
    }
    return new Blob([file], { type: "audio/wav" });
  }

  // Works through the steps of one thing, and pauses whenever a slice of time is used up.
  function drive(steps, done) {
    const end = performance.now() + SLICE;
    let step = steps.next();
    while (!step.done && performance.now() < end) step = steps.next();
    if (step.done) done(step.value);
    else setTimeout(drive, 0, steps, done);
  }

  const players = [...document.querySelectorAll("audio[data-part],audio[data-stem],audio[data-residual]")];
  const free = Math.max(1, Math.floor(MOST_BYTES / (44 + 2 * samples.length)));
  const queue = players.slice(0, free);
  let made = 0, wanted = queue.length, busy = true;

  function next() {
    const player = queue.shift();
    busy = player !== undefined;
    making.textContent = busy ? `Making the sounds of the parts: ${made} of ${wanted}.` : "";
    if (!busy) return;
    const { part, stem } = player.dataset;
    const left = part === undefined && stem === undefined;
    const weights = part !== undefined ? [[Number(part), 1]]
      : left ? ofStems.everything
      : stems[stem].map((weight, k) => [k, weight]).filter(([, weight]) => weight > 0);
    const model = part !== undefined ? ofParts : ofStems;
    const among = part !== undefined ? ofParts.parts : stems.length + (residual > 0 ? 1 : 0);
    drive(filtered(model, weights, 1 / among, left), (file) => {
      player.src = URL.createObjectURL(file);
      made += 1;
      next();
    });
  }

  for (const player of players.slice(free)) {
    const button = document.createElement("button");
    button.textContent = "make this sound";
    button.onclick = () => {
      button.replaceWith(player);
      queue.push(player);
      wanted += 1;
      if (!busy) next();
    };
    player.replaceWith(button);
  }

  // One sound at a time.
  document.addEventListener("play", (event) => {
    for (const player of [mixture, ...players]) if (player !== event.target) player.pause();
  }, true);

  setTimeout(drive, 0, analyse(), next);
})();
