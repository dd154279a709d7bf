import jax
import jax.experimental.pallas as pl


def copy(src, dst):
    dst[...] = src[...]


def upsample(x):
    steps = 2 * x.shape[0] // 8
    return pl.pallas_call(
        copy,
        grid=(steps,),
        in_specs=(pl.BlockSpec(block_shape=(8, 128), index_map=lambda i: (i // 2, 0)),),
        out_specs=pl.BlockSpec(block_shape=(8, 128), index_map=lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((8 * steps, 128), x.dtype),
    )(x)
