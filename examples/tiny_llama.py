"""Make a tiny Llama with random weights, to try finetune_lora.py without a download: it knows nothing yet.

    python examples/tiny_llama.py tiny-llama

Writes what a model of the Hub consists of: its shape, its weights, its tokenizer, in which a token is a byte.
It is the same on every machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

END = "</s>"
LAYERS, HIDDEN, INNER, HEADS, SHARED = 2, 64, 128, 4, 2  # two heads of attention share keys and values


def make_tokenizer() -> Tokenizer:
    """Return a tokenizer that knows the bytes and no word."""
    vocabulary = {
        token: number for number, token in enumerate([END, *sorted(pre_tokenizers.ByteLevel.alphabet())])
    }
    bytewise = Tokenizer(models.BPE(vocabulary, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    return bytewise


def make_weights(words: int) -> dict[str, numpy.ndarray]:
    """Return random weights under the names that transformers gives to those of a Llama."""
    keys = HIDDEN // HEADS * SHARED
    attention = {
        "q_proj": (HIDDEN, HIDDEN),
        "k_proj": (keys, HIDDEN),
        "v_proj": (keys, HIDDEN),
        "o_proj": (HIDDEN,) * 2,
    }
    network = {"gate_proj": (INNER, HIDDEN), "up_proj": (INNER, HIDDEN), "down_proj": (HIDDEN, INNER)}
    shapes = {"model.embed_tokens": (words, HIDDEN), "lm_head": (words, HIDDEN)}
    norms = ["model.norm"]
    for layer in (f"model.layers.{number}" for number in range(LAYERS)):
        shapes |= {f"{layer}.self_attn.{name}": shape for name, shape in attention.items()}
        shapes |= {f"{layer}.mlp.{name}": shape for name, shape in network.items()}
        norms += [f"{layer}.input_layernorm", f"{layer}.post_attention_layernorm"]
    random = numpy.random.default_rng(0)
    weights = {name: 0.1 * random.standard_normal(shape, numpy.float32) for name, shape in shapes.items()}
    weights |= {name: numpy.ones(HIDDEN, numpy.float32) for name in norms}
    return {f"{name}.weight": weight for name, weight in weights.items()}


def main(folder: Path) -> None:
    """Write the model into ``folder``."""
    tokenizer = make_tokenizer()
    words = tokenizer.get_vocab_size()
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": words,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": SHARED,
        "bos_token_id": None,
        "eos_token_id": tokenizer.token_to_id(END),
    }
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END}
    (folder / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    save_file(make_weights(words), folder / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
