"""`medusa heads`: show heads and other drafters, convert Medusa heads."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `heads`."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="describe heads or another drafter")
    show.add_argument("source", type=Path, help="folder or GGUF file of the heads")
    show.set_defaults(run=run_show)
    convert = actions.add_parser("convert", help="write Medusa heads in another format")
    convert.add_argument("source", type=Path, help="folder with Medusa heads")
    convert.add_argument("out", type=Path, help="folder to write to")
    convert.add_argument("--to", required=True, help="v0.1, v2 or vllm")
    convert.add_argument("--model", type=Path, help="their model, for heads that share its lm_head")
    convert.set_defaults(run=run_convert)


def run_show(args: argparse.Namespace) -> int:
    """Print format, counts and sizes."""
    from medusa_core.heads.head_files import open_head_files
    from medusa_core.heads.kind import kind_of, shape_of_files
    from medusa_core.heads.reader import read_head_set

    files = open_head_files(args.source)
    kind = kind_of(files.checkpoint.names)
    if kind.name != "medusa":
        shape = shape_of_files(files)
        print(f"kind            {kind.name}")
        print(f"heads           {shape.num_heads}")
        print(f"layers          {shape.num_layers}")
        print(f"hidden size     {shape.hidden_size}")
        projection = f"{shape.columns:,} tokens" if shape.columns else "the model's own"
        print(f"projection      {projection}")
        print(f"numbers         {sum(r * c for r, c in shape.matrices) + shape.num_biases:,}")
        return 0
    heads, spec = read_head_set(args.source, None)
    tensors = [t for head in heads.heads for pair in head.layers for t in pair if t is not None]
    projections = [heads.projection, *(head.projection for head in heads.heads)]
    tensors += [projection for projection in projections if projection is not None]
    vocabulary = "the model's own" if heads.num_columns is None else f"{heads.num_columns:,} tokens"
    if heads.projection is not None:
        vocabulary += ", one for all"
    print(f"format          {spec.name}")
    print(f"heads           {len(heads.heads)}")
    print(f"residual layers {heads.num_layers}")
    print(f"they read       {'state and root' if heads.reads_root else 'the state'}")
    print(f"hidden size     {heads.hidden_size}")
    print(f"projection      {vocabulary}" + (", mapped" if heads.token_map is not None else ""))
    print(f"bytes           {sum(tensor.nbytes for tensor in tensors):,}")
    return 0


def run_convert(args: argparse.Namespace) -> int:
    """Convert Medusa heads to another format."""
    from medusa_core.heads.reader import read_head_set
    from medusa_core.heads.writer import copy_trees, with_projection, write_heads
    from medusa_core.models.model_files import ModelFiles

    heads, _ = read_head_set(args.source, None)
    if args.model is not None and heads.num_columns is None:
        checkpoint = ModelFiles.open(args.model).checkpoint()
        tied = "lm_head.weight" not in checkpoint.names
        name = "model.embed_tokens.weight" if tied else "lm_head.weight"
        heads = with_projection(heads, checkpoint.floats(name, None))
    base_model = "N/A" if args.model is None else args.model.name
    path = write_heads(heads, args.to, args.out, base_model)
    copy_trees(args.source, args.out)
    print(path)
    return 0
