"""Train the embedded text classifiers `sentiment` and `topics`.

A fine-tuned MiniLM teaches a small BERT. Both see every example twice in each batch, whole and with most
tokens hidden by the attention mask (counterfactual training, Hase et al. 2021), so that masked inputs are in
distribution. The texts for measuring the models are not used to choose anything.

    python scripts/train_embedded.py --data DATA --teacher MINILM --out OUT --task both
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tarfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from embedded_data import (
    CORPORA,
    Corpus,
    Example,
    Tokens,
    batches,
    keep_random_tokens,
    not_special,
    pack_texts,
    twice,
    variations,
)
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHARES_REMOVED_WHEN_MEASURED = (0.0, 0.5, 0.8)
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEMPERATURE = 2.0
WARM_UP = 0.06
UNLABELLED = -1
BEGAN = time.monotonic()


@dataclass(frozen=True)
class Plan:
    """Sizes and limits of the training; a stage also ends when its share of the minutes is over."""

    teacher_epochs: float = 4
    pretraining_steps: int = 4000
    distillation_steps: int = 6000
    batch: int = 256
    variations: int = 300_000
    vocabulary: int = 10_240
    max_tokens: int = 256
    minutes_per_task: float = 4.2
    texts: int | None = None

    def seconds(self, share: float) -> float:
        """Return the time limit of a stage with this share of the minutes."""
        return 60 * self.minutes_per_task * share

    def times(self, factor: float) -> Plan:
        """Return a plan with `factor` times the steps of the student."""
        return replace(
            self,
            pretraining_steps=round(factor * self.pretraining_steps),
            distillation_steps=round(factor * self.distillation_steps),
        )


SMOKE = Plan(0.2, 4, 4, batch=8, variations=100, vocabulary=1500, max_tokens=64, texts=150)


def say(message: str) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {message}", flush=True)


def bf16_on_gpu(device: torch.device) -> torch.autocast:
    """Return a context with bfloat16 on a GPU."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def optimise(
    stage: str,
    module: nn.Module,
    loss_of: Callable[[Tensor], Tensor],
    rows: Iterator[Tensor],
    *,
    steps: int,
    seconds: float,
    learning_rate: float,
) -> int:
    """Run AdamW with linear warm-up and decay for `steps` or `seconds`, whichever ends first."""
    module.train()
    parameters = list(module.parameters())
    device = parameters[0].device
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), fused=device.type == "cuda")
    began, step, progress, reported = time.monotonic(), 0, 0.0, 0.0
    while progress < 1:
        step += 1
        progress = min(1.0, max(step / steps, (time.monotonic() - began) / seconds))
        for group in optimiser.param_groups:
            group["lr"] = learning_rate * min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP), 1.0)
        with bf16_on_gpu(device):
            loss = loss_of(next(rows))
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if progress >= min(1.0, reported + 0.2):
            reported = progress
            say(f"{stage}: step {step}, {progress:.0%} done, loss {loss.item():.4f}")
    module.eval()
    return step


def pooled_and_logits(model: Any, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the pooled vectors and the logits of a BERT in float32."""
    pooled = model.bert(input_ids=ids, attention_mask=mask).pooler_output
    return pooled.float(), model.classifier(model.dropout(pooled)).float()


@torch.inference_mode()
def predict(model: Any, tokens: Tokens, share: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Compute pooled vectors and logits of all texts, in order, with a random `share` of the tokens."""
    device = tokens.flat.device
    generator = torch.Generator(device).manual_seed(seed)
    order = tokens.lengths.argsort()
    parts = []
    for rows in torch.split(order, 1024):
        ids, mask = tokens.batch(rows)
        if share < 1:
            mask = keep_random_tokens(mask, torch.full((len(rows),), share, device=device), generator)
        pooled, logits = pooled_and_logits(model, ids, mask)
        parts.append((pooled.half(), logits))
    back = order.argsort().to(device)
    pooled, logits = (torch.cat(column)[back] for column in zip(*parts, strict=True))
    return pooled, logits


def accuracy(
    model: Any, tokenizer: Tokenizer, examples: list[Example], device: torch.device
) -> dict[str, float]:
    """Compute the accuracy by share of tokens removed, over three random masks."""
    tokens = Tokens.from_texts([text for text, _ in examples], tokenizer, device)
    labels = torch.tensor([label for _, label in examples], device=device)
    shares = {}
    for removed in SHARES_REMOVED_WHEN_MEASURED:
        seeds = range(3) if removed else range(1)
        runs = [predict(model, tokens, 1 - removed, seed)[1].argmax(1) == labels for seed in seeds]
        shares[f"{removed:.0%} removed"] = round(torch.stack(runs).float().mean().item(), 4)
    return shares


def teacher_tokenizer(folder: Path, max_tokens: int) -> Tokenizer:
    """Return the teacher's tokenizer without its fixed padding."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def fine_tuned_teacher(
    folder: Path, corpus: Corpus, tokenizer: Tokenizer, plan: Plan, device: torch.device
) -> Any:
    """Train MiniLM on the labelled texts, counterfactually."""
    teacher: Any = AutoModelForSequenceClassification.from_pretrained(
        folder, num_labels=len(corpus.classes), dtype=torch.float32
    ).to(device)
    tokens = Tokens.from_texts([text for text, _ in corpus.labelled], tokenizer, device)
    labels = torch.tensor([label for _, label in corpus.labelled], device=device)

    def loss_of(rows: Tensor) -> Tensor:
        _, logits = pooled_and_logits(teacher, *twice(*tokens.batch(rows)))
        return functional.cross_entropy(logits, labels[rows.to(device)].repeat(2))

    rows = batches(torch.arange(len(labels)), tokens.lengths, plan.batch)
    steps = math.ceil(plan.teacher_epochs * len(labels) / plan.batch)
    optimise("teacher", teacher, loss_of, rows, steps=steps, seconds=plan.seconds(0.25), learning_rate=1e-4)
    return teacher


def new_tokenizer(texts: list[str], plan: Plan) -> Tokenizer:
    """Train a lower-case WordPiece tokenizer on `texts`."""
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL_TOKENS[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(
        texts,
        trainers.WordPieceTrainer(
            vocab_size=plan.vocabulary,
            special_tokens=SPECIAL_TOKENS,
            limit_alphabet=150,
            show_progress=False,
        ),
    )
    first, last = (SPECIAL_TOKENS.index(token) for token in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", last), ("[CLS]", first))
    tokenizer.enable_truncation(plan.max_tokens)
    return tokenizer


@torch.inference_mode()
def embeddings_from_teacher(
    teacher: Any, teacher_tokens: Tokenizer, vocabulary: dict[str, int], width: int
) -> Tensor:
    """Reduce the teacher's first and last hidden states of each token by PCA."""
    words = [word.removeprefix("##") for word in sorted(vocabulary, key=vocabulary.__getitem__)]
    tokens = Tokens.from_texts(words, teacher_tokens, teacher.device)
    views = []
    for rows in torch.split(torch.arange(len(words)), 1024):
        ids, mask = tokens.batch(rows)
        layers = teacher.bert(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        inner = not_special(mask)
        weights = (inner / inner.sum(1, keepdim=True).clamp(min=1))[:, :, None]
        views.append(torch.cat([(layers[end] * weights).sum(1) for end in (0, -1)], 1))
    view = torch.cat(views)
    view = (view - view.mean(0)) / view.std(0).clamp(min=1e-6)
    _, _, directions = torch.linalg.svd(view.T @ view)
    reduced: Tensor = view @ directions[:width].T
    return 0.05 * reduced / reduced.std()


def on_device(architecture: Any, config: BertConfig, device: torch.device) -> Any:
    """Return a new model with random weights."""
    return architecture(config).to(device)


def pretrained_encoder(
    config: BertConfig, words: Tensor, tokens: Tokens, rows: Tensor, plan: Plan
) -> tuple[BertModel, int]:
    """Train by masked language modelling: 15% of the tokens are predicted, 80% of them masked, 10% random."""
    device = words.device
    model = on_device(BertForMaskedLM, config, device)
    model.bert.embeddings.word_embeddings.weight.data.copy_(words)
    mask_token = SPECIAL_TOKENS.index("[MASK]")

    def loss_of(rows: Tensor) -> Tensor:
        ids, mask = tokens.batch(rows)
        chance = torch.rand(ids.shape, device=device)
        guessed = (chance < 0.15) & (ids >= len(SPECIAL_TOKENS))
        seen = ids.masked_fill(guessed & (chance < 0.12), mask_token)
        anything = torch.randint_like(ids, len(SPECIAL_TOKENS), config.vocab_size)
        seen = torch.where(guessed & (chance > 0.135), anything, seen)
        hidden = model.bert(input_ids=seen, attention_mask=mask).last_hidden_state
        return functional.cross_entropy(model.cls(hidden[guessed]).float(), ids[guessed])

    steps = optimise(
        "pretraining",
        model,
        loss_of,
        batches(rows, tokens.lengths, plan.batch),
        steps=plan.pretraining_steps,
        seconds=plan.seconds(0.25),
        learning_rate=1e-3,
    )
    return model.bert, steps


def distilled_student(
    encoder: BertModel,
    config: BertConfig,
    tokens: Tokens,
    labels: Tensor,
    lessons: tuple[Tensor, Tensor],
    *,
    plan: Plan,
) -> tuple[BertForSequenceClassification, int]:
    """Learn the teacher's logits and pooled vectors, and the labels (the teacher's where unknown)."""
    device = tokens.flat.device
    teacher_pooled, teacher_logits = lessons
    student = on_device(BertForSequenceClassification, config, device)
    student.bert.load_state_dict(encoder.state_dict(), strict=False)
    to_teacher = nn.Linear(config.hidden_size, teacher_pooled.shape[1]).to(device)
    known = labels != UNLABELLED
    targets = torch.where(
        known[:, None],
        functional.one_hot(labels.clamp(min=0), teacher_logits.shape[1]),
        teacher_logits.softmax(1),
    )

    def loss_of(rows: Tensor) -> Tensor:
        here = rows.to(device)
        pooled, logits = pooled_and_logits(student, *twice(*tokens.batch(rows)))
        whole = logits[: len(here)]
        target = (teacher_logits[here] / TEMPERATURE).softmax(1)
        guessed = (whole / TEMPERATURE).log_softmax(1)
        imitation = TEMPERATURE**2 * functional.kl_div(guessed, target, reduction="batchmean")
        hint = functional.mse_loss(to_teacher(pooled[: len(here)]).float(), teacher_pooled[here].float())
        return imitation + hint + 2 * functional.cross_entropy(logits, targets[here].repeat(2, 1))

    labelled = known.nonzero()[:, 0].cpu()
    unlabelled = (~known).nonzero()[:, 0].cpu()
    a_third_labelled = labelled.repeat(max(1, len(unlabelled) // (2 * len(labelled))))
    rows = torch.cat([a_third_labelled, unlabelled])
    steps = optimise(
        "distillation",
        nn.ModuleList([student, to_teacher]),
        loss_of,
        batches(rows, tokens.lengths, 2 * plan.batch),
        steps=plan.distillation_steps,
        seconds=plan.seconds(0.38),
        learning_rate=5e-4,
    )
    return student, steps


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Indented, with a final newline."""
    path.write_text(json.dumps(content, indent=2) + "\n")


def save_student(folder: Path, student: Any, tokenizer: Tokenizer, plan: Plan) -> Any:
    """Write the folder in float16, and return the model read from it in float32."""
    student.half().save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", {**config, "dtype": "float32"})  # transformers 5 then upcasts

    tokenizer.no_truncation()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    tokenizer.enable_truncation(plan.max_tokens)
    special = {f"{token[1:-1].lower()}_token": token for token in SPECIAL_TOKENS}
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, **special}
    write_json(folder / "tokenizer_config.json", {**settings, "model_max_length": plan.max_tokens})
    return AutoModelForSequenceClassification.from_pretrained(folder)


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Write the measures to card.json and README.md."""
    write_json(folder / "card.json", card)
    header = "| texts | " + " | ".join(next(iter(card["accuracy"].values()))) + " |"
    accuracies = [
        f"| {whose}, {split} | " + " | ".join(f"{value:.1%}" for value in found.values()) + " |"
        for whose, splits in (("this model", card["accuracy"]), ("its teacher", card["teacher_accuracy"]))
        for split, found in splits.items()
    ]
    lines = [
        f"# {card['name']}",
        "",
        f"A {card['parameters'] / 1e6:.1f}-million-parameter BERT that tells {', '.join(card['classes'])}.",
        "It was taught by a fine-tuned all-MiniLM-L6-v2 and trained counterfactually (Hase et al. 2021):",
        "every example was seen whole and with 5, 10, 20 or 50 % of its tokens, the others hidden by the",
        "attention mask. It is made for trying out explanations, not for decisions about people.",
        "",
        "Accuracy by share of tokens hidden at random (attention mask, mean of three draws):",
        "",
        header,
        "|---" * (header.count("|") - 1) + "|",
        *accuracies,
        "",
        "Data (rows): " + ", ".join(f"{name} {size:,}" for name, size in card["data"].items()) + ".",
        "Nothing was trained on, or chosen by, the dev and test texts.",
        f"Rights in the data: {card['rights']}",
        "",
        f"Rebuilt by `{card['command']}` (seed {card['seed']}; steps: {card['steps']}).",
    ]
    (folder / "README.md").write_text("\n".join(lines) + "\n")


def make_model(task: str, arguments: argparse.Namespace, plan: Plan, device: torch.device) -> None:
    """Run all stages for one task and write its folder."""
    torch.manual_seed(arguments.seed)
    corpus = CORPORA[task](arguments.data)
    if plan.texts:
        corpus = corpus.shortened(plan.texts)
    known = [text for text, _ in corpus.labelled]
    varied = variations(known + corpus.unlabelled, plan.variations, arguments.seed)
    texts = known + corpus.unlabelled + varied
    say(f"{task}: {len(known)} labelled, {len(corpus.unlabelled)} unlabelled, {len(varied)} varied texts")

    teachers = teacher_tokenizer(arguments.teacher, plan.max_tokens)
    teacher = fine_tuned_teacher(arguments.teacher, corpus, teachers, plan, device)
    teacher_accuracy = {
        split: accuracy(teacher, teachers, found, device) for split, found in corpus.measured.items()
    }
    say(f"teacher: {teacher_accuracy}")
    with bf16_on_gpu(device):
        lessons = predict(teacher, Tokens.from_texts(texts, teachers, device))
    say("teacher: all texts labelled")

    tokenizer = new_tokenizer(known + corpus.unlabelled, plan)
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=192,
        num_hidden_layers=4,
        num_attention_heads=6,
        intermediate_size=768,
        max_position_embeddings=plan.max_tokens,
        id2label=dict(enumerate(corpus.classes)),
        label2id={name: place for place, name in enumerate(corpus.classes)},
    )
    words = embeddings_from_teacher(teacher, teachers, tokenizer.get_vocab(), config.hidden_size)
    tokens = Tokens.from_texts(texts, tokenizer, device)
    say("student: tokens and word embeddings ready")
    not_short = (tokens.lengths[: len(texts) - len(varied)] >= 10).nonzero()[:, 0]
    encoder, pretraining_steps = pretrained_encoder(config, words, tokens, not_short, plan)
    labels = torch.full((len(texts),), UNLABELLED)
    labels[: len(known)] = torch.tensor([label for _, label in corpus.labelled])
    student, distillation_steps = distilled_student(
        encoder, config, tokens, labels.to(device), lessons, plan=plan
    )

    folder = arguments.out / task
    stored = save_student(folder, student, tokenizer, plan).to(device).eval()
    accuracies = {split: accuracy(stored, tokenizer, rows, device) for split, rows in corpus.measured.items()}
    say(f"student: {accuracies}")
    write_card(
        folder,
        {
            "name": task,
            "task": "text classification",
            "classes": corpus.classes,
            "data": corpus.sizes,
            "rights": corpus.rights,
            "accuracy": accuracies,
            "teacher": "all-MiniLM-L6-v2, fine-tuned",
            "teacher_accuracy": teacher_accuracy,
            "parameters": sum(parameter.numel() for parameter in stored.parameters()),
            "bytes": (folder / "model.safetensors").stat().st_size,
            "seed": arguments.seed,
            "steps": {"pretraining": pretraining_steps, "distillation": distillation_steps},
            "plan": asdict(plan),
            "command": "python scripts/train_embedded.py --data DATA --teacher MINILM --out OUT "
            f"--task {task} --seed {arguments.seed} --steps {arguments.steps} --minutes {arguments.minutes}",
        },
    )


def pack(arguments: argparse.Namespace) -> None:
    """Write the texts and a float16 teacher, to transfer them to a machine without pandas."""
    pack_texts(arguments.data, arguments.pack)
    folder = arguments.pack / "teacher"
    teacher: Any = BertModel.from_pretrained(arguments.teacher, dtype=torch.float16)
    teacher.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(arguments.teacher / name, folder / name)
    size = sum(path.stat().st_size for path in arguments.pack.rglob("*") if path.is_file())
    say(f"packed {size / 2**20:.1f} MiB")


def parsed_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets, or a pack")
    parser.add_argument("--teacher", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, help="folder for the models")
    parser.add_argument("--pack", type=Path, help="write a pack here, and nothing else")
    parser.add_argument("--task", choices=[*CORPORA, "both"], default="both")
    parser.add_argument("--minutes", type=float, default=Plan.minutes_per_task, help="per task, at most")
    parser.add_argument("--steps", type=float, default=1.0, help="multiplies the student's steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tar", type=Path, help="also write TASK.tar into this folder")
    parser.add_argument("--smoke", action="store_true", help="a few steps of everything")
    arguments = parser.parse_args()
    if not (arguments.out or arguments.pack):
        parser.error("one of --out and --pack is needed")
    return arguments


def main() -> None:
    """Pack the data, or train the models."""
    arguments = parsed_arguments()
    if arguments.pack:
        pack(arguments)
        return
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    plan = SMOKE if arguments.smoke else Plan(minutes_per_task=arguments.minutes).times(arguments.steps)
    tasks = list(CORPORA) if arguments.task == "both" else [arguments.task]
    for task in tasks:
        make_model(task, arguments, plan, device)
        if arguments.tar:
            arguments.tar.mkdir(parents=True, exist_ok=True)
            with tarfile.open(arguments.tar / f"{task}.tar", "w") as archive:
                archive.add(arguments.out / task, arcname=task)
    say("done")


if __name__ == "__main__":
    main()
