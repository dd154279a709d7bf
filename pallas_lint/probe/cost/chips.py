"""TPU generations: the figures that decide the cost of a schedule, for one TensorCore."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    """One generation. `granule`: bytes in which copies are counted; `mxu`: rows and columns of a matrix unit."""

    clock: float  # GHz
    peak: float  # TFLOP/s of products in bfloat16
    bandwidth: float  # GB/s between HBM and the core
    granule: int = 32
    cores: int = 1  # among which a launch is split, if an axis of its grid is parallel
    mxu: int = 128
    narrow: bool = False  # computes in bfloat16, too
    link: float = 50.0  # GB/s to a neighbour, for each device of a chip: those of all ports by their number
    ports: int = 4  # to neighbours: of a torus of two dimensions, or of three
    startup: float = 2290.0  # nanoseconds until a neighbour has the first byte


# Clocks and bandwidths are Google's: of the system architecture pages, where a chip has two cores each has half of its
# bandwidth; clocks from the peak rates (v5e: 197 TFLOP/s = 4 units x 128 x 128 x 2 x 1.5 GHz). The cores of a tpu7x are
# devices of their own; of v4, libtpu 0.0.42 and 0.0.50 compile launches for one core, whatever their axes are. While
# the other core is idle, copies of a v4 reach 957 GB/s read and 1020 written (published by ayaka14732), not half of
# the chip's 1228: with the efficiency below, that is a bandwidth of 1041. Of v5p it is not known.
# Copies to neighbours: marin (issue 6736) measured 4.55 us + bytes / 86.3 GB/s on v5p, 2.29 us + bytes / 86.8 GB/s
# on v6e for `ppermute`, 4.5 to 5.9 us for a few KiB. Of other chips no start-up is published: they have that of v6e.
# The two cores of a tpu7x share the ports of their chip: Google's all-gathers get 89 GB/s each over two ports of 100.
CHIPS = {
    "v4": Chip(clock=1.05, peak=137.5, bandwidth=1041.0, granule=512, ports=6),
    "v5e": Chip(clock=1.50, peak=197.0, bandwidth=819.0),
    "v5p": Chip(clock=1.75, peak=229.5, bandwidth=1382.5, cores=2, link=100.0, ports=6, startup=4550.0),
    "v6e": Chip(clock=1.75, peak=918.0, bandwidth=1640.0, mxu=256, narrow=True, link=100.0),
    "tpu7x": Chip(clock=2.20, peak=1153.5, bandwidth=3690.0, mxu=256, narrow=True, ports=6),
}


@dataclass(frozen=True)
class HbmTiming:
    """How HBM answers: the share of the bandwidth that copies reach, and nanoseconds until the first byte.

    The same for copies to neighbours: `links` and `startup`, None where the chip's own is taken.
    """

    efficiency: float
    latency: float
    links: float
    startup: float | None = None


# From figures that were published for v4, chosen before anything was predicted; low and high are what others measured.
LIKELY = HbmTiming(0.92, 430.0, 0.865)
FASTEST = HbmTiming(0.95, 300.0, 0.92, 1000.0)  # links: published for kernels that gather on v5p
SLOWEST = HbmTiming(0.80, 600.0, 0.75, 5900.0)
