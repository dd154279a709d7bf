"""PAL704 backend-changed."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint import compat
from pallas_lint.api import NONE, Context, Edit, Example, Finding, Fix, Launch, Rule, Severity, Span
from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.compat.versions import CUDA_TRITON_AGAIN, parse
from pallas_lint.kernels.launches.backend import STRONG
from pallas_lint.kernels.model.known_names import PALLAS

_PARAMS_DECIDE = (0, 8)


class BackendChanged(Rule):
    """A launch on a GPU that leaves the choice of the backend to the jax version.

    `pl.pallas_call` without `compiler_params` is compiled by Triton up to jax 0.8, by Mosaic GPU in 0.9 and 0.10 (and
    in 0.11.0 and 0.11.1), and by Triton again from 0.11.2 on. The two take different kernels: what Triton compiles
    mostly fails on Mosaic GPU (it needs Hopper, blocks of 128 and its own copies), and on ROCm 0.9 and 0.10 refuse
    every launch that does not name Triton.

    ## How to fix

    Name the backend: `compiler_params=plgpu.CompilerParams()` from `jax.experimental.pallas.triton`. For Mosaic
    GPU launch with `plgpu.kernel`.

    ## Fix safety

    Unsafe: the backend that the launch is for is a conclusion from the code around it.

    ## Known limits

    For launches that the text does not show to be for a GPU, and that are not linted with `--target triton` or
    `--target mosaic-gpu`, an info at most. Parameters that may be passed by `**kwargs` are not known.

    ## References

    - jax documentation, "Pallas Changelog", 0.9.0 and 0.11.2.
    - Lowered for CUDA and ROCm with jax 0.4.35, 0.5.3, 0.6.2, 0.7.2, 0.8.3, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1, and
      the custom call read: `__gpu$xla.gpu.triton` or `mosaic_gpu_v2`.
    """

    code = "PAL704"
    name = "backend-changed"
    severity = Severity.WARNING
    fix = "unsafe"
    backends = frozenset({"triton", "mosaic_gpu"})
    runs_without_backend = True
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = plgpu.load(x_ref, mask=None)

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  #!-
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=plgpu.CompilerParams())(x)  #+
            """,  # noqa: E501
            jax=">=0.8,<0.11",
            run="run(f32(16, 128))",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = plgpu.load(x_ref, mask=None)

            def run(x):
                out = jax.ShapeDtypeStruct(x.shape, x.dtype)
                return pl.pallas_call(kernel, out_shape=out, compiler_params=plgpu.CompilerParams(num_warps=4))(x)
            """,
            jax=">=0.8,<0.11",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = plgpu.load(x_ref, mask=None)

            def run(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
            """,
            jax="0.12.0",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        target = context.target
        if launch.api != f"{PALLAS}.pallas_call" or launch.open or launch.interpret:
            return
        if launch.argument("compiler_params") not in (None, NONE) or launch.argument("backend") not in (None, NONE):
            return
        if target is None:
            yield from self._unknown(launch, context)
            return
        wanted = target.backend
        named = launch.backend == wanted and launch.evidence in STRONG
        if wanted == "mosaic_gpu" and not named and target not in context.settings.target:
            return  # the imports alone: it may be the other kind of launch that the file makes
        defaults = {version: compat.cuda_default(version) for version in context.versions}
        other = tuple(version for version, default in defaults.items() if default != wanted)
        if not other:
            return
        meant = BACKENDS[defaults[other[0]]]
        span = context.spelled_versions(other)
        if len(other) == len(context.versions):
            message = f"`pallas_call` without `compiler_params` is {meant} in jax {span}, not {BACKENDS[wanted]}"
        else:
            message = f"`pallas_call` without `compiler_params` changes its backend: {meant} in jax {span}"
        yield context.finding(
            launch.called_at,
            message,
            help=(
                f"name the backend: `compiler_params=plgpu.CompilerParams()` of {BACKENDS[wanted]}"
                if wanted == "triton"
                else "launch with `plgpu.kernel`"
            ),
            severity=Severity.WARNING if named else Severity.INFO,
            only_in=other,
            fixes=_fixes(launch, wanted, context),
        )

    @staticmethod
    def _unknown(launch: Launch, context: Context) -> Iterator[Finding]:
        """A launch that may be for any device, in a project whose versions disagree."""
        mosaic = tuple(version for version in context.versions if compat.cuda_default(version) == "mosaic_gpu")
        if mosaic and len(mosaic) < len(context.versions):
            yield context.finding(
                launch.called_at,
                "on CUDA `pallas_call` without `compiler_params` changes its backend: "
                f"Mosaic GPU in jax {context.spelled_versions(mosaic)}, Triton in the others of the range",
                help="name the backend in `compiler_params` if this runs on a GPU",
                severity=Severity.INFO,
                versions=mosaic,
            )


def _fixes(launch: Launch, wanted: str, context: Context) -> list[Fix]:
    """`compiler_params=` with the dataclass that every checked version has and heeds."""
    releases = [parse(version) for version in context.versions]
    if wanted == "mosaic_gpu" and not all(_PARAMS_DECIDE <= release < CUDA_TRITON_AGAIN for release in releases):
        return []
    module = f"{PALLAS}.{wanted}"
    names = [f"{module}.{name}" for name in ("CompilerParams", "TritonCompilerParams", "GPUCompilerParams")]
    known = next((name for name in names if compat.available(name, context.versions)), None)
    context.module.record_names_in(launch.site.piece)
    use = context.module.uses.called_at(launch.site.span.start)
    if known is None or use is None or use.call is None or not use.keywords:
        return []
    spelled, imports = context.spell(known)
    end = use.keywords[-1].value.end
    edit = Edit(Span(use.span.path, end, end), f", compiler_params={spelled}()")
    return [context.unsafe(f"write `compiler_params={spelled}()`", edit, *imports)]
