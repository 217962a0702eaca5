"""Small data sets, encoders and word lists for the scripts of `experiments/` and `benchmarks/`."""

import gzip
import importlib
import logging
import os
import shutil
import sys
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import BertConfig, BertModel

from tests import tiny

ROOT = Path(__file__).parents[1]


@contextmanager
def scripts(*folders):
    """Yield a function that imports scripts of folders; their modules and settings are removed afterwards."""
    modules, before = take_modules(), (list(sys.path), list(sys.argv), dict(os.environ))
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    level, disabled = logging.getLogger("pertinent").level, logging.root.manager.disable
    sys.path[:0] = [str(ROOT / folder) for folder in folders]
    try:
        yield importlib.import_module
    finally:
        take_modules()
        sys.modules.update(modules)
        sys.path[:], sys.argv[:] = before[:2]
        os.environ.clear()
        os.environ.update(before[2])
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
        logging.getLogger("pertinent").setLevel(level)
        logging.disable(disabled)


def take_modules():
    """Remove and return the imported modules of experiments and benchmarks."""
    folders = (str(ROOT / "experiments"), str(ROOT / "benchmarks"))
    names = [
        name for name, own in sys.modules.items() if (getattr(own, "__file__", "") or "").startswith(folders)
    ]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def experiment(paper):
    """Yield a function that imports a module of a paper; changes to modules are undone afterwards."""
    with scripts() as load:
        load("experiments.shared.intervals").RESAMPLES = 50
        yield lambda name: load(name if name.startswith("experiments.") else f"experiments.{paper}.{name}")


def run_stages(*words):
    """Run stages of an experiment in this process."""
    main = importlib.import_module("experiments.shared.command_line").main
    assert main([*map(str, words), "--devices", "cpu", "--processes", "0"]) == 0


def rebuild_pages(paper, out, *words):
    """Rebuild pages of an experiment in a folder."""
    folder = ROOT / "experiments" / paper
    out.mkdir(parents=True, exist_ok=True)
    for page in folder.glob("*.md"):
        shutil.copy(page, out)
    main = importlib.import_module("experiments.shared.command_line").main
    assert main([paper, "tables", "--out", str(out), *map(str, words)]) == 0


def call(module, *words):
    """Run the command line of a script."""
    sys.argv[:] = [str(module.__file__), *map(str, words)]
    module.main()


def sentences(n, length=9, classes=2, seed=0):
    """Return texts of words that `tiny.tokenizer` knows, and their classes, each with a specific word."""
    rng = np.random.default_rng(seed)
    labels = [i % classes for i in range(n)]
    words = [[f"w{w}" for w in rng.integers(10, 90, length + i % 3)] for i in range(n)]
    for label, own in zip(labels, words, strict=True):
        own[int(rng.integers(len(own)))] = f"w{label}"
    return [" ".join(own) for own in words], labels


def write_frame(path, **columns):
    """Write a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(columns).to_parquet(path)


def write_texts(folder, name, splits, length=9, classes=2):
    """Write a set of texts with different texts in each split."""
    for seed, (split, n) in enumerate(splits.items()):
        texts, labels = sentences(n, length, classes, seed)
        write_frame(folder / name / f"{split}.parquet", text=texts, label=np.array(labels, dtype=np.int8))


def write_images(folder, n_train=40, n_test=20):
    """Write a set in MNIST's format, in which the brighter rows determine the class."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for split, n in (("train", n_train), ("t10k", n_test)):
        labels = np.arange(n, dtype=np.uint8) % 10
        images = rng.integers(0, 60, (n, 28, 28)).astype(np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label + 4 : 2 * label + 8, 6:22] = 250
        for name, array in ((f"{split}-images-idx3", images), (f"{split}-labels-idx1", labels)):
            head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
            (folder / f"{name}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes(), 1))


def write_encoder(folder):
    """Write a small BERT with large weights, and its tokenizer."""
    torch.manual_seed(0)
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    small |= {"max_position_embeddings": 512, "initializer_range": 0.5, "num_labels": 2}
    BertModel(BertConfig(**tiny.BASE | small)).save_pretrained(folder)
    tiny.tokenizer(model_max_length=512).save_pretrained(folder)
    return folder


def write_nltk(folder):
    """Write a WordNet with two words, and a few stop words."""
    (folder / "corpora").mkdir(parents=True)
    with zipfile.ZipFile(folder / "corpora" / "stopwords.zip", "w") as archive:
        archive.writestr("stopwords/english", "the\na\nis\n")
    counts = "dog%1:05:00:: 1 42\nrun%2:38:00:: 1 106\nrun%1:04:00:: 2 7\n"
    files = {"cntlist.rev": counts, "noun.exc": "geese goose\n", "verb.exc": "ran run\n"}
    files |= {"index.noun": "  1 This is a licence\ngoose n 1\ndog n 7\n", "index.verb": "run v 41\n"}
    with zipfile.ZipFile(folder / "corpora" / "wordnet.zip", "w") as archive:
        for name in ("cntlist.rev", *(f"{kind}.exc" for kind in ("noun", "verb", "adj", "adv"))):
            archive.writestr(f"wordnet/{name}", files.get(name, ""))
        for kind in ("noun", "verb", "adj", "adv"):
            archive.writestr(f"wordnet/index.{kind}", files.get(f"index.{kind}", ""))
    return folder
