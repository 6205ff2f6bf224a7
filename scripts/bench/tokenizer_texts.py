"""Makes the texts with which scripts/bench/tokenizers compares tokenizers, and tokenizer files of known patterns."""
import json
import random
import unicodedata

# First and last code points of scripts, as the blocks of Unicode have them.
SCRIPTS = [(0x21, 0x7e), (0xa1, 0x24f), (0x250, 0x2af), (0x370, 0x3ff), (0x400, 0x52f), (0x531, 0x586), (0x591, 0x5f4), (0x600, 0x6ff),
           (0x710, 0x74f), (0x780, 0x7b1), (0x904, 0x97f), (0x980, 0x9fe), (0xa01, 0xa76), (0xa81, 0xaff), (0xb01, 0xb77), (0xb82, 0xbfa),
           (0xc00, 0xc7f), (0xc80, 0xcf2), (0xd00, 0xd7f), (0xd81, 0xdf4), (0xe01, 0xe5b), (0xe81, 0xedf), (0xf00, 0xfda),
           (0x1000, 0x109f), (0x10a0, 0x10ff), (0x1100, 0x11ff), (0x1200, 0x1399), (0x13a0, 0x13fd), (0x1400, 0x167f), (0x1780, 0x17f9),
           (0x1820, 0x18aa), (0x1e00, 0x1eff), (0x1f00, 0x1ffe), (0x2c00, 0x2c5f), (0x2d30, 0x2d7f), (0x3041, 0x3096), (0x30a1, 0x30fa),
           (0x3105, 0x312f), (0x4e00, 0x9fff), (0xa000, 0xa48c), (0xac00, 0xd7a3), (0xff01, 0xffee), (0x10000, 0x100fa),
           (0x10400, 0x1044f), (0x1d400, 0x1d7ff), (0x20000, 0x2a6d6)]
SYMBOLS = [(0x2010, 0x205e), (0x2070, 0x209c), (0x20a0, 0x20c0), (0x2100, 0x218b), (0x2190, 0x23ff), (0x2460, 0x24ff), (0x2500, 0x25ff),
           (0x2600, 0x27bf), (0x3001, 0x303f), (0x1f300, 0x1f64f), (0x1f680, 0x1f6fc), (0x1f900, 0x1f9ff)]
MARKS = [(0x300, 0x36f), (0x1ab0, 0x1ac0), (0x20d0, 0x20f0), (0xfe00, 0xfe0f), (0xfe20, 0xfe2f)]
SPACES = [" ", " ", " ", " ", "\t", "\n", "\r\n", "\r", "\u00a0", "\u3000", "\u2003", "\u2028", "\u0085", "\u200b", "\u200d", "\x0b"]
EMOJI = ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f", "1\ufe0f\u20e3"]
WORDS = ["the", "I'm", "we'LL", "don't", "IT'S", "'s", "it'\u017f", "x'Ve", "<|endoftext|>", "HTTPServer", "camelCase", "3.14159", "1234567",
         "http://a.b/c", "\u00e9t\u00e9", "e\u0301te\u0301", "\ufb01", "\u1e9e", "\u0130", "\u01c5", "\u02b0", "a//b///", "{}[]();\n", "##", "..."]


def assigned(low, high):
    """The characters of a range that Unicode 14 has, without surrogates and private use."""
    return [chr(code) for code in range(low, high + 1) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]


def mixed_unicode(size):
    """About `size` bytes of UTF-8: words of all scripts, emoji, combining marks, numbers, and runs of white space."""
    rng = random.Random(20)
    scripts = [assigned(*each) for each in SCRIPTS]
    symbols = [assigned(*each) for each in SYMBOLS]
    marks = [assigned(*each) for each in MARKS]
    parts, length = [], 0
    while length < size:
        kind = rng.random()
        if kind < 0.5:
            letters = rng.choice(scripts)
            part = "".join(rng.choices(letters, k=rng.randint(1, 9)))
            if rng.random() < 0.2:
                part = rng.choice([part.upper(), part.title(), part.lower()])
        elif kind < 0.6:
            part = "".join(rng.choices(rng.choice(symbols), k=rng.randint(1, 4)))
        elif kind < 0.65:
            part = rng.choice("aeiouAEIOU\u05d0\u0915 ") + "".join(rng.choices(rng.choice(marks), k=rng.randint(1, 3)))
        elif kind < 0.7:
            part = rng.choice(EMOJI)
        elif kind < 0.75:
            part = str(rng.randint(0, 10**rng.randint(1, 12)))
        elif kind < 0.9:
            part = rng.choice(WORDS)
        elif kind < 0.999:
            part = rng.choice(SPACES) * rng.randint(1, 5) + rng.choice(SPACES)
        else:
            part = rng.choice([" ", " ", "\n", "\t", "=", "-", "ab"]) * rng.randint(50, 400)
        if rng.random() < 0.6:
            part += rng.choice(SPACES)
        parts.append(part)
        length += len(part.encode())
    return "".join(parts)


def broken_utf8(data):
    """The text with bytes changed, cut out and put in, which breaks its UTF-8 in many places."""
    rng = random.Random(21)
    pieces, at = [], 0
    while at < len(data):
        step = rng.randint(20, 400)
        piece = bytearray(data[at:at + step])
        at += step
        kind = rng.randrange(4)
        if kind == 0:
            del piece[rng.randrange(len(piece))]
        elif kind == 1:
            piece[rng.randrange(len(piece))] = rng.randrange(128, 256)
        elif kind == 2:
            piece += bytes(rng.choice([0xff, 0xc0, 0x80, 0xf5, 0xed, 0xa0, 0xe2]) for _ in range(rng.randint(1, 4)))
        pieces.append(bytes(piece))
    return b"".join(pieces)


def source_code(root):
    """The sources of this project, one after the other."""
    files = sorted(file for folder in ("core", "io", "cmd", "scripts", "test") for file in (root / folder).rglob("*")
                   if file.suffix in (".cpp", ".h", ".py", ".cu", ".yaml"))
    return b"".join(file.read_bytes() for file in files)


def byte_characters():
    """The characters that stand for bytes in byte-level vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def merges_of_ranks(ranks):
    """The merges that a rank file implies: the two parts into which the lower ranks encode each token."""
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) == 1:
            continue
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], rank))
            if ranks.get(parts[best] + parts[best + 1], rank) >= rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            merges.append(parts)
    return merges


CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS = {
    "llama3": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST,
    "qwen2": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST,
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTIONS +
             r"?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTIONS +
             r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}


def tokenizer_json_of_ranks(ranks, pattern):
    """A tokenizer.json with the vocabulary of a rank file and the pattern of this name."""
    characters = byte_characters()
    text = lambda token: "".join(characters[byte] for byte in token)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": pattern == "gpt2"}
    split = {"type": "Split", "pattern": {"Regex": PATTERNS.get(pattern)}, "behavior": "Isolated", "invert": False}
    steps = byte_level if pattern == "gpt2" else {"type": "Sequence", "pretokenizers": [split, byte_level]}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": pattern == "llama3",
             "vocab": {text(token): rank for token, rank in ranks.items()},
             "merges": [[text(left), text(right)] for left, right in merges_of_ranks(ranks)]}
    normalizer = {"type": "NFC"} if pattern == "qwen2" else None
    return json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
                       "pre_tokenizer": steps, "post_processor": None, "decoder": byte_level, "model": model})
