#!/usr/bin/env python3
"""Writes privacy.json: epsilon of the subsampled Gaussian by other programs, and Renyi divergences by
quadrature. Needs pip install prv-accountant dp-accounting mpmath (made with 0.2.0, 0.6.0, 1.3.0)."""
import json
from pathlib import Path

import mpmath as mp
from dp_accounting import dp_event, pld
from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

COSTS = [
    (0.6, 0.01, 1000, 1e-6),
    (4.0, 0.2, 500, 1e-6),
    (0.9, 0.0005, 100000, 1e-8),
    (2.0, 0.5, 100, 1e-5),
    (0.4, 0.001, 2000, 1e-5),
    (0.8, 0.05, 50, 1e-9),
    (10.0, 0.9, 300, 1e-5),
    (1.2, 0.0001, 1, 1e-6),
]
ORDERS = [1.1, 1.5, 2, 2.7, 5, 7.3, 10.9, 12, 40]


def prv(sigma, rate, steps, delta):
    mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=rate)
    accountant = PRVAccountant(prvs=[mechanism], max_self_compositions=[steps], eps_error=0.005,
                               delta_error=delta / 1000)
    return float(accountant.compute_epsilon(delta=delta, num_self_compositions=[steps])[1])


def distribution(sigma, rate, steps, delta):
    """Of the privacy loss, rounded up: a bound, from another program than prv."""
    accountant = pld.PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(dp_event.PoissonSampledDpEvent(rate, dp_event.GaussianDpEvent(sigma)), steps)
    return float(accountant.get_epsilon(delta))


def renyi(sigma, rate, alpha):
    """log E[(mixture / N(0))^alpha] / (alpha - 1) under N(0), with 40 digits."""
    mp.mp.dps = 40
    s, q, a = mp.mpf(sigma), mp.mpf(rate), mp.mpf(alpha)

    def integrand(x):
        return mp.npdf(x, 0, s) * (1 - q + q * mp.exp((2 * x - 1) / (2 * s * s))) ** a

    peak = a
    places = sorted({-30 * s, mp.mpf(0), peak / 2, peak, peak + 10 * s, peak + 30 * s})
    return float(mp.log(mp.quad(integrand, places, maxdegree=10)) / (a - 1))


costs = [{"sigma": s, "rate": q, "steps": t, "delta": d, "prv": prv(s, q, t, d), "pld": distribution(s, q, t, d)}
         for s, q, t, d in COSTS]
orders = [{"sigma": s, "rate": q, "alpha": a, "renyi": renyi(s, q, a)} for s, q, _, _ in COSTS for a in ORDERS]
path = Path(__file__).with_name("privacy.json")
path.write_text(json.dumps({"written_by": "tests/golden/privacy.py", "costs": costs, "orders": orders}, indent=1) + "\n")
