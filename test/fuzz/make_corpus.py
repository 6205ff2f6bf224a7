#!/usr/bin/env python3
"""Makes test/fuzz/corpus: a folder of small inputs for each target of the fuzz tests. Needs numpy, h5py and Pillow.

    python3 -m venv venv && venv/bin/pip install numpy==2.4.6 h5py==3.16.0 pillow==13.0.0
    venv/bin/python test/fuzz/make_corpus.py

Inputs whose names begin with "found_" were found by fuzzing: they showed faults that are mended, and stay as they are.
"""
import gzip
import io
import json
import pathlib
import struct
import tarfile
import tempfile
import zipfile
import zlib

import h5py
import numpy as np
from PIL import Image

TEST = pathlib.Path(__file__).resolve().parents[1]
CORPUS = TEST / "fuzz/corpus"
rng = np.random.default_rng(48)


def save(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def idx(kind, shape, values):
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + values


def arrays():
    save("idx", "bytes", idx(8, (2, 3, 3), bytes(range(18))))
    save("idx", "floats", idx(13, (2, 2), struct.pack(">4f", 1, 2, -3, 0.5)))
    save("idx", "compressed", gzip.compress(idx(11, (3,), struct.pack(">3h", 1, -2, 300)), mtime=0))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    save("npy", "float32", npy(x))
    save("npy", "fortran", npy(np.asfortranarray(x)))
    save("npy", "int16_big", npy(np.arange(5, dtype=">i2")))
    save("npy", "scalar", npy(np.float64(2)))
    save("npy", "bool", npy(np.array([[True, False]])))
    save("npy", "version3", b"\x93NUMPY\x03\x00" + struct.pack("<I", 60) +
         b"{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }".ljust(59) + b"\n" + bytes(4))
    save("npy", "compressed", gzip.compress(npy(x), mtime=0))
    for name, write in (("stored", np.savez), ("deflated", np.savez_compressed)):
        file = io.BytesIO()
        write(file, x=x[:2, :2], y=np.array([0, 1]))
        save("npz", name, file.getvalue())
        save("zip", "npz_" + name, file.getvalue())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("a.txt"), "aaaaaaaaaaaaaaaabbbbbbbbbbbb" * 4, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("b/c.bin"), bytes(5))
        archive.comment = b"a comment"
    save("zip", "comment", file.getvalue())
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open(zipfile.ZipInfo("large"), "w", force_zip64=True) as member:
            member.write(b"content")
    save("zip", "zip64", file.getvalue())


def image_bytes(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def images():
    small = Image.fromarray(rng.integers(0, 256, (5, 6, 3), dtype=np.uint8))
    smooth = Image.fromarray(np.add.outer(np.arange(17) * 9, np.arange(20) * 5).astype(np.uint8)).convert("RGB")
    save("jpeg", "colour", image_bytes(smooth, "JPEG", quality=40, optimize=True))
    save("jpeg", "gray", image_bytes(smooth.convert("L"), "JPEG", quality=60, optimize=True))
    save("jpeg", "cmyk", image_bytes(smooth.convert("CMYK"), "JPEG", quality=30, optimize=True))
    save("jpeg", "progressive", image_bytes(smooth, "JPEG", quality=40, progressive=True))
    save("jpeg", "restarts", image_bytes(smooth, "JPEG", quality=40, optimize=True, restart_marker_blocks=2))
    for mode in ("RGB", "RGBA", "L", "LA", "P", "1"):
        save("png", mode.lower(), image_bytes(small.convert(mode), "PNG"))
    save("png", "gray16", image_bytes(Image.fromarray(rng.integers(0, 65536, (3, 4), dtype=np.uint16)), "PNG"))
    # Interlaced: seven passes of 1 bit, each row with its filter byte.
    rows = b"".join(b"\x00" + bytes([170]) for _ in range(9))
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    save("png", "interlaced", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 5, 5, 1, 0, 0, 0, 1)) +
         chunk(b"IDAT", zlib.compress(rows + rows)) + chunk(b"IEND", b""))
    save("webp", "lossless", image_bytes(small, "WEBP", lossless=True))
    save("webp", "lossy", image_bytes(smooth, "WEBP", quality=20))
    save("webp", "transparent", image_bytes(small.convert("RGBA"), "WEBP", quality=20))
    save("webp", "animated", image_bytes(small, "WEBP", save_all=True, append_images=[small.rotate(180)], lossless=True))
    save("gif", "still", image_bytes(small.convert("P", palette=Image.ADAPTIVE, colors=8), "GIF", interlace=0))
    save("gif", "interlaced", image_bytes(smooth.convert("P", palette=Image.ADAPTIVE, colors=4), "GIF", interlace=1))
    save("gif", "animated", image_bytes(small.convert("P", palette=Image.ADAPTIVE, colors=4), "GIF", save_all=True,
                                        append_images=[small.rotate(180)], transparency=1))
    for mode in ("RGB", "RGBA", "L", "1"):
        save("bmp", mode.lower(), image_bytes(small.convert(mode), "BMP") if mode != "L" else
             struct.pack("<2sIII", b"BM", 0, 0, 54 + 16) + struct.pack("<IiiHHIIiiII", 40, 3, 2, 1, 8, 0, 8, 0, 0, 4, 0) +
             bytes(range(16)) + bytes([0, 1, 2, 0, 3, 2, 1, 0]))
    palette = bytes(range(0, 64))
    runs = bytes([3, 1, 0, 0, 0, 3, 0, 1, 2, 0, 0, 2, 1, 0, 2, 2, 0, 1])
    for bits, kind in ((8, 1), (4, 2)):
        save("bmp", f"runs_of_{bits}", struct.pack("<2sIII", b"BM", 0, 0, 54 + 64) +
             struct.pack("<IiiHHIIiiII", 40, 4, 4, 1, bits, kind, len(runs), 0, 0, 16, 0) + palette + runs)
    save("bmp", "masks", struct.pack("<2sIII", b"BM", 0, 0, 66) +
         struct.pack("<IiiHHIIiiII", 40, 2, -1, 1, 16, 3, 4, 0, 0, 0, 0) + struct.pack("<3I", 0xF800, 0x7E0, 0x1F) + b"\x1f\xf8\x5b\x2a")
    save("bmp", "os2", struct.pack("<2sIII", b"BM", 0, 0, 32) + struct.pack("<IHHHH", 12, 3, 1, 1, 1) + bytes(range(6)) + b"\xa0\0\0\0")
    classes = Image.fromarray(rng.integers(0, 4, (4, 5), dtype=np.uint8))
    save("mask", "gray", image_bytes(classes, "PNG"))
    indices = classes.convert("P")
    save("mask", "palette", image_bytes(indices, "PNG"))
    save("mask", "bits", image_bytes(Image.fromarray((rng.integers(0, 2, (4, 9)) * 255).astype(np.uint8)).convert("1"), "PNG"))


def wav(tag, channels, bits, values, extensible=False):
    block = channels * bits // 8
    head = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, 8000, 8000 * block, block, bits)
    if extensible:
        head += struct.pack("<HHIH", 22, bits, 0, tag) + b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    chunks = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"LIST" + struct.pack("<I", 3) + b"abc\0"
    return b"RIFF" + struct.pack("<I", len(chunks) + 8 + len(values)) + chunks + b"data" + struct.pack("<I", len(values)) + values


def signals():
    save("wav", "bytes", wav(1, 1, 8, bytes(range(9))))
    save("wav", "int16", wav(1, 2, 16, bytes(range(16))))
    save("wav", "int24", wav(1, 1, 24, bytes(range(12)), extensible=True))
    save("wav", "float32", wav(3, 1, 32, struct.pack("<3f", 0.5, -1, 2)))
    save("wav", "float64", wav(3, 2, 64, struct.pack("<2d", 0.5, -1)))
    for path in (TEST / "golden/nifti").glob("*.nii*"):
        save("nifti", path.name, path.read_bytes())


def crc32c(data):
    rest = 0xFFFFFFFF
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (0x82F63B78 if rest & 1 else 0)
    rest ^= 0xFFFFFFFF
    return struct.pack("<I", ((rest >> 15 | rest << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def tf_record(data):
    length = struct.pack("<Q", len(data))
    return length + crc32c(length) + data + crc32c(data)


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def example(**features):
    return field(1, b"".join(field(1, field(1, name.replace("__", "/").encode()) + field(2, value)) for name, value in features.items()))


def ints(*values, packed=True):
    each = b"".join((b"" if packed else b"\x08") + varint(value) for value in values)
    return field(3, field(1, each) if packed else each)


def floats(*values, packed=True):
    each = b"".join((b"" if packed else b"\x0d") + struct.pack("<f", value) for value in values)
    return field(2, field(1, each) if packed else each)


def tar(members, format_):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=format_) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    # Of the empty blocks at the end, two are enough.
    return file.getvalue().rstrip(b"\0").ljust((len(file.getvalue().rstrip(b"\0")) + 511) // 512 * 512, b"\0") + bytes(1024)


def records():
    dot = image_bytes(Image.fromarray(np.full((2, 2, 3), 7, np.uint8)), "PNG")
    image = lambda label, **more: tf_record(example(image__encoded=field(1, field(1, dot)), image__class__label=ints(label), **more))
    save("tfrecord", "images", image(0) + image(1))
    save("tfrecord", "label_y", tf_record(example(image=field(1, field(1, dot)), y=floats(0.5))) * 2)
    numbers = example(x=floats(0.5, 2), n=ints(7, -5), y=ints(1))
    save("tf_example", "packed", numbers)
    save("tf_example", "alone", example(x=floats(0.5, 2, packed=False), n=ints(7, -5, packed=False), label=floats(1, 2)))
    save("tf_example", "other_fields", field(9, b"abc") + b"\x20\x05" + b"\x2d\0\0\0\0" + b"\x31" + bytes(8) + numbers)
    members = [("a.png", dot), ("a.cls", b"0"), ("b.png", dot), ("b.cls", b"1")]
    long_members = [("p" * 110 + "/a.png", dot), ("p" * 110 + "/a.cls", b"3")]
    for target in ("tar", "webdataset"):
        save(target, "ustar", tar(members, tarfile.USTAR_FORMAT))
        save(target, "gnu", tar(long_members, tarfile.GNU_FORMAT))
        save(target, "pax", tar(long_members, tarfile.PAX_FORMAT))
    save("csv", "numbers", "a,b,y\n1,2.5,0\n-3e2,4,1\n5,6,2\n7,8,1\n")
    save("csv", "words", "a,\"b \"\"c\"\"\",y\n1,2.5,cat\n-3e2,\"4\",dog\n5,6,cat\n")
    save("csv", "missing", "k,a,y\nu,1,0.5\nv,,1\nu,NA,2\n\"v\nw\",4,3\n")
    save("csv", "mark", "\ufeffk,a,y\r\nu,1,0\r\nv,2,1\r\n\r\n")
    save("csv", "without_header", "1,2,0\n3,4,1\n5,6,0\n")


def hdf5(fill):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "x.h5")
        with h5py.File(path, "w", libver="earliest", track_order=None) as file:
            fill(file)
        return path.read_bytes()


def weights():
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
              "b": {"dtype": "I64", "shape": [], "data_offsets": [16, 24]}, "c": {"dtype": "BF16", "shape": [0], "data_offsets": [24, 24]}}
    for name, value in (("three", header), ("none", {})):
        text = json.dumps(value).encode()
        text += b" " * (-len(text) % 8)
        save("safetensors", name, struct.pack("<Q", len(text)) + text + bytes(24 if value else 0))
    tensor = {"shape": [4, 2], "xxh3": "0123456789abcdef"}
    part = dict(tensor, extent={"offsets": [0, 0], "sizes": [2, 2]})
    manifest = {"format": "trainctl checkpoint", "format_version": 3, "sequence": 2, "step": 40,
                "position": {"seed": 1, "epoch": 2, "offset": 96}, "mesh": [2, 1, 1],
                "metrics": {"loss": 0.25, "val_loss": "NaN"}, "facts": {}, "best": {"monitor": "val_loss", "mode": "min", "value": 0.5, "step": 30},
                "files": {"weights.safetensors": {"bytes": 128, "sha256": "0" * 64, "tensors": {"dense/kernel": tensor}}}}
    save("manifest", "whole", json.dumps(manifest, indent=2)[:-2])
    parts = {f"weights-0000{i}-of-00002.safetensors": {"bytes": 64, "sha256": "1" * 64, "tensors": {"dense/kernel": part}} for i in (1, 2)}
    save("manifest", "parts", json.dumps(dict(manifest, files=parts, best=None), indent=2)[:-2])
    save("manifest", "first_version", json.dumps(dict(manifest, format_version=1, weights_sha256="2" * 64), indent=2)[:-2])

    def small(file):
        file.attrs["layer_names"] = np.array([b"dense"])
        group = file.create_group("dense")
        group.attrs["weight_names"] = np.array([b"dense/kernel:0", b"dense/bias:0"])
        group["kernel"], group["bias"] = np.ones((2, 3), np.float32), np.zeros(3, np.float16)

    def texts(file):
        file.attrs["backend"] = "tensorflow"
        file.attrs["keras_version"] = "2.15.0"
        file["scalar"] = np.float64(3)

    def many(file):
        for i in range(9):
            file[f"v{i}"] = np.float32([i])

    def not_ascii(file):
        file["caf\u00e9"] = np.float32([1, 2])

    for fill in (small, texts, many, not_ascii):
        save("hdf5", fill.__name__, hdf5(fill))
    for path in (TEST / "golden/hugging_face").glob("*/config.json"):
        save("hugging_face_config", path.parent.name, path.read_bytes())
    save("hugging_face_index", "two", json.dumps({"metadata": {"total_size": 8}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}))
    save("hugging_face_index", "one", json.dumps({"weight_map": {"a": "1.safetensors"}}))
    save("hugging_face_index", "missing", json.dumps({"weight_map": {"a": "3.safetensors"}}))


def tokenizer(model, **parts):
    added = [{"id": 0, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": True, "normalized": False, "special": True}]
    return json.dumps({"version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                       "decoder": None, **parts, "model": model}, ensure_ascii=False)


def tokenizers():
    letters = {"<s>": 0} | {letter: i + 1 for i, letter in enumerate("Aabcdefgilnrstuh\u0120\u010a'123")}
    bpe = {"type": "BPE", "unk_token": None, "vocab": letters | {"tr": 30, "tru": 31, "in": 32}, "merges": ["t r", ["tr", "u"], "i n"]}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    save("tokenizer_json", "byte_level", tokenizer(bpe, pre_tokenizer=level, decoder=level))
    pattern = {"type": "Split", "pattern": {"Regex": "\\p{N}{1,2}|[A-Z][a-z]*|(?i:'s)|\\s+(?!\\S)|\\s+$"}, "behavior": "Isolated", "invert": False}
    save("tokenizer_json", "regex", tokenizer(bpe, pre_tokenizer={"type": "Sequence", "pretokenizers": [pattern, dict(level, use_regex=False)]},
                                              normalizer={"type": "NFKC"}, decoder=level))
    words = {"[UNK]": 0, "truth": 1, "a": 2, "##s": 3, "s": 4, "123": 5, "[CLS]": 6}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [6], "tokens": ["[CLS]"]}}}
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    save("tokenizer_json", "word_piece", tokenizer(
        {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": words},
        normalizer=bert, pre_tokenizer={"type": "BertPreTokenizer"}, post_processor=template, decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}))
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    pieces = [["<s>", 0.0], ["<unk>", 0.0], ["\u2581", -2.5], ["tr", -3.0], ["uth", -3.5], ["a", -2.0], ["\u2581s", -4.0]]
    save("tokenizer_json", "unigram", tokenizer(
        {"type": "Unigram", "unk_id": 1, "vocab": pieces, "byte_fallback": False}, pre_tokenizer=space, decoder=space,
        normalizer={"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]}))
    steps = [{"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}, {"type": "Punctuation", "behavior": "Contiguous"}]
    save("tokenizer_json", "words", tokenizer(
        {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}, pre_tokenizer={"type": "Sequence", "pretokenizers": steps},
        normalizer={"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "NFD"},
                                                        {"type": "StripAccents"}, {"type": "Lowercase"}]}))
    fallback = {"<unk>": 0, "<s>": 1} | {f"<0x{i:02X}>": i + 3 for i in (0x0A, 0x20, 0xC3, 0xA9)} | {"\u2581": 300, "a": 301, "\u2581a": 302}
    save("tokenizer_json", "fallback", tokenizer(
        {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "vocab": fallback, "merges": ["\u2581 a"]},
        normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                                                        {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        decoder={"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
                                                  {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}))
    whole = (TEST / "golden/tokenizers/small.tiktoken").read_text().splitlines(keepends=True)
    save("tiktoken", "bytes", "".join(whole[:256]))
    save("tiktoken", "few", "".join(whole[:4]))
    save("sentencepiece", "unigram", (TEST / "golden/tokenizers/sp_unigram.model").read_bytes())
    save("sentencepiece", "bpe", (TEST / "golden/tokenizers/sp_bpe.model").read_bytes())


SMALL_CONFIG = """name: test
data: {dataset: synthetic, shape: [8, 8, 1], classes: 10}
model:
  layers:
    - flatten
    - dense: {units: 10, activation: softmax}
train: {batch_size: 32, epochs: 2, loss: sparse_categorical_crossentropy, metrics: [accuracy], optimizer: {name: sgd, learning_rate: 0.1}}
"""


def configs():
    save("config", "small", SMALL_CONFIG)
    save("config", "rich", (TEST / "fuzz/rich.yaml").read_text())
    save("config", "aliases", """data: &d {dataset: synthetic, shape: [4], classes: 3}
model: {layers: [&one {dense: {units: 3}}, *one, {repeat: {times: 2, layers: [*one]}}]}
train: {batch_size: 2, epochs: "${EPOCHS}", loss: sparse_categorical_crossentropy, optimizer: adam}
checkpoint: {every: 1 epoch}
resolved: *d
""")
    save("config", "preset", """data: {dataset: synthetic, shape: [4], classes: 10}
model: {preset: small, with: {width: 3}}
train: {batch_size: 1/2, max_time: 1 h, epochs: none, loss: sparse_categorical_crossentropy, optimizer: sgd}
""")
    save("config", "expressions", """data: {dataset: synthetic, shape: [6, 6, 3], classes: 4}
model:
  inputs: {a: {shape: [6, 6, 3]}}
  layers:
    - conv2d: {name: c, from: a, filters: 2, kernel_size: 3}
    - lambda: {expression: "x * sigmoid(x) + 2", from: c}
    - global_average_pooling2d
    - dense: {name: out, units: 4, activation: softmax}
  outputs: [out]
train:
  batch_size: 8
  epochs: 1
  loss: {out: {name: categorical_crossentropy, label_smoothing: 0.1}}
  optimizer: {name: adamw, learning_rate: 1e-3}
  schedule: {name: cosine, warmup: 10%}
cluster: {ranks: 2, hosts: "a:2,b"}
strategy: {shard: parameters}
log: {every: 10 steps, prometheus: 9464}
""")
    for i, text in enumerate([
            "einsum('bij,bkj->bik', x, y) @ einsum('...ij->...ij', x)", "where(x > 0.5, tanh(x) * w[0], y ** 2) // (1 + softplus(y)) % 3",
            "sum(x, axis=(1, 2), keepdims=True) + max(y, axis=-1)[:, :, None] - mean(w)",
            "concatenate([x[:, 1:3], stack([x, y], axis=1)[:, 0, ...]], axis=1)",
            "pad(x, ((0, 0), (1, 2), (0, 3)), mode='constant', constant_values=0.5)[:, :3, -4:] * y",
            "split(x, [1, 2], axis=-1)[1] + split(y, 2, axis=2)[0][..., :1]",
            "mean(x, 1, True) + exp(0.5 * y) * keras.random.normal(shape(y), stddev=2)",
            "random_uniform((shape(x)[0], 3, 4), minval=-1) + roll(x, -2, axis=1) * tile(repeat(x, 2, axis=1), (1, 1, 1))[:, :3]",
            "reshape(transpose(swapaxes(moveaxis(x, 1, -1), 1, 2), (0, 2, 1)), (-1, 12))[:, :4] * w[None, 2]",
            "gelu(x, approximate=False) + clip(x, -1, 1) * squeeze(expand_dims(y, 1), 1) & ~isnan(x) | (x == y)"]):
        save("expression", str(i), text)


def launch():
    cluster = {"cluster": {"chief": ["h0:2222"], "worker": ["h1:2222", "h1:2223"]}, "task": {"type": "worker", "index": 1}}
    save("tf_config", "workers", json.dumps(cluster))
    save("tf_config", "index_as_text", json.dumps({"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": "0"}}))
    save("tf_config", "servers", json.dumps({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type": "ps", "index": 0}}))
    save("tf_config", "none", json.dumps({"cluster": {}, "task": {}}))
    save("slurm", "job", "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[1-2,08]\nSLURM_TASKS_PER_NODE=2(x2),1\nSLURM_NNODES=3\nSLURM_NTASKS=5\n")
    save("slurm", "rank", "SLURM_PROCID=1\nSLURM_NTASKS=2\nSLURM_LOCALID=1\nPMI_RANK=1\nPMI_SIZE=2\nPMIX_RANK=1\nSLURM_JOB_ID=7\n"
         "OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=2\nOMPI_COMM_WORLD_LOCAL_RANK=1\nRANK=1\nWORLD_SIZE=2\nTRAINCTL_STATUS_FILE=/x/y\n"
         "TRAINCTL_RESTART={\"attempt\":1}\n")
    save("slurm", "state", "JobId=7 JobName=a JobState=FAILED Reason=NonZeroExitCode Requeue=1 Restarts=2 ExitCode=75:0\n")
    save("slurm_names", "ranges", "n[1-2,08],login,gpu[001-010]")
    save("slurm_names", "plain", "a,b-c.d")
    save("slurm_counts", "repeated", "2(x3),1")
    save("slurm_counts", "plain", "4")
    save("hosts", "counts", "node1:8, user@node2:8,node1")
    save("hosts", "plain", "localhost")
    save("hostfile", "keys", "# hosts\nnode1 slots=8 max-slots = 9\nnode2 username=ada\n\nnode1\n")
    save("hostfile", "mark", "\ufeffa\r\nb cpus=2 # two\r\n")
    greeting = b"trainctl agent 3\n"
    save("agent_handshake", "proof", greeting + bytes(range(32)) + bytes(range(32)))
    save("agent_handshake", "refusal", greeting + bytes(32) + b"your proof is not of my secret.\n")
    save("agent_messages", "command", bytes([5]) + b"echox" + b"x" + struct.pack(">I", 4) + b"true" + bytes(32))
    save("agent_messages", "whole", bytes([5]) + b"echo")
    save("agent_messages", "empty", bytes([0]) + b"l" + struct.pack(">I", 0) + bytes(32))
    save("http", "get", "GET /metrics HTTP/1.1\r\nHost: a:9464\r\nAccept: text/plain;q=0.5\r\n\r\n")
    save("http", "range", "GET /metrics HTTP/1.1\r\nRange: bytes=0-1,2-3\r\nAccept-Encoding: gzip\r\n\r\n")
    save("http", "post", "POST /metrics?a=b%20c HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc")
    save("http", "head", "HEAD / HTTP/1.1\r\nConnection: Keep-Alive\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n")


def texts():
    save("json_lines", "texts", '{"text": "a\\u00e9 b", "n": 1}\n\n{"text": ""}\n{"other": [1, {"x": null}], "text": "c"}')
    save("json_lines", "classes", '{"text": "a b", "label": "good"}\n{"text": "c", "label": 3}\n{"text": "d", "label": true}\n')
    save("text_table", "texts", 'n,text\n1,"a, ""b""\nc"\n2,d\n')
    save("text_table", "classes", "text,label\na b,good\nc,bad\n\nd,good\n ")

    def index(kind, sizes, marks, size, version=1):
        pointers = [size * sum(sizes[:i]) for i in range(len(sizes))]
        return (b"MMIDIDX\0\0" + struct.pack("<QBqq", version, kind, len(sizes), len(marks)) + struct.pack(f"<{len(sizes)}i", *sizes) +
                struct.pack(f"<{len(pointers)}q", *pointers) + struct.pack(f"<{len(marks)}q", *marks))
    save("megatron", "uint16", bytes([14]) + index(8, [3, 0, 4], [0, 1, 2, 3], 2))
    save("megatron", "int32", bytes([20]) + index(4, [2, 3], [0, 2], 4))
    save("megatron", "bytes", bytes([5]) + index(1, [5], [0, 1], 1))


def flight(lines, rank=1, ranks=4):
    """A flight record (core/base/flight_layout.h). A line: thread, name, group, capacity, number of entered events, events."""
    table, rings, offset = b"", b"", 2176
    for thread, name, group, capacity, entered, events in lines:
        table += struct.pack("<IIQ32s3iI", thread, capacity, offset + len(rings), name, *group, 0)
        ring = struct.pack("<QQ", entered, sum(event[4] > 0 for event in events)).ljust(64, b"\0")
        for begin, end, step, activity, message, peer, text in events:
            ring += struct.pack("<2qqIiIi96s", begin, end, step, activity, 7, message, peer, text)
        ring = ring.ljust(64 + capacity * 136, b"\0")
        rings += ring.ljust(-(-len(ring) // 64) * 64, b"\0")
    head = struct.pack("<8sI3iq64sII", b"TCFLIGHT", 1, rank, ranks, 4321, 10**18, b"node1", len(lines), 0)
    return (head + table).ljust(2176, b"\0") + rings


def elf(functions):
    """A shared library of 64 bits with these functions: a name, an address and a size."""
    names, symbols = b"\0", bytes(24)
    for name, address, size in functions:
        symbols += struct.pack("<IBBHQQ", len(names), 2, 0, 1, address, size)
        names += name + b"\0"
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 4096, 4096, 4096, 4096, 4096)
    at = 64 + len(segment)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at, len(symbols), 2, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at + len(symbols), len(names), 0, 0, 1, 0)
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, at + len(symbols) + len(names), 0, 64, 56, 1, 64, 3, 0)
    return head + segment + symbols + names + sections


def supervision():
    save("flight_record", "training", flight([
        (0, b"training", (0, 0, 0), 3, 5, [(10, 20, 6, 3, 0, -1, b"conv1"), (20, 0, 6, 4, 0, -1, b"the last collectives"), (5, 10, 5, 2, 0, -1, b"")]),
        (2, b"data", (0, 2, 2), 2, 1, [(12, 0, 6, 4, 0, -1, b"all_reduce of bucket 3 (conv5 ... fc1)")])]))
    save("flight_record", "messages", flight([
        (0, b"training", (0, 0, 0), 1, 1, [(10, 0, 3, 1, 0, -1, b"")]), (1, b"worker 2", (0, 0, 0), 1, 1, [(11, 0, -1, 1, 0, -1, b"img.jpg")]),
        (2, b"pipeline", (0, 1, 4), 2, 2, [(1, 2, 3, 4, 1, 2, b"send of 'x'"), (3, 0, 3, 4, 2, 0, b"receive of 'y'")])]))
    save("flight_record", "found_ranks_out_of_range", flight([(2, b"data", (2**31 - 1, 2**31 - 1, 3), 1, 1, [(1, 0, 1, 4, 0, -1, b"")])]))
    save("flight_record", "found_largest_values", flight([
        (0, b"training", (0, 0, 0), 2, 2**64 - 1, [(-2**63, 0, -2**63, 3, 0, -1, b""), (2**63 - 1, 2**63 - 1, 2**63 - 1, 9, 0, -1, b"")]),
        (2, b"data", (0, 1, 2), 1, 2**64 - 1, [(-2**63, 2**63 - 1, 2**63 - 1, 4, 1, 2**31 - 1, b"")])]))
    view = {"rank": 2, "process": 77, "training": 4, "waits": True, "in_message": True, "activity": 4, "text": "bucket 3", "step": 812,
            "ms": 14000, "progress": 99, "step_us": 1500}
    thread = {"name": "trainctl", "state": "S", "call": "read", "kernel": "pipe_read", "functions": ["read", "main"]}
    place = {"rank": 2, "exists": True, "stopped": False, "in_debugger": False, "threads": [thread]}
    news = [{"kind": "hello", "version": 1}, {"kind": "ranks", "ranks": [view, dict(view, rank=0)]},
            {"kind": "places", "places": [place], "last": True}, {"kind": "file", "name": "rank-00002", "bytes": "00ff"}, {"kind": "files"}]
    save("watch_messages", "news", "Welcome to node1\n" + "".join("mark " + json.dumps(each) + "\n" for each in news))
    save("watch_messages", "requests", "".join(json.dumps({"kind": kind}) + "\n" for kind in ("alive", "pause", "places", "files", "end")))
    save("rank_status", "failed", '5 1 n2 120 silent\n[{"file": "c.yaml", "line": 3, "message": "no"}]\nno answer from rank 1')
    save("rank_status", "numbers", "4 17 256\n")
    save("rank_status", "notes", "a line\n\x1etrainctl-note .step 120\n\x1etrainctl-note .end 5 1 n2 - told\nb\x1etrainctl-note .ready 7 8 \n")
    save("resize_request", "ranks", "4\n")
    save("resize_request", "many", "99999999999999999999")
    save("resize_request", "negative", "-3\n")
    save("lock", "holder", "process 123 on node-1\nlaunch node-1-77-1790000000 generation 3 restarts\n")
    save("lock", "alone", "process 1 on a\n")
    save("elf", "functions", elf([(b"main", 4096, 32), (b"_ZN8trainctl5trainERKNS_7RunSpecE", 4200, 100)]))
    save("elf", "none", elf([]))
    save("faults", "all", """  - kill: {rank: 1, step: 120}
  - hang: {rank: 0, step: 3, for: 2 s}
  - slow: {rank: 2, step: 5, steps: 10, delay: 100 ms}
  - nan: {rank: 0, step: 7}
  - corrupt: {rank: 1, step: 9}
  - torn_checkpoint: {step: 20}
  - full_disk: {step: 30, saves: 2}
  - cut_link: {host: h2, interface: eth0, step: 40, for: 1 min}
  - lose_host: {host: h3, step: 50}
""")
    save("faults", "list", "  [{full_disk: {step: 1, for: 1 h}}, {kill: {rank: 0, step: 1}}]\n")
    save("faults", "none", "  []\n")
    start = {"event": "start", "time": 1.5, "version": "0.1.0", "seed": 1, "ranks": 2, "mesh": [2, 1, 1], "hosts": ["a", "b"], "device": "cpu",
             "parameters": 10, "resumed_from": None, "steps_per_epoch": 4, "total_steps": 8, "first_step": 0, "monitor": "val_accuracy",
             "monitor_mode": "max"}
    steps = [{"event": "step", "time": 2, "step": i, "epoch": i / 4, "loss": 1 / i, "learning_rate": 0.1, "samples_per_second": 5,
              "gradient_norm": None, "data_wait_share": 0.1} for i in (1, 4)]
    epoch = {"event": "epoch", "time": 3, "epoch": 1, "step": 4, "train": {"loss": 0.5}, "validation": {"accuracy": 0.25}, "seconds": 1}
    save("metrics_jsonl", "run", "".join(json.dumps(each) + "\n" for each in (
        start, *steps, epoch, {"event": "checkpoint", "time": 3.5, "step": 4, "path": "x", "seconds": 0.1, "bytes": 7, "stall_seconds": 0},
        {"event": "not_finite", "time": 4, "step": 5, "action": "rollback", "to_step": 4},
        {"event": "refused_resize", "time": 4, "step": 5, "ranks": 3, "reason": "no"},
        {"event": "end", "time": 5, "status": "completed", "step": 8, "epoch": 2, "best": {"monitor": "val_accuracy", "value": 0.5, "step": 8},
         "weights_sha256": "0" * 64, "seconds": 2, "train": {}, "validation": {}})))
    save("metrics_jsonl", "began", json.dumps(start) + "\n" + json.dumps(steps[0])[:30])


for make in (arrays, images, signals, records, weights, tokenizers, configs, texts, launch, supervision):
    make()
sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
print(f"{len(sizes)} files, {sum(sizes)} bytes")
