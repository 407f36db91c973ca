#!/usr/bin/env python3
"""Writes small published models, and what transformers and tokenizers compute with them.

    make.py DIRECTORY    writes DIRECTORY/llama/, gpt2/, llama.gguf, llama2c.bin ... and expected.txt

Needs PyPI's torch, transformers, tokenizers, sentencepiece and gguf; the files here were made with torch 2.15,
transformers 5.24, tokenizers 0.23, sentencepiece 0.2 and gguf 0.19. Weights are random; tokenizers are trained on
the sentences below. The unit tests import the files and compare tokens and scores with expected.txt.
"""
import io
import json
import pathlib
import struct
import sys

import gguf
import numpy as np
import sentencepiece
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

SENTENCES = ["The quick brown fox jumps over the lazy dog.", "The sea rolls grey and cold, and the sea birds sing.",
             "One wheel turns slowly under the load of the day.", "In 1914 there were 2048 ships on the sea."]
STRIDE = 97  # of the scores that are written
# Cases in which the expressions for words differ.
TEXT = ("The dog isn't 10 years old, IT'S 1234567.  Two spaces\n\n  and\t tabs \r\nna\u00efve \u00dcber "
        "\u4e2d\u6587\u3002 \u0661\u0662\u0663 \u00bd x2y ''quoted'' don\u2019t\u00a0stop\u3000... \U0001f40b!   ")
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
SPLITTERS = {
    "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    "llama3": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
    "qwen2": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated"),
                                      pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
}


def byte_level(splitter, special):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet,
                                                                 special_tokens=special, show_progress=False))
    return tokenizer


def llama_tokenizer():
    """A tokenizer like Llama 2's: characters with U+2581 for spaces, single bytes as a fallback."""
    base = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    base.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    base.train_from_iterator(SENTENCES, trainers.BpeTrainer(vocab_size=320, special_tokens=special,
                                                            show_progress=False))
    # Only the first three are special: bytes are ordinary tokens.
    root = json.loads(base.to_str())
    root["added_tokens"] = [token for token in root["added_tokens"] if token["id"] < 3]
    tokenizer = Tokenizer.from_str(json.dumps(root))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        spread = torch.randn(parameter.shape, generator=generator)
        parameter.data = 1 + 0.1 * spread if parameter.dim() == 1 and "bias" not in name else 0.2 * spread


def scores_of(model, tokens):
    with torch.no_grad():
        return model.double().eval()(torch.tensor([tokens])).logits[0].numpy().reshape(-1)[::STRIDE]


def save(model, dtype, tokenizer, folder, tokens, expected, shard="1GB"):
    """Writes a folder, and the scores of the weights as rounded there."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype).float()
    expected[folder.name + "_scores"] = scores_of(model, tokens[:40])
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    (folder / "generation_config.json").unlink()
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True) + "\n", encoding="utf-8")


def write_llama(directory, expected):
    tokenizer = llama_tokenizer()
    config = LlamaConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=24, vocab_size=tokenizer.get_vocab_size() + 3, rms_norm_eps=1e-6,
                         max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2,
                         rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0,
                                          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                          "original_max_position_embeddings": 16})
    model = LlamaForCausalLM(config)
    randomise(model, 1)
    tokens = tokenizer.encode(TEXT).ids
    expected["llama_tokens"] = tokens
    save(model, torch.bfloat16, tokenizer, directory / "llama", tokens, expected, shard="15KB")


def write_gpt2(directory, expected):
    tokenizer = byte_level(SPLITTERS["gpt2"], ["<|endoftext|>"])
    config = GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=48, vocab_size=tokenizer.get_vocab_size(),
                        bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    randomise(model, 2)
    tokens = tokenizer.encode(TEXT).ids
    expected["gpt2_tokens"] = tokens
    save(model, torch.float16, tokenizer, directory / "gpt2", tokens, expected)


def sentencepiece_model():
    """A SentencePiece BPE like Llama 2's."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=out, model_type="bpe", vocab_size=309, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=1.0, minloglevel=2)
    return out.getvalue()


def pieces_of(processor):
    """Returns text, score and type (1 text, 2 unknown, 3 control, 6 byte) of each piece."""
    kinds = [(processor.is_unknown, 2), (processor.is_control, 3), (processor.is_byte, 6)]
    return [(processor.id_to_piece(i), processor.get_score(i), next((k for is_a, k in kinds if is_a(i)), 1))
            for i in range(processor.get_piece_size())]


def interleaved(weight, heads):
    """From first and second halves of each head to pairs, as in Meta's Llama."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(directory, expected, pieces):
    config = LlamaConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
                         intermediate_size=64, vocab_size=len(pieces), rms_norm_eps=1e-5, max_position_embeddings=64,
                         tie_word_embeddings=True)
    model = LlamaForCausalLM(config)
    randomise(model, 3)
    state = model.state_dict()
    writer = gguf.GGUFWriter(str(directory / "llama.gguf"), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(8)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _, _ in pieces])
    writer.add_token_scores([score for _, score, _ in pieces])
    writer.add_token_types([kind for _, _, kind in pieces])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    types, halves = gguf.GGMLQuantizationType, {"q_proj": 4, "k_proj": 2}
    layer = "model.layers.0."
    for source, target, kind in [
            ("model.embed_tokens", "token_embd", types.Q8_0), (layer + "input_layernorm", "blk.0.attn_norm", types.F32),
            (layer + "self_attn.q_proj", "blk.0.attn_q", types.Q4_0),
            (layer + "self_attn.k_proj", "blk.0.attn_k", types.Q4_1),
            (layer + "self_attn.v_proj", "blk.0.attn_v", types.Q8_0),
            (layer + "self_attn.o_proj", "blk.0.attn_output", types.F16),
            (layer + "post_attention_layernorm", "blk.0.ffn_norm", types.F32),
            (layer + "mlp.gate_proj", "blk.0.ffn_gate", types.Q4_0), (layer + "mlp.up_proj", "blk.0.ffn_up", types.BF16),
            (layer + "mlp.down_proj", "blk.0.ffn_down", types.Q4_1), ("model.norm", "output_norm", types.F32)]:
        heads = halves.get(source.split(".")[-1])
        values = state[source + ".weight"].float().numpy()
        stored = gguf.quantize(interleaved(values, heads) if heads else values, kind)
        writer.add_tensor(target + ".weight", stored, raw_dtype=kind)
        back = gguf.dequantize(stored, kind)
        if heads:
            back = back.reshape(heads, -1, 2, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
        state[source + ".weight"] = torch.from_numpy(np.array(back, dtype=np.float64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = model.double()
    model.load_state_dict({**state, "lm_head.weight": state["model.embed_tokens.weight"]})
    tokens = list(range(3, 3 + 40 * 7, 7))
    expected["gguf_scores"] = scores_of(model, tokens)


def write_llama2c(directory, expected, pieces):
    config = LlamaConfig(hidden_size=12, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
                         intermediate_size=20, vocab_size=len(pieces), rms_norm_eps=1e-5, max_position_embeddings=48,
                         tie_word_embeddings=True)
    model = LlamaForCausalLM(config)
    randomise(model, 4)
    state = {name: value.float().numpy() for name, value in model.state_dict().items()}
    with open(directory / "llama2c.bin", "wb") as out:
        out.write(struct.pack("<7i", 12, 20, 2, 3, 1, len(pieces), 48))
        out.write(state["model.embed_tokens.weight"].tobytes())
        for part in ("input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                     "post_attention_layernorm", "mlp.gate_proj", "mlp.down_proj", "mlp.up_proj"):
            heads = {"self_attn.q_proj": 3, "self_attn.k_proj": 1}.get(part)
            for layer in range(2):
                values = state[f"model.layers.{layer}.{part}.weight"]
                out.write((interleaved(values, heads) if heads else values).tobytes())
        out.write(state["model.norm.weight"].tobytes())
        out.write(np.zeros(48 * 4, dtype=np.float32).tobytes())
    with open(directory / "tokenizer.bin", "wb") as out:
        texts = [text if kind != 1 else text.replace("\u2581", " ") for text, _, kind in pieces]
        out.write(struct.pack("<i", max(len(text.encode()) for text in texts)))
        for text, (_, score, _) in zip(texts, pieces):
            out.write(struct.pack("<fi", score, len(text.encode())) + text.encode())
    tokens = list(range(3, 3 + 40 * 7, 7))
    expected["llama2c_scores"] = scores_of(model, tokens)


def main():
    directory = pathlib.Path(sys.argv[1])
    expected = {}
    write_llama(directory, expected)
    write_gpt2(directory, expected)
    model = sentencepiece_model()
    (directory / "tokenizer.model").write_bytes(model)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    expected["sentencepiece_tokens"] = processor.encode(TEXT)
    pieces = pieces_of(processor)
    write_gguf(directory, expected, pieces)
    write_llama2c(directory, expected, pieces)
    for name, splitter in SPLITTERS.items():
        words = [len(TEXT[begin:end].encode()) for _, (begin, end) in splitter.pre_tokenize_str(TEXT)]
        expected[name + "_words"] = words
    (directory / "text.bin").write_bytes(TEXT.encode())
    with open(directory / "expected.txt", "w", encoding="utf-8") as out:
        for name, values in expected.items():
            out.write(f"{name} {len(values)}\n")
            words = [f"{value:.10g}" for value in values]
            for first in range(0, len(words), 10):
                out.write(" ".join(words[first:first + 10]) + "\n")


if __name__ == "__main__":
    main()
