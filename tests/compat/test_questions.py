"""Questions as people ask them, with what a kernel author needs to read in the answer."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint import compat
from pallas_lint.cli.support import answer as run
from pallas_lint.compat import query_results, question
from pallas_lint.compat.cells import rows_of
from pallas_lint.compat.forms import in_words
from pallas_lint.compat.question import Question
from pallas_lint.compat.tables import functions
from tests.sampling import by_day, examples

# question → words that must stand in the answer; those behind "!" must not.
QUESTIONS = {
    # functions, as they are spelled
    "jnp.cumsum": "tpu: does not lower | triton: works | jnp.triu | query: !",
    "cumsum": "jnp.cumsum | also | primitive",
    "jax.numpy.cumsum": "jnp.cumsum",
    "jnp.cumsum()": "jnp.cumsum",
    "`jnp.cumsum`": "jnp.cumsum",
    "lax.rem": "lax.rem | tpu: works",
    "%": "operator:% ! | lax.rem",
    "jnp.isfinite": "jnp.isfinite | triton",
    "x.sum": "x.sum()",
    "at.add": "x.at",
    "softmax": "jax.nn.softmax",
    "jax.nn.gelu": "with approximate=False",
    "jnp.einsum": "of ij,jk",
    "lax.fori_loop": "lax.fori_loop",
    "jnp.take": "take_along_axis",
    "jnp.argmax": "axis=0, keepdims=False",
    "jnp.dot": "preferred_element_type",
    "lax.erf": "mosaic-gpu: works | tpu",
    "pl.load": "deprecated since 0.7.1 | removed in 0.9.0 | instead",
    "pl.pallas_call": "parameters in",
    "pltpu.roll": "pltpu.roll",
    "plgpu.wgmma": "plgpu.wgmma",
    "is_finite": "primitive | jax.lax.is_finite",
    "sort_p": "lax.sort_p",
    # with a dtype, a backend, a release
    "argsort bf16 tpu": "query: argsort of bf16 on tpu | tpu: bf16 no | triton: !",
    "jnp.tanh bf16": "triton: bf16 no | tpu: bf16 compiles",
    "tanh bfloat16 triton": "triton: bf16 no | tpu: !",
    "jnp.tanh float32 gpu": "triton: f32 runs | mosaic-gpu: f32 lowers | tpu: !",
    "sort v5e 0.10": "tpu (v5e): does not lower in jax 0.10.2 | triton: !",
    "jnp.sum tpu 0.8": "0.8.3 | jax 0.12 !",
    "jnp.max i8 v6e": "tpu (v6e)",
    "erf mosaic-gpu 0.12": "mosaic-gpu: works in jax 0.12.0.1",
    "erf warpgroup": "mosaic-gpu (warpgroup): does not lower",
    "erf lane": "mosaic-gpu (lane): works",
    "jnp.exp jax 0.6": "0.6.2",
    "jnp.exp jax==0.10.2": "in jax 0.10.2",
    "cumsum cuda": "triton: works | tpu: !",
    "cumsum rocm": "triton (rocm): works | mosaic-gpu: !",
    "cumsum tpu:v5e": "tpu (v5e)",
    "jnp.where fp16 tpu": "tpu: f16 no load",
    "matmul int8 tpu": "query: matmul of i8 on tpu",
    "jnp.exp float8": "float8 was not measured | pallas-lint probe",
    "can I use jnp.where in a kernel on tpu?": "query: jnp.where on tpu | tpu: works",
    "does jnp.sort work on triton": "triton: does not lower",
    "is jnp.cumsum supported on tpu?": "tpu: does not lower",
    "lax.atan2 mosaic-gpu": "in Lane semantics it works, in Warpgroup semantics it does not",
    "tanh bf16 rocm": "triton (rocm): bf16 lowers | bf16 no !",
    "jnp.exp triton": "with jax 0.11.2",
    "fori_loop f16 tpu": "tpu: f16 no load; in general:",
    "sort jax>=0.8,<0.11": "query: sort in jax 0.8.3, 0.9.2, 0.10.2 jnp.sort",
    "jnp.sort >=0.10": "0.10.2 | 0.12.0.1 | 0.9.2 !",
    "sort 0.1": "error: support: no release 0.1 of jax is known",
    "tanh v4": "tpu (v4): works in jax 0.12.0.1",
    "tanh v4 0.7": "the compiler was run for v5e and v6e, not for v4 | tpu: works",
    "dot_general batched mosaic gpu sm90": "mosaic-gpu: does not lower | triton: !",
    "take along axis": "jnp.take_along_axis",
    "jnp cumsum": "jnp.cumsum | names, in jax !",
    "tpu": "error: support: name a function",
    "x.at[i].set": "x.at",
    "jnp.cumsum(x, axis=0)": "jnp.cumsum",
    "f32[8,128]": "f32  dtype",
    "tl.load": "of another framework",
    "np.random.normal": "use `jax.random.normal`",
    "torch.nn.functional.softmax": "jax.nn.softmax",
    "sort 0.10.1": "0.10.1 was not measured: 0.9.2 is used for it",
    "pltpu.roll triton": "it is a function of tpu kernels",
    # with a form
    "dot_general batch dims": "with batch dimensions: tpu some, triton no, mosaic-gpu no",
    "dot_general batch triton": "with batch dimensions: triton no | tpu: !",
    "sum axis 1 tpu": "axis=1: tpu some",
    "argmax axis 0": "axis=0",
    "gelu approximate": "with approximate=True",
    "lax.top_k unstable": "with is_stable=False",
    # many at once
    "jnp.c*": "jnp.cumsum: tpu no, triton yes | jnp.clip",
    "jnp.cums*": "jnp.cumsum: tpu no | 1 names",
    "lax.*_and": "lax.bitwise_and",
    "pl.*multiple*": "pl.multiple_of",
    "jax.random": "jax.random.uniform | names, in jax",
    "jnp": "jnp.abs: | jnp.zeros",
    "lax": "lax.add:",
    "pltpu": "pltpu.CompilerParams | pltpu.roll",
    "jax.nn": "jax.nn.softmax: | jax.nn.relu",
    "jnp.zzz*": "nothing is known",
    # what is no function for kernels
    "numpy.cumsum": "no kernel can call it | use `jnp.cumsum` | method !",
    "np.exp": "use `jnp.exp`",
    "torch.cumsum": "of another framework | jnp.cumsum | method !",
    "scipy.special.erf": "jax.scipy.special.erf",
    "math.exp": "use `jnp.exp`",
    # dtypes
    "bf16": "blocks of bf16 can be loaded | functions take it",
    "bfloat16": "bf16  dtype",
    "f16": "tpu: blocks of f16 cannot be loaded | triton: blocks of f16 can be loaded",
    "float8": "no operand of float8 was measured | a cast to it",
    "int4": "no operand of int4 was measured",
    "float64": "no operand of float64 was measured",
    "uint8": "no operand of uint8 was measured",
    "complex64": "no operand of complex64 was measured | pallas-lint probe",
    # in the words of a kernel author
    "can I use jnp.argmax along axis 0 on tpu bf16": "bf16 on v6e, tpu7x, not on v4, v5e, v5p | axis=0: tpu some",
    "argmax bf16 v6e axis 0": "tpu (v6e): bf16 compiles",
    "lax.top_k bf16 v6e unstable": "with is_stable=False: tpu yes",
    "lax.top_k bf16 v5p unstable": "with is_stable=False: tpu no",
    "roll": "pltpu.roll | it is a function of tpu kernels | also jnp.roll",
    "fp8 dot": "taken for `jnp.dot` | fp8 was not measured | pl.dot !",
    "atomic add": "pltriton.atomic_add | plgpu.atomic_add",
    "atomic": "plgpu.atomic_add | pltriton.atomic_cas",
    "while loop": "lax.while_loop | triton: works",
    "for loop tpu": "lax.fori_loop | triton: !",
    "if else": "lax.cond",
    "condition": "lax.cond",
    "sort v6e": "tpu (v6e): does not lower | by scalar prefetch",
    "sort sm90": "mosaic-gpu: does not lower",
    "prng": "pltpu.prng_seed | pltpu.prng_random_bits",
    "random bits tpu": "pltpu.prng_random_bits | tpu: works",
    "conv": "lax.conv | triton: does not lower | pltpu.conv",
    "conv2d": "lax.conv_general_dilated",
    "einsum bf16 tpu": "tpu: bf16 some | preferred_element_type=jnp.float32",
    "gather": "lax.gather | index the ref, not the loaded value",
    "scatter": "lax.scatter | store into the ref",
    "dynamic slice tpu": "lax.dynamic_slice | tpu: does not lower | `ref[pl.ds(start, size), :]`",
    "fft": "lax.fft | whether a kernel can call it was not measured",
    "bool reduce": "jnp.any | triton: does not lower",
    "top_k": "top_k | k rounds of max and mask",
    "associative_scan": "steps of roll and combine | tpu: does not lower",
    "scan": "lax.scan",
    "jax.nn.gelu bf16 triton": "triton: bf16 no",
    "jax.nn.softmax tpu bf16": "tpu: bf16",
    "exp2": "jnp.exp2 | triton: works",
    "logsumexp": "jax.nn.logsumexp | mosaic-gpu: does not lower",
    "one_hot tpu": "jax.nn.one_hot | tpu: works",
    "broadcasted iota": "lax.broadcasted_iota",
    "bitcast": "pltpu.bitcast",
    "shift": "lax.shift_left | jnp.right_shift",
    "popcount": "lax.population_count",
    "rsqrt bf16 tpu": "lax.rsqrt | tpu: bf16 compiles",
    "transpose tpu": "jnp.transpose | tpu: works",
    "reshape tpu 0.6": "reshape on tpu in jax 0.6.2 | unsupported shape cast",
    "print": "pl.debug_print | does not support placeholders",
    "masked load triton": "pltriton.load",
    "mask": "jnp.where",
    "vmap": "jax.vmap",
    "jax.grad": "jax.grad | no reverse-mode derivative of a launch",
    "pl.when": "pl.when | tpu: works",
    "semaphore": "pl.semaphore | use pl.semaphore instead",
    "async copy": "pltpu.async_copy",
    "jnp.median": "sorting outside the kernel",
    # nothing
    "jnp.linalg.norm": "nothing is known | pallas-lint probe | did you mean !",
    "jnp.linalg.*": "nothing is known",
    "layer_norm": "nothing is known | pallas-lint probe",
    "jnp.comsum": "nothing is known | jnp.cumsum",
    "banana": "nothing is known",
}


def answered(words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = run(words)
    reported = capsys.readouterr()
    return status, " ".join((reported.out + reported.err).split())


@pytest.mark.parametrize("words", by_day(QUESTIONS))
def test_questions(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, reported = answered(words, capsys)
    assert status == (2 if QUESTIONS[words].startswith(("nothing is known", "error")) else 0), reported
    for part in QUESTIONS[words].split(" | "):
        wanted = " ".join(part.removesuffix("!").split())
        assert (wanted in reported) is not part.endswith("!"), f"{wanted!r} in {reported}"


@pytest.mark.parametrize("words", ["jnp.cumsum", "dot_general batch dims", "jax.random", "f16", "pl.pallas_call", "%"])
@pytest.mark.parametrize("columns", [50, 60, 100])
def test_answers_fit(
    words: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []


def test_what_was_understood() -> None:
    read = question.read(["argsort, bf16 on tpu:v5e in jax 0.10 please?"], query_results.is_name)
    assert read == Question(("argsort",), ("bf16",), ("tpu",), ("v5e",), ("0.10.2",), ("please",))
    assert question.read(["jnp.sum"], query_results.is_name).plain
    assert question.known("0.10") == "0.10.2"
    with pytest.raises(ValueError, match=r"no release 0\.3 of jax"):
        question.known("0.3")


@examples(100)
@given(
    st.lists(st.sampled_from(["jnp.sum", "sum", "bf16", "tpu", "v5e", "0.10", "axis", "1", "*", ".", "%", "é", "?"]))
)
def test_any_words_are_read(words: list[str]) -> None:
    read = question.read(words or ["x"], query_results.is_name)
    assert isinstance(query_results.look_up(read, ("tpu", "triton", "mosaic_gpu"), ()), list)


def test_every_form_has_words() -> None:
    variants = {variant for name in compat.function_names() for variant in rows_of(functions(), name)}
    arguments = ("preferred_element_type", "is_stable")
    reported = {variant: in_words(variant) for variant in variants}
    for argument in arguments:
        reported = {variant: text.replace(argument, "") for variant, text in reported.items()}
    assert [variant for variant, text in reported.items() if "_" in text] == []


def test_data_have_the_evidence_of_a_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jnp.tanh", output_format="json") == 0
    (match,) = json.loads(capsys.readouterr().out)["matches"]
    states = {backend: shown["states"]["f32"][-1] for backend, shown in match["backends"].items()}
    assert states == {"tpu": "compiles", "triton": "runs", "mosaic_gpu": "lowers"}
    assert match["backends"]["tpu"]["unloadable"] == ["f16"]
