"""Completions of a shell where a model is expected."""

from pathlib import Path

from .. import mechanisms


def complete_built_in(incomplete: str) -> list[tuple[str, str]]:
    """Built-in mechanisms that begin so, with what each is."""
    names = [name for name in mechanisms.names() if name.startswith(incomplete)]
    return [(name, mechanisms.describe(name)) for name in names]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """Built-in mechanisms, model files and folders that begin so."""
    return [*complete_built_in(incomplete), *_files(incomplete)]


def _files(incomplete: str) -> list[tuple[str, str]]:
    head, name = incomplete.rpartition("/")[::2]
    folder = Path(f"{head}/" if "/" in incomplete else ".")
    try:
        found = sorted(path for path in folder.iterdir() if path.name.startswith(name))
        kinds = [(path, path.is_dir()) for path in found if name or path.name[0] != "."]
    except OSError:
        return []
    before = incomplete.removesuffix(name)
    folders = [(f"{before}{path.name}/", "folder") for path, is_folder in kinds if is_folder]
    models = [p.name for p, is_folder in kinds if not is_folder and p.suffix == ".toml"]
    return [*((f"{before}{model}", "model file") for model in models), *folders]
