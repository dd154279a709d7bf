"""Code → (name, module): the one list of the built-in rules. A test checks it against the files.

Rule modules are imported when their rule runs or is explained, not to find out that it exists.
"""

from __future__ import annotations

# Rules that run only when they are selected by code or name.
OPT_IN: frozenset[str] = frozenset({"PAL608"})

RULES: dict[str, tuple[str, str]] = {
    "PAL001": ("syntax-error", "file.syntax_error"),
    "PAL002": ("unused-suppression", "file.unused_suppression"),
    "PAL101": ("unsupported-function", "lowering.unsupported_function"),
    "PAL102": ("unsupported-dtype", "lowering.unsupported_dtype"),
    "PAL103": ("isfinite-unsupported", "lowering.isfinite_unsupported"),
    "PAL104": ("mod-comparison", "lowering.mod_comparison"),
    "PAL106": ("dot-accumulator", "lowering.dot_accumulator"),
    "PAL107": ("triton-power-of-two", "lowering.triton_power_of_two"),
    "PAL108": ("scan-with-xs", "lowering.scan_with_xs"),
    "PAL109": ("dot-operands", "lowering.dot_operands"),
    "PAL201": ("block-shape-tiling", "layout.block_shape_tiling"),
    "PAL202": ("reshape-minor-dims", "layout.reshape_minor_dims"),
    "PAL204": ("unaligned-dynamic-slice", "layout.unaligned_dynamic_slice"),
    "PAL208": ("value-indexing", "layout.value_indexing"),
    "PAL210": ("negative-ref-index", "layout.negative_ref_index"),
    "PAL211": ("scalar-store-to-vmem", "layout.scalar_store_to_vmem"),
    "PAL212": ("memory-space-access", "layout.memory_space_access"),
    "PAL301": ("index-map-element-offset", "specs.index_map_element_offset"),
    "PAL302": ("index-map-arity", "specs.index_map_arity"),
    "PAL303": ("index-map-rank", "specs.index_map_rank"),
    "PAL304": ("kernel-arity", "specs.kernel_arity"),
    "PAL305": ("pallas-call-misuse", "specs.pallas_call_misuse"),
    "PAL309": ("hallucinated-api", "specs.hallucinated_api"),
    "PAL401": ("uninitialised-accumulator", "results.uninitialised_accumulator"),
    "PAL402": ("init-guard-wrong-axis", "results.init_guard_wrong_axis"),
    "PAL403": ("revisit-not-consecutive", "results.revisit_not_consecutive"),
    "PAL404": ("parallel-reduction-axis", "results.parallel_reduction_axis"),
    "PAL406": ("partial-output-write", "results.partial_output_write"),
    "PAL407": ("alias-mismatch", "results.alias_mismatch"),
    "PAL410": ("store-to-input", "results.store_to_input"),
    "PAL411": ("unused-ref", "results.unused_ref"),
    "PAL415": ("dma-unpaired", "results.dma_unpaired"),
    "PAL416": ("missing-commit-smem", "results.missing_commit_smem"),
    "PAL417": ("all-masked-row", "results.all_masked_row"),
    "PAL501": ("captured-array", "tracing.captured_array"),
    "PAL502": ("python-control-flow", "tracing.python_control_flow"),
    "PAL503": ("kernel-returns-value", "tracing.kernel_returns_value"),
    "PAL504": ("program-id-misplaced", "tracing.program_id_misplaced"),
    "PAL505": ("no-derivative", "tracing.no_derivative"),
    "PAL601": ("check-never-runs", "debugging.check_never_runs"),
    "PAL602": ("checkify-error-ignored", "debugging.checkify_error_ignored"),
    "PAL603": ("checkify-unsupported", "debugging.checkify_unsupported"),
    "PAL604": ("debug-check-disabled", "debugging.debug_check_disabled"),
    "PAL605": ("debug-print-format", "debugging.debug_print_format"),
    "PAL606": ("debug-left-on", "debugging.debug_left_on"),
    "PAL607": ("interpret-hides-bugs", "debugging.interpret_hides_bugs"),
    "PAL608": ("missing-guard", "debugging.missing_guard"),
    "PAL701": ("removed-api", "versions.removed_api"),
    "PAL702": ("deprecated-api", "versions.deprecated_api"),
    "PAL703": ("not-yet-api", "versions.not_yet_api"),
    "PAL704": ("backend-changed", "versions.backend_changed"),
    "PAL705": ("deprecated-backend", "versions.deprecated_backend"),
}
