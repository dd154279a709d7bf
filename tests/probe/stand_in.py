"""Runs the stage for real devices with the CPU as a stand-in for one: `python -m tests.probe.stand_in FUNCTION HOW`.

HOW: "right"; "wrong", a device that computes something else; "broken", one that fails. Prints what the stage tells,
and at last the message for a whole function that returns ones instead of zeros.
"""

import json
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp

from pallas_lint.probe.worker import device_targets
from pallas_lint.probe.worker.launches.launch import describe
from pallas_lint.probe.worker.launches.recorder import LaunchRecorder
from pallas_lint.probe.worker.stages import device_run, interpret
from pallas_lint.probe.worker.tasks import problem
from tests.probe import kernels

name, how = sys.argv[1:]
KINDS = {"tpu:v5e": jax.devices("cpu")[0].device_kind, "tpu:v6e": "another"}
device_run.device_targets.parse = lambda text: SimpleNamespace(kind=KINDS[text])
COSTS = [
    {"target": "tpu:v6e", "microseconds": 9.0, "low": None, "high": None},
    {"target": "tpu:v5e", "microseconds": 2.25, "low": 2.0, "high": 2.75},
]
device_run.PLATFORMS = ("cpu",)
device_run.device_for = lambda launch: jax.devices("cpu")[0]


def run(launch, values, device):
    if how == "broken":
        raise jax.errors.JaxRuntimeError("INTERNAL: the device is gone")
    results = interpret.run(launch, values)
    return [result + (how == "wrong") for result in results], 2.5e-6


device_run._ran = run
recorder = LaunchRecorder()
recorder.install()
jax.make_jaxpr(getattr(kernels, name))(jnp.ones((32, 128), jnp.float32))
recorder.remove()
for record in [*recorder.records.values()] * 2:
    try:
        reported = device_run.examine(describe(record), COSTS)
    except device_targets.Missing as error:
        reported = {"ok": None, "detail": str(error)}
    except Exception as error:
        reported = {"ok": False, "problems": [problem(error)]}
    print(json.dumps(reported))
device_run._broken.clear()
print(json.dumps(device_run.compare(lambda: jnp.ones(4), jnp.zeros(4))))
