"""The book and every other document: each page has a place, each link leads somewhere.

    tests/book.py                   the sources: docs/ and the documents of the repository
    tests/book.py target/book       and the pages that mdbook made of them
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
BOOK = ROOT / "docs"
DOCUMENTS = ["*.md", "docs/*.md", "crates/*/README.md", ".github/*.md", ".github/*/*.md"]
ELSEWHERE = ("http://", "https://", "mailto:")


def prose(text):
    """The text without code, whose brackets are no links."""
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def links(text):
    return [target.strip("<>") for target in re.findall(r"\]\(([^)\s]+)\)", prose(text))]


def anchors(path):
    """The anchors of the headings of a page, as code hosts and mdbook make them."""
    seen, found = {}, set()
    text = re.sub(r"^( *)(```|~~~).*?^\1\2", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        number = seen.get(name, 0)
        seen[name] = number + 1
        found.add(name if number == 0 else f"{name}-{number}")
    return found


def places():
    """Every page of docs/ is in the table of contents once, and nothing else is."""
    listed = links((BOOK / "SUMMARY.md").read_text(encoding="utf-8"))
    pages = {path.name for path in BOOK.glob("*.md")} - {"SUMMARY.md"}
    for page in sorted(pages - set(listed)):
        yield f"docs/{page} has no place: add it to docs/SUMMARY.md"
    for page in sorted(set(listed) - pages):
        yield f"docs/SUMMARY.md names {page}, which is not in docs/"
    for page in sorted({page for page in listed if listed.count(page) > 1}):
        yield f"docs/SUMMARY.md names {page} more than once"


def sources():
    """Links between files of the repository, with their anchors; a page of the book stays within the book."""
    for path in sorted({path for pattern in DOCUMENTS for path in ROOT.glob(pattern)}):
        name = path.relative_to(ROOT)
        for target in links(path.read_text(encoding="utf-8")):
            if target.startswith(ELSEWHERE):
                continue
            place, _, anchor = target.partition("#")
            file = (path.parent / urllib.parse.unquote(place)).resolve() if place else path
            if not file.exists():
                yield f"{name}: {target} leads nowhere"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{name}: {target}: there is no such heading"
            elif path.parent == BOOK and file.parent != BOOK:
                yield f"{name}: {target} leads out of the book: name the file instead"


class Page(html.parser.HTMLParser):
    """The addresses and the names in a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value and tag != "base":
                self.addresses.append((tag, value))
            elif name in ("id", "name") and value:
                self.names.add(value)


def built(folder):
    """The pages that were built: links lead somewhere, and nothing is loaded from elsewhere."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in folder.glob("**/*.html")}
    if len(pages) < len(list(BOOK.glob("*.md"))) - 1:
        yield f"{folder} has only {len(pages)} pages"
    for path, page in pages.items():
        # This one is shown at any address.
        if path.name == "404.html":
            continue
        for tag, address in page.addresses:
            if address.startswith(ELSEWHERE):
                if tag != "a":
                    yield f"{path.name} loads {address}: the book needs no network"
                continue
            if address.startswith("data:"):
                continue
            place, _, anchor = address.partition("#")
            file = (path.parent / urllib.parse.unquote(place)).resolve() if place else path
            if not file.exists():
                yield f"{path.name}: {address} leads nowhere"
            elif anchor and file in pages and urllib.parse.unquote(anchor) not in pages[file].names:
                yield f"{path.name}: {address}: there is no such heading"


def main():
    wrong = [*places(), *sources()]
    for folder in sys.argv[1:]:
        wrong += built(pathlib.Path(folder))
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
