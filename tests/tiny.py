"""Small random transformers of several architectures, with a word-level tokenizer."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ModernBertConfig,
    ModernBertForSequenceClassification,
    MPNetConfig,
    MPNetForSequenceClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
)

WORDS = [f"w{i}" for i in range(90)]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = {word: i for i, word in enumerate([*SPECIAL, *WORDS, "a", ".", ","])}


def tokenizer(**options):
    raw = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True)
    )
    return PreTrainedTokenizerFast(tokenizer_object=raw, model_input_names=INPUTS, **names, **options)


INPUTS = ["input_ids", "token_type_ids", "attention_mask"]
SIZE = {"vocab_size": len(VOCABULARY), "pad_token_id": 0, "num_labels": 3}
BASE = SIZE | {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 256,
}
ROTARY = BASE | {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3}


def model(architecture, dtype=torch.float32, **changes):
    """Return a model with weights large enough for every part of it to matter."""
    torch.manual_seed(0)
    if architecture == "bert":
        made = BertForSequenceClassification(BertConfig(**BASE | changes))
    elif architecture == "roberta":
        made = RobertaForSequenceClassification(RobertaConfig(**BASE | {"type_vocab_size": 1} | changes))
    elif architecture == "distilbert":
        size = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 256}
        made = DistilBertForSequenceClassification(DistilBertConfig(**SIZE | size | changes))
    elif architecture == "mpnet":
        made = MPNetForSequenceClassification(MPNetConfig(**BASE | changes))
    elif architecture == "modernbert":
        options = {"global_attn_every_n_layers": 1, "local_attention": 16}
        made = ModernBertForSequenceClassification(ModernBertConfig(**ROTARY | options | changes))
    else:
        raise ValueError(architecture)
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return made.eval().to(dtype)


def pair(architecture, **changes):
    return model(architecture, **changes), tokenizer(model_max_length=200)


def text(n, seed=0):
    import random

    return " ".join(random.Random(seed).choices(WORDS, k=n))
