"""A tiny language model in a GGUF file."""

import json

import numpy as np

from tests import tiny_lm


def write_gguf(file):
    """Write the tiny llama and its tokenizer to a GGUF file; return the model and the tokenizer."""
    import gguf

    model, tokenizer = tiny_lm.model("llama"), tiny_lm.tokenizer(bos=False)
    config, raw = model.config, json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)
    words = sorted(raw["vocab"], key=raw["vocab"].get)
    words += [f"<unused{i}>" for i in range(config.vocab_size - len(words))]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in tiny_lm.SPECIAL else 1 for word in words])
    writer.add_token_merges([" ".join(pair) for pair in raw["merges"]])
    for name, add in {"bos": "<s>", "eos": "</s>", "pad": "<pad>"}.items():
        getattr(writer, f"add_{name}_token_id")(raw["vocab"][add])
    writer.add_chat_template(tiny_lm.CHAT)
    for name, tensor in model.state_dict().items():
        values = tensor.float().numpy()
        if "q_proj" in name:
            values = _interleave(values, config.num_attention_heads)
        elif "k_proj" in name:
            values = _interleave(values, config.num_key_value_heads)
        writer.add_tensor(_name(name), np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model, tokenizer


_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
}


def _name(name):
    for old, new in _NAMES.items():
        name = name.replace(old, new)
    return name


def _interleave(values, n_heads):
    """Return the rows of a head in the order of llama.cpp: the halves of a rotation are neighbours."""
    return values.reshape(n_heads, 2, -1, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
