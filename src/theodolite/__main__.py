"""The command line, as a script and as `python -m theodolite`: what is stopped while it still starts ends in a word."""

import gc
import sys


def main() -> None:
    try:
        from theodolite.cli.main import run
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    try:
        run()
    finally:
        gc.freeze()  # the process ends: nothing of what is left needs to be gone through


if __name__ == "__main__":
    main()
