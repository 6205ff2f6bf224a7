#!/usr/bin/env python3
"""Makes test/golden/tokenizers/steps.json: what tokenizers makes of texts by steps with regular expressions, by byte-level vocabularies that lack bytes,
by the decoder Metaspace, by Metaspace at the beginning of a text, and by the options of SentencePiece's models.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python test/golden/make_regexes.py
"""
import json
import pathlib
import random

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

random.seed(64)
EXPRESSIONS = [
    r"\h+", r"[\H]", r"[^\h\s]+", r"\w", r"\w+|[^\w\s]+", r"[\W_]", r"[^\W_]+", r"\b", r"\B", r"\bb?", r"x*", r"(?=\p{Lu})",
    r"(?<=\d)(?=(\d{3})+\b)", r"^", r"$", r"\s", r"[^\S\r\n]", r"\v", r"(?m:.)b", r"a{,2}", r"a{2}+", r"a{1,2}+", r"a{2}?", r"(?:a|b){1,2}+c?",
    r"\p{Han}", r"[\p{Han}\p{Katakana}]+", r"\p{Arabic}+", r"\p{^L}", r"\p{Lowercase_Letter}", r"\p{letter}+", r"\p{Punct}", r"[[:punct:]]",
    r"[[:alpha:]]+", r"[[:^alpha:]]+", r"[[:word:]]", r"[[:graph:]]+", r"[a-z&&[^aeiou]]+", r"[^a-z&&[^aeiou]]", r"[\p{L}&&[^\p{Han}]]+", r"[a[bc]d]+",
    r"[]a]", r"[^]a]+", r"[a&&]", r"\u0041|[\u4e00-\u4e10]", r"\xe4\xb8\x80", r"\Qa", r"a(?i)b|c", r"(x(?i)y|z)w", r"x{2", r"(?x) a b # c",
    r"(?<n>a)(b)\k<n>", r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'ll)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+", r"(?i:'s|'t|'ll)| ?\p{L}+| ?\p{N}{1,3}+|\s+(?!\S)|\s+",
]
# Classes in which a character's place decides its meaning, the option x, bytes, and quantifiers of quantifiers.
PLACES = [
    r"[\W^a]+", r"[[b]^a]+", r"[a-z&&^aeiou]+", r"[\W:;:]+", r"[a[b]-z]+", r"[[a-c]-e-g]+", r"[a-c-e]+", r"[a-c--e]+", r"[a-&&a]+", r"[-&&-a]+",
    r"[a-c[b]-]+", r"[^^a]+", r"[\[-a]+", r"[\p{L}-]+", r"[a\]-z]+", r"[\x41-\x43b]+", r"[\101-\103b]+", r"[[:a]]+", r"[\Rk]", r"[a\&&b]+", r"[^[^a]&&[^b]]",
    r"[^[^a]]+", r"[[^\n-z]]+", r"[^\S\r\n]+", r"[\S&&\W]+", r"[^(\s|[.,!?…。，、।۔،])]+", r"[\P{L}\D]+", r"[[:^space:]a]+", r"[\H\d]+", r"[^\Hb]+",
    r"(?x: a b )(?i)c", r"(?-x)a", r"(?-x)a b", "(?x) a # [note\n b", "((?x) a # note)\n b)c", r"((?x)a b)(\^) c?", r"(?x)a(?-x) 1|(?x)a 1", r"(?x) [ a]+", r"(?x)a +",
    r"(?x)a{1} +", r"(?x)(a)\1 1", r"(?x: (?i) A b | C )d?", r"(?mx-i: a . b )", r"(?i-i)A", "(?x)a\x0b?b", r"a(?#note)+",
    r"[\x80-\xff]", r"[\xa0\s]+", r"[\x00-\xff]+", r"[^\x80-\xff]+", r"[a-\xff]+", r"[\xc3\xa9a]+", r"[\xc3\xa9-\xc3\xbf]+", r"\xff+a", r"(?:\xff|a)+", r"\xc3\xa9+",
    r"\x{e9}+", r"[\x{e9}z]+", r"a{2}*", r"\p{L}{2}{3}", r"a**", r"a{3,1}", r"a{3,1}+", r"a{3,1}?", r"a{,2}{2}", r"a+*", r"a?{2}", r"a+{2}", r"a{2}??",
    r"(?:ab?){1,2}*", r"\x{61}{2}{2}", r"[[^#][^b]\W]+?c{2}", r"(?:\w** ?)c{3}", r"\w+*#", r"(?i)[\p{Lu}\d]+", r"(?i:[^\p{Ll}])b?",
    r"(?i)[\P{Lu}]+", r"(?i)\p{Lu}", r"(?i)[[:upper:]]+(?-i:[\p{Lu}])?", r"((?i)a)[\p{Ll}]+",
]
# Runs of a text, and expressions that match them at once.
LONG = [(r"[^\S\r\n]+", " "), (r" ?[^(\s|[.,!?…。，、।۔،])]+", "ab"), (r"[^\W_]+", "xé"), (r"[\p{L}&&[^aeiou]]+", "bc"), (r"(?:a|b)+", "ab"), (r"\H+", "xy")]
TEXTS = [
    "ab^c-d:e;f 1AR zk&&o\x7f\x80 \xff\xe9z&- a1a2 [a] \xa0ab c aaaaaaa", "aa1 aAbC a b abcdefghijkl a.b a\nb A\x0bb a\x0bb ababab",
    "a\nb", "aaaa aaaaa", "Qa ab ABC", "a_b c e\u0301 \u00b2\u00bd x\u00b2_\u00e9", "hello, [a-bcz] ]ab", "\u4e00\u4e8c\u306e\u3001\u30ab\u30bf\u30ab\u30ca\u30fc \u6f22\u5b57",
    "aB aC C ab c xyw XZW zw", "ab1 [:^", "aba x{2 a**", "ab\ncd\n", "\x01 \x0b\u180e\u2028\u0085 x", "ag5-1234567 89", "\u0627\u0644\u0639\u060c \u0661\u0662",
    "don't 123 4567 l'LL $+<", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0e44\u0e17\u0e22", "A\u200dB\u200c 1_2", "\U0001f44d\U0001f3fd \U0001d7d8",
]
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


def splits():
    for expression in EXPRESSIONS:
        for behavior, inverted in [("isolated", False)] + random.sample([(b, i) for b in BEHAVIORS for i in (False, True)], 2):
            step = pre_tokenizers.Split(Regex(expression), behavior, inverted)
            yield {"split": expression, "behavior": behavior.title().replace("_", ""), "invert": inverted,
                   "pieces": [[piece for piece, _ in step.pre_tokenize_str(text)] for text in TEXTS]}


    for expression in PLACES:
        step = pre_tokenizers.Split(Regex(expression), "isolated")
        yield {"split": expression, "behavior": "Isolated", "invert": False, "pieces": [[piece for piece, _ in step.pre_tokenize_str(text)] for text in TEXTS]}


def runs():
    for expression, text in LONG:
        step = pre_tokenizers.Split(Regex(expression), "isolated")
        yield {"run": expression, "text": text, "times": 100000, "lengths": [len(piece.encode()) for piece, _ in step.pre_tokenize_str("1" + text * 100000 + "\n")]}


def replacements():
    for expression in (r"\b", r"x*", r"^", r"$", r"(?=a)", r"\h", r"\w", r"\p{Han}", r"[a-z&&[^aeiou]]"):
        step = normalizers.Replace(Regex(expression), "-")
        yield {"replace": expression, "replaced": [step.normalize_str(text) for text in TEXTS]}


def encodings(tokenizer, texts):
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        yield {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}


def vocabularies():
    """Bytes without tokens: unknown tokens that are fused or not, and tokens of the bytes of the characters that stand for bytes."""
    for fused in (False, True):
        for fallback in (False, True):
            tokens = ["<unk>", "a", "b", "\u0120", "ab", "\u0120a"] + [f"<0x{byte:02X}>" for byte in range(256) if byte != 0x65] * fallback
            tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=[("a", "b"), ("\u0120", "a")], unk_token="<unk>",
                                             fuse_unk=fused, byte_fallback=fallback))
            tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
            tokenizer.decoder = decoders.ByteLevel()
            yield tokenizer, ["ab cd", "xyz a ab", "\u00e9\u00e9 a", "eab\n\nb", " a b e"]
    # The white space that an added token takes may hold further ones.
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, "b": 2}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_tokens([AddedToken("<m>", lstrip=True, rstrip=True), AddedToken("\n\n", rstrip=True, normalized=False),
                          AddedToken("\t", lstrip=True, normalized=False)])
    yield tokenizer, ["a\n\n\n\n  b", "a <m>\n\n b", "a <m> \t b", "a \t\t <m> <m> b", "<m>\n\n\n\t<m>"]
    for strip in ({"rstrip": True}, {"lstrip": True}, {"lstrip": True, "rstrip": True}):
        tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "a": 1, "b": 2}, "<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.add_tokens([AddedToken("\n", normalized=False, **strip)])
        yield tokenizer, ["\n\n\n", "a\n \n\nb", " \n\n", "\n" * 1000, "a \n\u3000\n b\n"]
    # The decoder leaves out the texts of spaces in the first token only, and no spaces.
    tokens = ["<unk>", "\u2581", "\u2581\u2581", "a", "\u2581a", " ", "\u2581\u2581a\u2581"]
    for scheme in ("always", "first", "never"):
        tokenizer = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, "<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split("|", "removed")
        tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
        yield tokenizer, ["\u2581\u2581|a", " |a", "\u2581\u2581a\u2581|\u2581a", "a|\u2581\u2581|\u2581a", "\u2581a|\u2581a"]


def beginnings():
    """Metaspace marks the piece that begins where the text begins, before normalizers: the first character may have been removed or replaced."""
    replace, sequence = normalizers.Replace, normalizers.Sequence
    chains = [
        None, normalizers.NFKC(), normalizers.NFD(), normalizers.Lowercase(), normalizers.Strip(), normalizers.Strip(left=False, right=True),
        normalizers.StripAccents(), normalizers.Nmt(), normalizers.BertNormalizer(), normalizers.Prepend("x,"), sequence([normalizers.Prepend("\u2581"), replace(" ", "\u2581")]),
        replace("a", "x"), replace("ab", "x"), replace("ab", "xy"), replace("a", "xyz"), replace("a", ""), replace("ab", ""), replace(Regex(" {2,}"), " "),
        replace(Regex("^ +"), ""), replace(Regex("^ +"), "x"), replace(Regex("^|b"), "y"), sequence([normalizers.Strip(right=False), normalizers.Prepend("x")]),
        sequence([replace("ab", "c"), normalizers.Prepend("x")]), sequence([normalizers.Prepend("ab"), replace("ab", "c")]),
        sequence([normalizers.NFD(), normalizers.StripAccents()]), sequence([normalizers.NFD(), replace("e", "")]), sequence([normalizers.NFKC(), normalizers.Strip()]),
        sequence([normalizers.NFKC(), replace("f", ""), normalizers.Lowercase()]), sequence([normalizers.Prepend("x y"), replace("x ", "")]),
    ]
    texts = ["hello", "  ello  yell", " ab ab", "ab ab", "aab", "abc", "\u00e9a", "e\u0301 b", "\u0301a b", "\u4e2d a", "\t ab", "\x01ab c", "<s>ab", "<s> ab", "ab<s>ab",
             "  ", "\u200bab", "\ufb01 a", " <s>ab", "b<n>ab", "  <n>ab", ",ab", "(ab)a,b", "\u3000ab"]
    characters = ["\u2581", *" abcehilofxyAB,()e\u00e9\u0301\u4e2d"]
    for chain in chains:
        for before in ([], [pre_tokenizers.WhitespaceSplit()], [pre_tokenizers.Punctuation("removed")]):
            tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(["?", *dict.fromkeys(characters)])}, merges=[], unk_token="?"))
            if chain is not None:
                tokenizer.normalizer = chain
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, pre_tokenizers.Metaspace(prepend_scheme="first")])
            tokenizer.add_special_tokens([AddedToken("<s>", normalized=False)])
            tokenizer.add_tokens([AddedToken("<n>", normalized=True)])
            yield tokenizer, texts


def models_of_sentencepiece():
    """Models whose options decide how the beginning of a text and the unknown token are decoded."""
    for name, dummy, extra in (("plain", False, False), ("dense", True, True)):
        path = pathlib.Path(__file__).parent / "tokenizers" / f"sp_{name}.model"
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a cab is a bad cab", "bad dad had a cab", "a  dab of   feed"] * 4), model_prefix=str(path.with_suffix("")), vocab_size=16,
            model_type="bpe", normalization_rule_name="identity", add_dummy_prefix=dummy, remove_extra_whitespaces=extra, unk_surface="??", minloglevel=2,
            allow_whitespace_only_pieces=True, hard_vocab_limit=False)
        path.with_suffix(".vocab").unlink()
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        mark = model.piece_to_id("\u2581")
        lists = [model.encode(text) for text in ("a cab", " a", "  a  bad", "xyz", " x a", "bad", "a zz  dad")]
        lists += [[mark, mark, model.piece_to_id("a")], [mark, model.piece_to_id("\u2581a")], [model.unk_id(), mark]]
        yield {"model": path.name, "encodings": [{"ids": ids, "decoded": model.decode(ids)} for ids in lists]}


cases = [{"texts": TEXTS}, *splits(), *runs(), *replacements(), *models_of_sentencepiece()]
for each, given in [*vocabularies(), *beginnings()]:
    cases.append({"tokenizer": json.loads(each.to_str()), "encodings": list(encodings(each, given))})
(pathlib.Path(__file__).parent / "tokenizers" / "steps.json").write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases) + "\n]\n")
