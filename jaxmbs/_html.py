"""Short results as HTML, for notebooks: every text is escaped, and a table is a table."""

from collections.abc import Iterable, Sequence
from html import escape


def table(caption: str, header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table with a caption; the first cell of each line is that line's heading."""
    head = "".join(f'<th scope="col">{escape(word)}</th>' for word in header)
    body = "".join(f"<tr>{_cells(line)}</tr>" for line in lines)
    return (
        f'<table><caption style="text-align:left">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(line: Sequence[str]) -> str:
    first, *others = (escape(word) for word in line)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{word}</td>" for word in others)


def paragraphs(texts: Iterable[str]) -> str:
    """A paragraph for each text that is not empty."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def preformatted(text: str) -> str:
    """A text as it is printed."""
    return f"<pre>{escape(text)}</pre>"
