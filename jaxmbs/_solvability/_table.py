from collections.abc import Sequence


def format_table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Columns padded to one width, with a rule under the header."""
    widths = [max(len(line[k]) for line in (header, *lines)) for k in range(len(header))]

    def join(line: Sequence[str]) -> str:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([join(header), rule, *(join(line) for line in lines)])
