"""`python -m sluice_dev`, as `sluice dev`."""

from sluice_dev.commands import app

if __name__ == "__main__":
    app()
