#!/usr/bin/env python3
"""Compares imported and exported language models and adapters with transformers and PEFT.

    published_test.py SOURCE BINARIES

Skipped without PyPI's torch, transformers and peft: exit code 77.
"""
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.convert_slow_tokenizer import bytes_to_unicode
except ImportError as error:
    print(f"skipped: {error.name} not found (PyPI: torch, transformers, peft)")
    sys.exit(77)

SOURCE, BINARIES = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PUBLISHED = SOURCE / "tests" / "reference" / "published"
PROMPT = "The sea"
TARGETS = {"llama": ["q_proj", "v_proj", "gate_proj", "down_proj"], "gpt2": ["c_attn", "mlp.c_fc", "mlp.c_proj"]}


def fedge(*arguments):
    command = [str(BINARIES / "fedge"), "model", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.decode()}")
    return done.stdout


def bytes_of(tokenizer, tokens):
    """Returns the bytes of tokens; transformers' decode() replaces those that are not UTF-8."""
    byte_of_character = {character: byte for byte, character in bytes_to_unicode().items()}
    out = b""
    for token in tokens:
        piece = tokenizer.convert_ids_to_tokens(token)
        if piece is None or piece in tokenizer.get_added_vocab():
            continue
        if piece.startswith("<0x"):
            out += bytes([int(piece[3:5], 16)])
        elif "\u2581" in tokenizer.get_vocab():
            out += piece.replace("\u2581", " ").encode()
        else:
            out += bytes(byte_of_character[character] for character in piece)
    return out


def generated(model, tokenizer):
    """Returns the likeliest continuation, as `fedge model generate --temperature 0` prints it."""
    prompt = tokenizer(PROMPT, return_tensors="pt")
    with torch.no_grad():
        tokens = model.generate(**prompt, max_new_tokens=24, do_sample=False, pad_token_id=0)[0].tolist()
    text = bytes_of(tokenizer, tokens).removeprefix(b" ").decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if unsafe(character) else character for character in text)


def unsafe(character):
    code = ord(character)
    return (code < 32 and character not in "\n\t") or 0x7F <= code < 0xA0 or 0xDC80 <= code <= 0xDCFF


def check_generation(file, model, tokenizer, what):
    wanted = generated(model, tokenizer)
    got = fedge("generate", file, "--prompt", PROMPT, "--tokens", 24, "--temperature", 0).decode().removesuffix("\n")
    if got != wanted:
        sys.exit(f"{what}: fedge generates {got!r}, transformers {wanted!r}")


def check_scores(one, other, what):
    tokens = torch.arange(3, 35)[None]
    with torch.no_grad():
        difference = (one(tokens).logits - other(tokens).logits).abs().max().item()
    if not difference < 1e-4:
        sys.exit(f"{what}: scores differ by {difference}")


def randomised(model):
    """Gives B of the adapters values: PEFT starts them at zero."""
    generator = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def check(family, work):
    folder = PUBLISHED / family
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    fedge("import", folder, "--out", work / "base.safetensors")
    check_generation(work / "base.safetensors", base, tokenizer, f"{family}, imported")
    fedge("export", work / "base.safetensors", "--out", work / "again")
    again = AutoModelForCausalLM.from_pretrained(work / "again").eval()
    check_scores(base, again, f"{family}, exported")
    text = (PUBLISHED / "text.bin").read_bytes().decode()
    if AutoTokenizer.from_pretrained(work / "again")(text).input_ids != tokenizer(text).input_ids:
        sys.exit(f"{family}, exported: the tokenizer differs")

    config = LoraConfig(r=4, lora_alpha=6, target_modules=TARGETS[family], fan_in_fan_out=family == "gpt2",
                        task_type="CAUSAL_LM")
    adapted = randomised(get_peft_model(base, config)).eval()
    adapted.save_pretrained(work / "adapter")
    fedge("import", folder, "--adapter", work / "adapter", "--out", work / "adapted.safetensors")
    check_generation(work / "adapted.safetensors", adapted, tokenizer, f"{family}, with adapters")
    fedge("adapters", work / "adapted.safetensors", "--out", work / "back", "--base", family)
    fresh = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    check_scores(adapted, PeftModel.from_pretrained(fresh, work / "back").eval(), f"{family}, adapters written back")
    fedge("export", work / "adapted.safetensors", "--out", work / "merged")
    check_scores(adapted, AutoModelForCausalLM.from_pretrained(work / "merged").eval(), f"{family}, merged")


for name in ("llama", "gpt2"):
    with tempfile.TemporaryDirectory() as directory:
        check(name, pathlib.Path(directory))
print("2 families: imported, exported and adapted as transformers and PEFT compute them")
