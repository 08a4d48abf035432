# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a browser's screenshot small: a picture of text and boxes needs no more than 256 colours."""
import collections
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_COLOURS = 256
FREQUENT = 128


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def chunks_of(png):
    at = len(SIGNATURE)
    while at < len(png):
        size = struct.unpack(">I", png[at:at + 4])[0]
        yield png[at + 4:at + 8], png[at + 8:at + 8 + size]
        at += size + 12


def nearest_before(left, up, corner):
    """Paeth's guess at a byte, from its three neighbours."""
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))


def unfiltered(kind, line, before, step):
    """A line's own bytes; the filters are those of the PNG specification."""
    if kind == 2:
        return bytearray((value + up) & 255 for value, up in zip(line, before))
    if kind in (1, 3, 4):
        for at, value in enumerate(line):
            left, corner = (line[at - step], before[at - step]) if at >= step else (0, 0)
            guess = {1: left, 3: (left + before[at]) // 2}.get(kind)
            line[at] = (value + (nearest_before(left, before[at], corner) if guess is None else guess)) & 255
    return line


def pixels_of(png):
    """Width, height, and the lines, each a list of (red, green, blue)."""
    parts = collections.defaultdict(bytes)
    for kind, data in chunks_of(png):
        parts[kind] += data
    width, height, depth, colours = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    if depth != 8 or colours not in (2, 6):
        raise ValueError("not a browser's screenshot")
    step = 3 if colours == 2 else 4
    raw, stride, before, lines = zlib.decompress(parts[b"IDAT"]), width * step, bytearray(width * step), []
    for row in range(height):
        at = row * (stride + 1)
        before = unfiltered(raw[at], bytearray(raw[at + 1:at + 1 + stride]), before, step)
        lines.append(list(zip(before[0::step], before[1::step], before[2::step])))
    return width, height, lines


def apart(left, right):
    return sum((a - b) ** 2 for a, b in zip(left, right))


def palette_of(counts):
    """The most frequent colours, and those that would be changed most: a thin red line has few pixels."""
    palette = [colour for colour, _ in counts.most_common(FREQUENT)]
    wrong = {colour: min(apart(colour, known) for known in palette) for colour in counts}
    while len(palette) < min(MOST_COLOURS, len(counts)):
        palette.append(max(wrong, key=lambda colour: wrong[colour] * counts[colour]))
        wrong = {colour: min(error, apart(colour, palette[-1])) for colour, error in wrong.items()}
    return palette


def shrink(png):
    """The same picture with few colours; the others become the nearest of these."""
    width, height, lines = pixels_of(png)
    counts = collections.Counter(colour for line in lines for colour in line)
    palette = palette_of(counts)
    index = {colour: number for number, colour in enumerate(palette)}
    for colour in counts:
        if colour not in index:
            index[colour] = min(range(len(palette)), key=lambda number: apart(colour, palette[number]))
    raw = b"".join(b"\0" + bytes(index[colour] for colour in line) for line in lines)
    return (SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)) +
            chunk(b"PLTE", b"".join(map(bytes, palette))) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))
