"""``python -m holdfast``, which is the command ``holdfast``."""

from holdfast.cli.main import main

if __name__ == "__main__":
    main()
