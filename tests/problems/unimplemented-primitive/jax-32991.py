# jax issue 32991: running totals inside a TPU kernel
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL101
# static: yes
# call: token_offsets(i32(8, 256))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LANES = 128


class Offsets:
    """Positions of the tokens of each expert."""

    def __init__(self, experts, tokens):
        self.experts = experts
        self.tokens = tokens

    def _body(self, counts_ref, offsets_ref):
        counts = counts_ref[...].astype(jnp.float32)
        inclusive = jnp.cumsum(counts, axis=1)  #!
        offsets_ref[...] = (inclusive - counts).astype(jnp.int32)

    def __call__(self, counts):
        return pl.pallas_call(
            self._body,
            grid=(self.tokens // LANES,),
            in_specs=[pl.BlockSpec((self.experts, LANES), lambda i: (0, i))],
            out_specs=pl.BlockSpec((self.experts, LANES), lambda i: (0, i)),
            out_shape=jax.ShapeDtypeStruct((self.experts, self.tokens), jnp.int32),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        )(counts)


def token_offsets(counts):
    experts, tokens = counts.shape
    return Offsets(experts, tokens)(counts)
