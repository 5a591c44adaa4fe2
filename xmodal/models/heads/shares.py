"""Shares of words, regions, patches and texts that a config names."""


def require_share(key: str, share: float, but_all: bool = False) -> None:
    """Refuses what is no share, as 15 for 15 %, of which all would be masked without a word.

    Args:
        key: the config key that names it, for errors.
        share: above 0.
        but_all: whether it must be below 1; else at most 1.

    Raises:
        ValueError: says what is expected.
    """
    if not 0 < share <= 1 or (but_all and share == 1):
        limit = 'below 1' if but_all else 'at most 1'
        raise ValueError(f'{key}={share}, expected a share above 0 and {limit} (0.15 for 15 %)')
