"""``python -m xmodal`` and ``torchrun … -m xmodal`` are the command ``xmodal``."""

from xmodal.cli import main

if __name__ == '__main__':
    main()
