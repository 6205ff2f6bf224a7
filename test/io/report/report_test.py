#!/usr/bin/env python3
"""Tests report.html in a headless browser: report_test.py TRAINCTL [FOLDER]. Copies the screenshots to FOLDER if given.

Renders the page in light and dark and in a narrow window, and checks that curves are drawn and that nothing is loaded
from elsewhere. Exits with code 77 (skipped) if no Chromium is installed."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if BROWSER is None:
    print("no Chromium is installed")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAINCTL = str(pathlib.Path(sys.argv[1]).resolve())


def trainctl(folder, *arguments):
    subprocess.run([TRAINCTL, *map(str, arguments)], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def chromium(folder, *arguments):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile",
               *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def pixels(path):
    """The colours of a PNG of 8 bits a channel, as the browser writes them: rows of (red, green, blue)."""
    data = path.read_bytes()
    chunks, at = {}, 8
    while at < len(data):
        size, name = struct.unpack(">I4s", data[at:at + 8])
        chunks[name] = chunks.get(name, b"") + data[at + 8:at + 8 + size]
        at += 12 + size
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert depth == 8 and kind in (2, 6), (depth, kind)
    n = 3 if kind == 2 else 4
    raw = zlib.decompress(chunks[b"IDAT"])
    rows, before = [], bytearray(width * n)
    for y in range(height):
        begin = y * (width * n + 1)
        filter_type, row = raw[begin], bytearray(raw[begin + 1:begin + 1 + width * n])
        for i in range(len(row)):
            a = row[i - n] if i >= n else 0
            b, c = before[i], before[i - n] if i >= n else 0
            if filter_type == 1:
                row[i] = (row[i] + a) & 255
            elif filter_type == 2:
                row[i] = (row[i] + b) & 255
            elif filter_type == 3:
                row[i] = (row[i] + (a + b) // 2) & 255
            elif filter_type == 4:
                p = a + b - c
                predictor = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                row[i] = (row[i] + predictor) & 255
        rows.append([tuple(row[i:i + 3]) for i in range(0, len(row), n)])
        before = row
    return rows


def pixels_of(rows, colour):
    """Returns the number of pixels that have nearly this colour."""
    wanted = tuple(int(colour[i:i + 2], 16) for i in (1, 3, 5))
    return sum(max(abs(a - b) for a, b in zip(pixel, wanted)) <= 12 for row in rows for pixel in row)


def colours(page):
    """Returns the colours of the background and of the first two curves in the page's style, for light and for dark."""
    found = [re.findall(rf"--{name}: (#[0-9a-f]{{6}})", page) for name in ("back", "c0", "c1")]
    return [[values[i] for values in found] for i in (0, 1)]


def screenshot(folder, page, name, width, height, dark):
    picture = folder / f"{name}.png"
    theme = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    chromium(folder, f"--screenshot={picture}", f"--window-size={width},{height}", *theme, page.as_uri())
    back, *curves = colours(page.read_text())[dark]
    rows = pixels(picture)
    assert pixels_of(rows, back) > 0.2 * len(rows) * len(rows[0]), (name, "background", back)
    for curve in curves:
        assert pixels_of(rows, curve) > 100, (name, "no curve in", curve, pixels_of(rows, curve))
    return picture


with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    for name, rate in (("one", 0.01), ("two", 0.001)):
        trainctl(folder, "run", ROOT / "configs/quickstart.yaml", "--ranks", "1", "--quiet", "--run-dir", name,
                 "--set", f"train.optimizer.learning_rate={rate}")
    trainctl(folder, "report", "one", "two", "--out", "both.html")
    for page in (folder / "one/report.html", folder / "both.html"):
        text = page.read_text()
        assert not re.search(r"https?:|<script|<link|url\(|@import|src=(?!\"data:)", text), page
        # The browser's network log has every address that it requested.
        log = folder / "network.json"
        document = chromium(folder, f"--log-net-log={log}", "--window-size=390,800", "--dump-dom", page.as_uri())
        assert document.count("<svg") == text.count("<svg") >= 5
        requested = set(re.findall(r'"url":"(https?://[^"]*)"', log.read_text()))
        by_page = {url for url in requested if not re.search(r"google|gstatic|googleapis|chrome", url)}
        assert not by_page, by_page
    pictures = [screenshot(folder, folder / "one/report.html", "light", 900, 760, False),
                screenshot(folder, folder / "one/report.html", "dark", 900, 760, True),
                screenshot(folder, folder / "one/report.html", "phone", 500, 1300, False),
                screenshot(folder, folder / "both.html", "compared", 900, 1000, False)]
    if len(sys.argv) > 2:
        for picture in pictures:
            shutil.copy(picture, sys.argv[2])
print("curves are drawn, and nothing is loaded from elsewhere")
