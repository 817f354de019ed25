"""Signal detection: telling a right offer from a wrong one, apart from the readiness to switch."""

from statistics import NormalDist


def log_linear(successes: float, n: float) -> float:
    """A rate with the log-linear correction, never 0 or 1 (Hautus, 1995)."""
    return (successes + 0.5) / (n + 1)


def d_prime(hits: float, n_hits: float, false_alarms: float, n_false_alarms: float) -> float:
    """Sensitivity d' = z(hit rate) - z(false-alarm rate), log-linear; 0 for who cannot tell.

    Args:
        hits: switches to a right offer.
        n_hits: right offers.
        false_alarms: switches to a wrong offer.
        n_false_alarms: wrong offers.
    """
    z = NormalDist().inv_cdf
    return z(log_linear(hits, n_hits)) - z(log_linear(false_alarms, n_false_alarms))


def criterion(hits: float, n_hits: float, false_alarms: float, n_false_alarms: float) -> float:
    """Criterion c = -(z(hit rate) + z(false-alarm rate)) / 2, log-linear; below 0 for who switches.

    Args:
        hits: switches to a right offer.
        n_hits: right offers.
        false_alarms: switches to a wrong offer.
        n_false_alarms: wrong offers.
    """
    z = NormalDist().inv_cdf
    return -(z(log_linear(hits, n_hits)) + z(log_linear(false_alarms, n_false_alarms))) / 2
