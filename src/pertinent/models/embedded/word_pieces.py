"""The tokenizer of the embedded text classifiers, which needs only the `tokenizers` library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

SPECIAL = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class WordPieceEncoding(dict[str, Any]):
    """The tokens of one text or pair, with the keys of transformers' ``BatchEncoding``."""

    def __init__(self, encoding: Any) -> None:
        ids, types, special = encoding.ids, encoding.type_ids, encoding.special_tokens_mask
        super().__init__(input_ids=ids, token_type_ids=types, special_tokens_mask=special)
        self.encodings = [encoding]


class WordPieces:
    """A tokenizer that reads a transformers folder and has the interface of its fast tokenizers."""

    is_fast = True
    truncation_side = "right"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        self.model_max_length: int = config["model_max_length"]
        ids = [self._tokenizer.token_to_id(config[name]) for name in SPECIAL]
        self.pad_token_id, self.unk_token_id, _, _, self.mask_token_id = ids
        self.all_special_ids = ids

    def in_transformers(self) -> Any:
        """Return the same tokenizer as a transformers object."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each token."""
        return dict(self._tokenizer.get_vocab())

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Return the number of special tokens of a text or a pair."""
        return int(self._tokenizer.num_special_tokens_to_add(pair))

    def __call__(
        self,
        text: str,
        pair: str | None = None,
        *,
        truncation: bool | str = False,
        max_length: int = 0,
        stride: int = 0,
        add_special_tokens: bool = True,
        **_unused: bool,
    ) -> WordPieceEncoding:
        """Tokenize a text or a pair."""
        options: dict[str, Any] | None = None
        if truncation:
            strategy = "longest_first" if truncation is True else truncation
            options = {"max_length": max_length, "stride": stride, "strategy": strategy, "direction": "right"}
        if self._tokenizer.truncation != options:  # change only if necessary: other threads may use it
            self._tokenizer.no_truncation()
            if options is not None:
                self._tokenizer.enable_truncation(**options)
        return WordPieceEncoding(self._tokenizer.encode(text, pair, add_special_tokens=add_special_tokens))
