"""Small random language models of several architectures, with a byte-level tokenizer."""

from functools import cache

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

TEXTS = [
    "Ann keeps the key. Bob keeps the map. Who keeps the map? Answer: Bob",
    "Cleo keeps the lamp and the old red coat. Dan lost his shoes in the deep snow.",
]
SPECIAL = ["<pad>", "<s>", "</s>", "<user>", "<model>"]
CHAT = (
    "{% for m in messages %}{{ '<' + m['role'] + '>' }}{{ m['content'] | trim }}{% endfor %}"
    "{% if add_generation_prompt %}<model>{% endif %}"
)

ARCHITECTURES = ("gpt2", "llama", "qwen2", "mistral", "gemma2")


@cache
def _raw(bos):
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(TEXTS, trainer)
    steps = [processors.ByteLevel(trim_offsets=True)]
    if bos:
        steps.append(
            processors.TemplateProcessing(
                single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", raw.token_to_id("<s>"))]
            )
        )
    raw.post_processor = processors.Sequence(steps)
    return raw.to_str()


def ending_tokenizer():
    """Return the tokenizer of a model with an encoder: </s> follows each text."""
    made = tokenizer(bos=False)
    raw = made.backend_tokenizer
    end = processors.TemplateProcessing(
        single="$A </s>", pair="$A $B </s>", special_tokens=[("</s>", raw.token_to_id("</s>"))]
    )
    raw.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), end])
    return made


def tokenizer(bos=True, **options):
    raw = Tokenizer.from_str(_raw(bos))
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"} | options
    names.setdefault("model_max_length", 128)
    made = PreTrainedTokenizerFast(tokenizer_object=raw, **names)
    made.chat_template = CHAT
    return made


def model(architecture, **changes):
    """Return a model with weights large enough for every part of it to matter."""
    torch.manual_seed(0)
    size = {
        "vocab_size": 400,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 128,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    grouped = {"num_key_value_heads": 2}
    if architecture == "gpt2":
        names = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "vocab_size": 400}
        config = transformers.GPT2Config(**names, bos_token_id=1, eos_token_id=2)
        made = transformers.GPT2LMHeadModel(config)
    elif architecture == "llama":
        made = transformers.LlamaForCausalLM(transformers.LlamaConfig(**size | grouped | changes))
    elif architecture == "qwen2":
        made = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**size | grouped | changes))
    elif architecture == "mistral":
        window = {"sliding_window": 16}
        made = transformers.MistralForCausalLM(
            transformers.MistralConfig(**size | grouped | window | changes)
        )
    elif architecture == "gemma2":
        own = {"head_dim": 8, "sliding_window": 16, "final_logit_softcapping": 5.0}
        made = transformers.Gemma2ForCausalLM(transformers.Gemma2Config(**size | grouped | own | changes))
    elif architecture == "t5":
        names = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 400}
        ends = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
        made = transformers.T5ForConditionalGeneration(transformers.T5Config(**names | ends))
    elif architecture == "bart":
        halves = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
        names = {f"{half}_{name}": n for half in ("encoder", "decoder") for name, n in halves.items()}
        ends = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
        sizes = {
            "d_model": 32,
            "vocab_size": 400,
            "max_position_embeddings": 128,
            "forced_eos_token_id": None,
        }
        made = transformers.BartForConditionalGeneration(transformers.BartConfig(**names | ends | sizes))
    else:
        raise ValueError(architecture)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return made.eval()
