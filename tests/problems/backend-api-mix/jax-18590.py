# jax issue 18590: the attention kernel for GPUs, taken on TPU
# jax: 0.9.2
# target: tpu
# expect: PAL701
# static: yes
# fails: import

import jax
from jax.experimental.pallas.ops import attention  #!


@jax.jit
def self_attention(q, k, v):
    return attention.mha(q, k, v, segment_ids=None)
