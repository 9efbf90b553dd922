"""The text of the study of depth against width: python benchmarks/scale_text.py --out text.

Documentation in English and source code that come with packages: the documentation of Linux (Debian's linux-doc-6.1,
GPL-2) and of Python (Debian's python3.11-doc, PSF licence), both as the reStructuredText that their pages are made of,
and the library of Python 3.11 (PSF licence), its tests apart. About 47 MB in 4,300 documents. Debian's packages are
unpacked (`dpkg-deb -x FILE.deb FOLDER`) or installed; --root says where. The digest is printed, and compared with that
of the study: other versions have another text. The study's are linux-doc-6.1 6.1.190-1, python3.11-doc
3.11.2-6+deb12u9 (`apt-get download linux-doc-6.1=6.1.190-1`) and Python 3.11.7.
"""

from __future__ import annotations

import argparse
import shutil
import sysconfig
from pathlib import Path

from theodolite.claims.tensors.t9_regimes import DIGEST
from theodolite.tasks.shared.corpus import PYTHON, files_of, read_corpus

PARTS = {
    "linux": "usr/share/doc/linux-doc-6.1/html/_sources",
    "python": "usr/share/doc/python3.11/html/_sources",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--root", type=Path, nargs="+", default=[Path("/")], help="where packages are unpacked")
    options = parser.parse_args()
    if options.out.exists():
        raise SystemExit(f"'{options.out}' is there already: name a new folder")
    for name, place in PARTS.items():
        found = [root / place for root in options.root if (root / place).is_dir()]
        if not found:
            raise SystemExit(f"there is no {place} under {', '.join(map(str, options.root))}: unpack the package there")
        shutil.copytree(found[0], options.out / name)
    library = Path(sysconfig.get_path("stdlib"))
    for path in files_of(PYTHON):
        target = options.out / "library" / path.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    digest = read_corpus(str(options.out)).digest
    print(f"{options.out}: {digest}, {'the text' if digest == DIGEST else f'not the text ({DIGEST})'} of the study")


if __name__ == "__main__":
    main()
