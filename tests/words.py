"""The words of the project: one word for one thing, and the word of the field before one of our own.

Looks through code, documentation and help for words that have a better one, and says which. A file that may keep a word
for now is listed below, in ALLOWED; the list only gets shorter: an entry that is not needed any more is an error, too.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOOKED_AT = [
    "*.md", "docs/*.md", ".github/**/*.md", "crates/*/README.md", "crates/**/*.rs", "crates/**/*.py", "crates/**/*.pyi",
    "experiments/**/*.rs", "fuzz/**/*.rs", "examples/*.py", "benches/*.py", "tests/*.py", "run",
]

# What may not be written, as a regular expression, and what to write.
WORDS = {
    r"\b(brought|brings?|bringing|comes?|coming) to rest\b": "converge",
    r"\bat rest\b": "converged",
    r"\bexplain(s|ed|ing)? anew\b": "re-fit",
    r"\bloans?\b|\blend(s|ing|er)?\b|\blent\b": "transfer",
    r"\bborrow(s|ed|ing)? (from )?(a |the |other |another )?(component|feature|part)s?\b": "transfer",
    r"\bdear\b|\bdearest\b": "costly, and say by how much",
    r"\bfore(tell|tells|told|telling)\b": "predict",
    r"\bmended\b": "fixed, repaired",
    r"\bthousand million\b": "a figure: 4e9",
    r"\bso ?manieth\b": "nth, or the number",
    r"\bthe evidence (does not |doesn't )?wants?\b": "supports (the evidence supports a component)",
    r"\bfrom what is left\b": "from the residual",
}

# The component is a component in the mathematics and in the code; it is a part for people who listen. These pages are of
# the first kind.
PAGES = ["start", "model", "search", "engines", "noise", "sure", "large", "rust", "for-signatures", "for-cells"]
PART = r"\bparts\b(?! of)"

# What may keep such words for now: beginnings of paths. An entry under which nothing is found any more is named, so that
# the list gets shorter.
ALLOWED = [
    "crates/bpnmf/src/infer/",
    "crates/bpnmf/src/meanfield/",
    "crates/bpnmf/src/plan/",
    "crates/bpnmf/src/search/",
]


def rules(name):
    """The patterns for a file, with what to write instead."""
    page = name.removeprefix("docs/").removesuffix(".md")
    return {**WORDS, PART: "components"} if name.startswith("docs/") and page in PAGES else WORDS


def main():
    files = sorted({path for pattern in LOOKED_AT for path in ROOT.glob(pattern) if path.is_file()})
    own = pathlib.Path(__file__).resolve()
    wrong, used = [], set()
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        if path == own or "/target/" in f"/{name}":
            continue
        text = path.read_text(encoding="utf-8")
        for pattern, better in rules(name).items():
            for found in re.finditer(pattern, text, flags=re.IGNORECASE):
                allowed = next((start for start in ALLOWED if name.startswith(start)), None)
                if allowed:
                    used.add(allowed)
                    continue
                line = text.count("\n", 0, found.start()) + 1
                wrong.append(f"{name}:{line}: {found.group()!r}: write {better}")
    for start in ALLOWED:
        if start not in used:
            print(f"tests/words.py: {start} is clean: remove it from ALLOWED", file=sys.stderr)
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
