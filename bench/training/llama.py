#!/usr/bin/env python3
"""Compares language models of the Llama family with PyTorch and llama2.c, all on one thread, in alternation.

    llama.py BENCH_LANGUAGE [--sizes 260k,15m,135m] [--tasks "train all,generate"] [--turns 3] [--llama2c RUN]

Trains all weights, then adapters of rank 8 on every linear layer, then generates. PyTorch runs transformers' Llama
with its fused attention, PEFT's adapters and torch.optim.AdamW; it generates with its own cache of keys and values.
RUN is llama2.c's program. Weights are random. Prints tokens a second, the median of the turns. Needs PyPI's torch, transformers and peft.
"""
import argparse
import array
import os
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

# layers, width, heads, heads with keys, MLP, vocabulary, context, batch, tokens to generate
SIZES = {"260k": (5, 64, 8, 4, 172, 512, 512, 4, 500), "15m": (6, 288, 6, 6, 768, 32000, 256, 4, 200),
         "135m": (30, 576, 9, 3, 1536, 49152, 256, 2, 40)}
TASKS = ("train all", "train adapters", "generate")
STEPS = {"260k": 12, "15m": 6, "135m": 3}


def fedge(program, size, task):
    layers, width, heads, shared, mlp, vocabulary, context, batch, tokens = SIZES[size]
    command = [program, "--kind", "llama", "--layers", layers, "--width", width, "--heads", heads, "--kv-heads", shared,
               "--mlp-width", mlp, "--vocabulary", vocabulary, "--context", context, "--batch", batch,
               "--steps", STEPS[size]]
    if task == "train adapters":
        command += ["--rank", 8]
    if task == "generate":
        command += ["--generate", tokens]
    out = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"([\d.]+) tokens/s", out)[1])


def torch_model(size, adapters):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    layers, width, heads, shared, mlp, vocabulary, context, _, _ = SIZES[size]
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=shared,
        intermediate_size=mlp, vocab_size=vocabulary, max_position_embeddings=context, tie_word_embeddings=True,
        attn_implementation="sdpa", use_cache=False))
    if adapters:
        from peft import LoraConfig, get_peft_model
        targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=targets))
    return model


def torch_train(size, adapters):
    """Returns tokens a second of the median step."""
    import torch
    torch.set_num_threads(1)
    _, _, _, _, _, vocabulary, context, batch, _ = SIZES[size]
    model = torch_model(size, adapters).train()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    text = torch.randint(0, vocabulary, (batch, context + 1))
    times = []
    for _ in range(STEPS[size] + 2):
        start = time.perf_counter()
        optimizer.zero_grad()
        scores = model(input_ids=text[:, :-1]).logits
        torch.nn.functional.cross_entropy(scores.reshape(-1, vocabulary), text[:, 1:].reshape(-1)).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return batch * context / statistics.median(times[2:])


def torch_generate(size):
    import torch
    torch.set_num_threads(1)
    tokens = SIZES[size][-1]
    model = torch_model(size, False).eval()
    with torch.no_grad():
        token, cache = torch.tensor([[1]]), None
        start = time.perf_counter()
        for _ in range(tokens):
            out = model(input_ids=token, past_key_values=cache, use_cache=True)
            cache, token = out.past_key_values, out.logits[:, -1].argmax(-1, keepdim=True)
        return tokens / (time.perf_counter() - start)


def measure_torch(size, task):
    """Measures in a process of its own, whose caches are cold like Fedge's."""
    out = subprocess.run([sys.executable, __file__, "--one", size, task], capture_output=True, text=True, check=True,
                         env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}).stdout
    return float(out.split()[-1])


def write_llama2c(directory, size):
    """Writes random weights and a tokenizer without meaning in the formats of llama2.c."""
    layers, width, heads, shared, mlp, vocabulary, context, _, tokens = SIZES[size]
    context = max(context, tokens + 1)
    keys = width * shared // heads
    block = 2 * width + 2 * width * width + 2 * width * keys + 3 * width * mlp
    count = vocabulary * width + layers * block + width + context * width // heads
    with open(os.path.join(directory, "model.bin"), "wb") as file:
        file.write(struct.pack("<7i", width, mlp, layers, heads, shared, vocabulary, context))
        draws = random.Random(1)
        table = array.array("f", (draws.gauss(0, 0.02) for _ in range(65537)))
        for first in range(0, count, len(table)):
            table[:min(len(table), count - first)].tofile(file)
    with open(os.path.join(directory, "tokenizer.bin"), "wb") as file:
        file.write(struct.pack("<i", 8))
        for token in range(vocabulary):
            file.write(struct.pack("<fi", 0, 6) + b"%06d" % token)


def llama2c(program, size):
    with tempfile.TemporaryDirectory() as directory:
        write_llama2c(directory, size)
        done = subprocess.run([os.path.abspath(program), "model.bin", "-t", "0", "-n", str(SIZES[size][-1])],
                              capture_output=True, check=True, cwd=directory)
    return float(re.search(rb"tok/s: ([\d.]+)", done.stderr)[1])


def main():
    if sys.argv[1:2] == ["--one"]:
        size, task = sys.argv[2:]
        print(torch_generate(size) if task == "generate" else torch_train(size, task == "train adapters"))
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--sizes", default="260k,15m,135m")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--llama2c", metavar="RUN", help="the program of llama2.c")
    options = parser.parse_args()
    print(f"{'size':6} {'task':15} {'Fedge':>9} {'PyTorch':>9} {'ratio':>6} {'llama2.c':>9}   tokens a second")
    for size in options.sizes.split(","):
        for task in options.tasks.split(","):
            found = {"fedge": [], "torch": [], "llama2c": []}
            for _ in range(options.turns):
                found["fedge"].append(fedge(options.program, size, task))
                found["torch"].append(measure_torch(size, task))
                if task == "generate" and options.llama2c:
                    found["llama2c"].append(llama2c(options.llama2c, size))
            median = {name: statistics.median(values) for name, values in found.items() if values}
            print(f"{size:6} {task:15} {median['fedge']:9.0f} {median['torch']:9.0f} "
                  f"{median['fedge'] / median['torch']:6.2f} {median.get('llama2c', float('nan')):9.0f}", flush=True)


if __name__ == "__main__":
    main()
