import jax.numpy as jnp

head_dim = 8


def norms(x):
    heads = x.reshape(x.shape[0], -1, head_dim)
    return (heads / jnp.linalg.norm(heads, axis=-1, keepdims=True)).reshape(x.shape)
