"""The report in a real browser: run by `./run test` with the page of a sound, one of another window, and one of a matrix.

Pictures have pixels, players get the sound they should, text can be read in light and dark, nothing is wider than a
phone, nothing is said on the console, and nothing goes to the network."""

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

BROWSER = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]

# The contrast that WCAG asks of text.
LEAST_CONTRAST = 4.5

PICTURES = """() => Promise.all([...document.images].map(async (image) => {
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.naturalWidth, image.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return [image.alt, image.naturalWidth, image.clientWidth, image.clientHeight, new Set(pixels).size];
}))"""

CONTRAST = """() => {
    const parsed = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = (colour) => {
        const [r, g, b] = colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parsed(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour.slice(0, 3);
        }
        return [255, 255, 255];
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
        const [a, b] = [light(parsed(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
        const size = parseFloat(getComputedStyle(element).fontSize);
        found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), size, walker.currentNode.data.trim()]);
    }
    return found;
}"""

DURATIONS = "() => [...document.querySelectorAll('audio')].map((player) => player.duration)"

SAMPLES = """async () => {
    const all = [];
    for (const player of document.querySelectorAll("audio")) {
        const file = await (await fetch(player.src)).arrayBuffer();
        all.push([player.dataset.part, player.dataset.stem, [...new Int16Array(file, 44)]]);
    }
    return all;
}"""


def open_page(browser, path, complaints, **context):
    page = browser.new_context(**context).new_page()
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url.startswith(("file:", "data:", "blob:"))
            else complaints.append(f"network: {request.url}"))
    page.goto(path.resolve().as_uri())
    return page


def check_looks(browser, path):
    for scheme in ("light", "dark"):
        for width in (1280, 375):
            complaints = []
            page = open_page(browser, path, complaints, viewport={"width": width, "height": 800}, color_scheme=scheme)
            pictures = page.evaluate(PICTURES)
            assert len(pictures) >= 4
            for name, natural, across, down, colours in pictures:
                assert natural > 0 and across > 100 and down > 100 and colours > 1, (name, natural, across, down, colours)
            texts = page.evaluate(CONTRAST)
            assert len(texts) > 50
            worst = min(texts)
            assert worst[0] >= LEAST_CONTRAST, f"{path.name}, {scheme}: contrast {worst[0]:.2f} of {worst[2]!r}"
            smallest = min(texts, key=lambda text: text[1])
            assert smallest[1] >= 11, f"{smallest[1]} pixels is too small: {smallest[2]!r}"
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path.name} is {wide} pixels wide on a screen of {width}"
            assert not complaints, complaints
            page.context.close()


def wait_for_sounds(page):
    page.wait_for_function(f"({DURATIONS})().every((seconds) => Number.isFinite(seconds) && seconds > 0)", timeout=30_000)
    durations = page.evaluate(DURATIONS)
    assert len(durations) > 3 and max(durations) - min(durations) < 1e-6, durations


def embedded(path):
    """The mixture and the model, as the page has them."""
    text = path.read_text()
    model = json.loads(re.search(r'id="model">(.*?)</script>', text).group(1))
    mixture = base64.b64decode(re.search(r'src="data:audio/wav;base64,([^"]*)"', text).group(1))
    def factors(of):
        array = lambda name: np.frombuffer(base64.b64decode(of[name]), "<f4").reshape(of["parts"], -1).astype(float)
        return array("dictionary").T, array("activations")

    return model, np.frombuffer(mixture[44:], "<i2").astype(float), [factors(of) for of in model["models"]]


def filtered(x, gains, window, hop):
    """The sound x after a short-time Fourier filter: bins x frames."""
    frames = gains.shape[1]
    total = frames + (len(x) % hop > 0)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    padded = np.zeros((total - 1) * hop + window)
    padded[window // 2 : window // 2 + len(x)] = x
    out, cover = np.zeros(len(padded)), np.zeros(len(padded))
    for t in range(total):
        at = slice(t * hop, t * hop + window)
        spectrum = np.fft.rfft(padded[at] * hann) * gains[:, min(t, frames - 1)]
        out[at] += np.fft.irfft(spectrum, window) * hann
        cover[at] += hann**2
    return (out / np.maximum(cover, 1e-300))[window // 2 : window // 2 + len(x)]


def check_sounds(browser, path):
    complaints = []
    page = open_page(browser, path, complaints, bypass_csp=True)
    wait_for_sounds(page)
    assert page.evaluate("document.getElementById('making').textContent") == ""
    sounds = page.evaluate(SAMPLES)
    assert not complaints, complaints
    model, x, models = embedded(path)
    heard = {("part", int(k)) if k else ("stem", int(s)): np.array(y, float) for k, s, y in sounds if k or s}
    # Stems are sums of parts, or of pieces of them, which are a model of their own.
    for kind, (w, h) in (("part", models[0]), ("stem", models[-1])):
        weights = np.eye(len(h)) if kind == "part" else np.array(model["stems"])
        total = w @ h
        assert (total == 0).any() or path.stem != "sound", "some bins must be off everywhere for the test to mean much"
        added = sum(heard[kind, i] for i in range(len(weights)))
        assert np.abs(added - x).max() <= 0.5 * len(weights) + 1, f"{kind}s do not add up to the mixture"
        for i, weight in enumerate(weights):
            with np.errstate(divide="ignore", invalid="ignore"):
                gains = np.where(total > 0, (w * weight) @ h / total, 1 / len(weights))
            off = np.abs(heard[kind, i] - filtered(x, gains, model["window"], model["hop"])).max()
            assert off < 0.501, f"{kind} {i}: {off} from what numpy makes, where rounding is 0.5"
    page.evaluate("document.querySelectorAll('audio').forEach((player) => { player.muted = true; })")
    playing = "() => [...document.querySelectorAll('audio')].filter((player) => !player.paused).length"
    page.evaluate("document.querySelectorAll('audio')[0].play()")
    page.evaluate("document.querySelectorAll('audio')[2].play()")
    assert page.evaluate(playing) == 1, "one sound at a time"
    page.context.close()


def check_without_script(browser, path):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(path.resolve().as_uri())
    assert page.locator("img").count() >= 4 and page.locator("noscript").first.is_visible()
    page.context.close()


def main():
    *sounds, matrix = map(Path, sys.argv[1:])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        for path in (sounds[0], matrix):
            check_looks(browser, path)
        for path in sounds:
            check_sounds(browser, path)
        check_without_script(browser, sounds[0])
        browser.close()


if __name__ == "__main__":
    main()
