#!/usr/bin/env python3
"""Makes test/golden/tokenizers: small tokenizer files, and the ids that tokenizers, tiktoken and sentencepiece give texts.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 tiktoken==0.14.0 sentencepiece==0.2.3 regex
    venv/bin/python test/golden/make_tokenizers.py

pieces.json has the pieces of each pattern. cases.json has a list of {"file", "text", "ids", "decoded"}, and for byte-level vocabularies also the ids with special tokens. The
texts are mixed Unicode and sentences (scripts/bench/tokenizer_texts.py); the vocabularies are trained on them.
"""
import base64
import json
import pathlib
import sys

import regex
import sentencepiece
import tiktoken
import tiktoken_ext.openai_public as public
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/bench"))
import tokenizer_texts as texts

folder = pathlib.Path(__file__).parent / "tokenizers"
folder.mkdir(exist_ok=True)
ENGLISH = """It's a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.
However little known the feelings or views of such a man may be on his first entering a neighbourhood, this truth is so well
fixed in the minds of the surrounding families, that he is considered the rightful property of some one or other of their daughters.

    for (int i = 0; i < 12345; ++i) { sum += a[i] * 0x1F; }  // I'LL, we'Ve, THEY'RE, don't, x'\u017f
\t\tNA\u00cfVE caf\u00e9 cafe\u0301 \u1e9e \u0130stanbul \ufb01ne \u2460\u00bd \u4f60\u597d\uff0c\u4e16\u754c \uc548\ub155 \u0928\u092e\u0938\u094d\u0924\u0947   \n   \r\n\r\n end  """
MIXED = texts.mixed_unicode(2500)
# Whitespace and lines at the ends of texts, where patterns look ahead.
EDGES = ["", " ", "  ", "a ", "a  ", "a\n", "a\n  ", "a \n\n b", "\n", "\r\n \r\n", "  a", " \t a", "'s", "'", "''", "don't", "1234 5", "<s>x</s>",
         "a <s> b", "\u00a0\u00a0a", "A\u0301b", "\u0301", ".\u0301x", "HTTPServer's", "a'LLb", "x" * 130, " " * 130 + "x", "//\n/", "[UNK]"]
CORPUS = ENGLISH.splitlines() * 4 + MIXED.splitlines()


def train(name, tokenizer, trainer, corpus=CORPUS):
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.save(str(folder / f"{name}.json"), pretty=False)
    return tokenizer


def byte_level(name, steps, normalizer=None, size=600, special=("<s>", "</s>")):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = steps, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return train(name, tokenizer, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), initial_alphabet=alphabet,
                                                      show_progress=False))


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def made():
    yield byte_level("gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False)), "gpt2"
    yield byte_level("prefix_space", pre_tokenizers.ByteLevel(add_prefix_space=True), normalizers.NFKC()), "prefix_space"
    for name in ("llama3", "qwen2", "o200k"):
        yield byte_level(name, split(texts.PATTERNS[name]), normalizers.NFC() if name == "qwen2" else None), name
    yield byte_level("regex", split(r"\p{N}{1,2}|[A-Z][a-z]*|\p{Han}|\s+$")), "regex"

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    train("bert", tokenizer, trainers.WordPieceTrainer(vocab_size=500, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"],
                                                       show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(folder / "bert.json"), pretty=False)
    yield tokenizer, "bert"

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    yield train("unigram", tokenizer, trainers.UnigramTrainer(vocab_size=220, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>",
                                                              show_progress=False), ENGLISH.splitlines()), "unigram"

    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    yield train("fallback", tokenizer, trainers.BpeTrainer(vocab_size=700, special_tokens=special, limit_alphabet=60,
                                                           show_progress=False)), "fallback"

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.Punctuation("contiguous")])
    train("words", tokenizer, trainers.WordLevelTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False))
    tokenizer.add_tokens([AddedToken("sing", single_word=True, normalized=True), AddedToken("<m>", lstrip=True, rstrip=True)])
    tokenizer.save(str(folder / "words.json"), pretty=False)
    yield tokenizer, "words"


def train_from_file():
    """Writes corpus.txt and the vocabularies that a trainer makes of it."""
    corpus = folder / "corpus.txt"
    corpus.write_text("".join(line + "\n" for line in CORPUS) + "no line feed at the end", newline="")
    for name, steps, frequency in (("gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False), 0), ("o200k", split(texts.PATTERNS["o200k"]), 3)):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = steps
        tokenizer.train([str(corpus)], trainers.BpeTrainer(
            vocab_size=700, min_frequency=frequency, special_tokens=["<|endoftext|>", "<pad>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
        tokenizer.save(str(folder / f"trained_{name}.json"), pretty=False)


def sentence_pieces():
    """Models of SentencePiece without its table of normalization, which would be most of a small model."""
    for name, kind, fallback in (("sp_unigram", "unigram", False), ("sp_bpe", "bpe", True)):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(ENGLISH.splitlines()), model_prefix=str(folder / name), vocab_size=420 if fallback else 125, model_type=kind,
            byte_fallback=fallback, normalization_rule_name="identity", character_coverage=0.98, minloglevel=2,
            user_defined_symbols=["<sep>"], remove_extra_whitespaces=not fallback)
        (folder / f"{name}.vocab").unlink()
        yield name, sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.model"))


def pieces():
    """The pieces into which each pattern splits the texts: the small vocabularies have no tokens across most of their ends."""
    gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    patterns = {"gpt2": gpt2, **texts.PATTERNS}
    for text in [ENGLISH, MIXED, *EDGES]:
        split = {name: pre_tokenizers.Split(Regex(pattern), "isolated").pre_tokenize_str(text) for name, pattern in patterns.items()}
        row = {name: [piece for piece, _ in parts] for name, parts in split.items()}
        row["cl100k"] = regex.findall(public.cl100k_base()["pat_str"], text)
        yield {"text": text, "pieces": row}


def main():
    train_from_file()
    public.load_tiktoken_bpe = lambda *_, **__: {}
    (folder / "pieces.json").write_text(json.dumps(list(pieces()), separators=(",", ":")) + "\n")
    cases = []
    for name, processor in sentence_pieces():
        for text in [ENGLISH, MIXED, *EDGES, "a<sep>b <s>"]:
            ids = processor.encode(text)
            cases.append({"file": f"{name}.model", "text": text, "ids": ids, "decoded": processor.decode(ids)})
    more = [" sing singing <m> sing<m>x  <m>  "]
    for tokenizer, name in made():
        for text in [ENGLISH, MIXED, *EDGES, *more]:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append({"file": f"{name}.json", "text": text, "ids": ids})
            if name in ("bert", "unigram", "fallback"):
                cases[-1]["decoded"] = tokenizer.decode(ids, skip_special_tokens=False)

    # A rank file of the merges of the first vocabulary.
    characters = {character: byte for byte, character in texts.byte_characters().items()}
    model = json.loads((folder / "gpt2.json").read_text())["model"]
    tokens = [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])][2:]
    ranks = {bytes(characters[c] for c in token): rank for rank, token in enumerate(tokens)}
    (folder / "small.tiktoken").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    for name in ("gpt2", "cl100k_base", "o200k_base"):
        public.load_tiktoken_bpe = public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: ranks
        settings = public.ENCODING_CONSTRUCTORS[name]()
        settings.pop("explicit_n_vocab", None)
        encoding = tiktoken.Encoding(**settings)
        for text in [ENGLISH, MIXED, *EDGES, "a<|endoftext|>b"]:
            cases.append({"file": "small.tiktoken", "encoding": name, "text": text, "ids": encoding.encode_ordinary(text),
                          "special": encoding.encode(text, allowed_special="all")})
    (folder / "cases.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
