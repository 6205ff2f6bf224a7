#!/usr/bin/env python3
"""Makes test/golden/hugging_face: small random networks as transformers saves them, with inputs and outputs. Needs torch,
transformers and safetensors.

    python3 test/golden/hugging_face.py
"""
import pathlib
import shutil

import torch
import transformers
from safetensors.torch import save_file

transformers.logging.set_verbosity_error()
torch.manual_seed(46)
golden = pathlib.Path(__file__).parent / "hugging_face"
decoder = dict(vocab_size=23, hidden_size=12, intermediate_size=20, num_attention_heads=4, num_key_value_heads=2,
               head_dim=4, max_position_embeddings=64, initializer_range=0.4)
rope = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
            original_max_position_embeddings=8, rope_theta=30.0)
CONFIGS = {  # configuration, largest shard, dtype of the file
    "gpt2": (transformers.GPT2Config(vocab_size=23, n_positions=11, n_embd=12, n_layer=2, n_head=3, n_inner=20,
                                     initializer_range=0.4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
             "1GB", torch.float32),
    "llama": (transformers.LlamaConfig(**decoder, num_hidden_layers=1, rope_parameters=rope, rms_norm_eps=1e-3,
                                       tie_word_embeddings=False), "1GB", torch.bfloat16),
    "qwen3": (transformers.Qwen3Config(**decoder, num_hidden_layers=2, tie_word_embeddings=True), "4KB", torch.float32),
    "mistral": (transformers.MistralConfig(**decoder, num_hidden_layers=1, sliding_window=3), "1GB", torch.float16),
    "vit": (transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
                                   image_size=12, patch_size=4, num_channels=2, num_labels=3, initializer_range=0.4),
            "1GB", torch.float32),
    "bert": (transformers.BertConfig(vocab_size=23, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=12, max_position_embeddings=11, num_labels=3,
                                     initializer_range=0.4), "1GB", torch.float32),
}

shutil.rmtree(golden, ignore_errors=True)
for name, (config, shard, dtype) in CONFIGS.items():
    images = isinstance(config, transformers.ViTConfig)
    texts = isinstance(config, transformers.BertConfig)
    kind = (transformers.AutoModelForImageClassification if images else
            transformers.AutoModelForSequenceClassification if texts else transformers.AutoModelForCausalLM)
    network = kind.from_config(config)
    for parameter in network.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
    network.to(dtype).save_pretrained(golden / name, max_shard_size=shard)
    (golden / name / "generation_config.json").unlink(missing_ok=True)
    network = type(network).from_pretrained(golden / name, dtype=torch.float32).eval()
    # The logits for tokens, or the probabilities for images [samples, height, width, channels] or texts with padding.
    values = torch.randn(3, 12, 12, 2) if images else torch.randint(1, 23, (3, 11))
    with torch.no_grad():
        if images:
            output = network(values.permute(0, 3, 1, 2)).logits.softmax(-1)
        elif texts:
            values[0, 7:] = values[2, 2:] = 0
            output = network(input_ids=values, attention_mask=(values != 0).long()).logits.softmax(-1)
        else:
            output = network(input_ids=values).logits
    save_file({"input": values.float(), "output": output}, golden / f"{name}.safetensors")
for path in golden.rglob("*.*"):
    path.chmod(0o644)
