"""`python -m theodolite`: the command line where its script is not on the path."""

from theodolite.cli.main import run

if __name__ == "__main__":
    run()
