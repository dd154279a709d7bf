"""What whole compiled programs cost, of their text and of the predictions of their operations."""

from __future__ import annotations

import pytest

from pallas_lint.probe.cost.calibration import CALIBRATIONS
from pallas_lint.probe.cost.function import cost
from pallas_lint.probe.cost.prediction import Prediction, predict
from pallas_lint.probe.cost.sparse_cores import offload
from pallas_lint.probe.cost.sparse_cores import predict as predict_offload
from pallas_lint.probe.cost.values import UndeterminedSchedule, UnknownNumber
from pallas_lint.probe.cost.xla_program import Operation, XlaProgram, read
from pallas_lint.probe.worker.launches.recorder import Record
from pallas_lint.probe.worker.stages.whole_function import _arrays, _is_called

PROGRAM = """\
HloModule jit_around, is_scheduled=true, entry_computation_layout={()->()}

FileNames
1 "around.py"

FunctionNames
1 "around"

FileLocations
1 {file_name_id=1 function_name_id=1 line=15 end_line=15 column=5 end_column=73}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%test (state: (s32[], f32[1024,1024])) -> pred[] {
  %limit = s32[]{:T(128)} constant(LIMIT)
  %state = (s32[]{:T(128)}, /*index=1*/f32[1024,1024]{1,0}) parameter(0)
  %counter = s32[]{:T(128)} get-tuple-element(%state), index=0
  ROOT %less = pred[]{:T(512)} compare(%counter, %limit), direction=LT
}

%body (state.1: (s32[], f32[1024,1024])) -> (s32[], f32[1024,1024]) {
  %one = s32[]{:T(128)} constant(1)
  %state.1 = (s32[]{:T(128)}, f32[1024,1024]{1,0}) parameter(0)
  %counter.1 = s32[]{:T(128)} get-tuple-element(%state.1), index=0
  %array = f32[1024,1024]{1,0} get-tuple-element(%state.1), index=1
  %grown = s32[]{:T(128)} add(%counter.1, %one)
  %turn = f32[1024,1024]{1,0} fusion(%array), kind=kLoop, calls=%fused
  ROOT %next = (s32[]{:T(128)}, f32[1024,1024]{1,0}) tuple(%grown, %turn)
}

ENTRY %main (x: f32[1024,1024], y: f32[1024,1024]) -> f32[1024,1024] {
  %y = f32[1024,1024]{1,0} parameter(1)
  %copy-start = (f32[1024,1024]{1,0:S(1)}, f32[1024,1024]{1,0}, u32[]{:S(2)}) copy-start(%y)
  %x = f32[1024,1024]{1,0} parameter(0)
  %transposed = f32[1024,1024]{0,1} copy(%x)
  %copy-done = f32[1024,1024]{1,0:S(1)} copy-done(%copy-start)
  %add = f32[1024,1024]{1,0} custom-call(%transposed, %copy-done), custom_call_target="tpu_custom_call", \
metadata={op_name="jit(around)/pallas_call" stack_frame_id=1}
  %zero = s32[]{:T(128)} constant(0)
  %begin = (s32[]{:T(128)}, f32[1024,1024]{1,0}) tuple(%zero, %add)
  %while = (s32[]{:T(128)}, f32[1024,1024]{1,0}) while(%begin), condition=%test, body=%body
  ROOT %result = f32[1024,1024]{1,0} get-tuple-element(%while), index=1
}
"""
TOOK = {"transposed": 7.0, "add": 2.0, "turn": 3.0}
EACH_TURN = ": each turn takes 3 µs (2 to 4 µs)"
COPIED = 4 * 1024 * 1024 / (819 * 0.92 * 1e3)  # microseconds for which HBM moves an operand


def predicted(operation: Operation, _: dict[str, str]) -> Prediction:
    took = TOOK.get(operation.name)
    if took is None:
        return Prediction(doubts=("no schedule",))
    moved = 4 << 20 if operation.name == "transposed" else 0
    return Prediction(took, took - 1, took + 1, read=moved)


def test_operations_are_added_up_and_overlap_counts_once() -> None:
    found = cost(read(PROGRAM.replace("LIMIT", "10")), "v5e", predicted)
    assert found.missing == []
    assert found.kernels == 2.0
    waited = COPIED - (7.0 - COPIED) + 0.43  # what the transposition leaves HBM idle is used by the copy
    assert found.xla == pytest.approx(7.0 + waited + 10 * 3.0)
    assert (found.high - found.low) == pytest.approx(2 * (1 + 1 + 10))
    place = found.shares["add"].operation.place
    assert place == ("around.py", 15) and found.shares["turn"].microseconds == 30.0


@pytest.mark.parametrize(
    ("old", "new", "missing"),
    [
        ("constant(LIMIT)", "parameter(1)", f"while: how often it runs is not known{EACH_TURN}"),
        ("add(%counter.1, %one)", "multiply(%counter.1, %one)", f"while: how often it runs is not known{EACH_TURN}"),
        ("%transposed = f32[1024,1024]{0,1} copy(%x)", "%other = f32[1024,1024]{0,1} sort(%x)", "other: no schedule"),
        (
            "%turn = f32[1024,1024]{1,0} fusion(%array)",
            "%turn = f32[1024,1024]{1,0} all-reduce(%array)",
            "turn: the devices wait for each other (all-reduce)",
        ),
    ],
)
def test_what_is_not_known_is_missing(old: str, new: str, missing: str) -> None:
    assert old in PROGRAM
    found = cost(read(PROGRAM.replace(old, new).replace("LIMIT", "10")), "v5e", predicted)
    assert found.missing == [missing]


def test_turns_that_the_program_does_not_tell() -> None:
    """Those of a line of code, in the mean of the times that the loop runs."""
    text = PROGRAM.replace("constant(LIMIT)", "parameter(1)")
    placed = text.replace("body=%body", 'body=%body, metadata={op_name="while" stack_frame_id=1}')
    assert placed != text
    found = cost(read(placed), "v5e", predicted, lambda: {("around.py", 15): 2.5, ("other.py", 15): 9.0})
    assert found.missing == [] and found.shares["turn"].microseconds == 2.5 * 3.0
    assert cost(read(text), "v5e", predicted, lambda: {("around.py", 15): 2.5}).missing != []


GATHER = "all-gather(%array), replica_groups={{0,1,2,3}}, dimensions={0}"
MIB = 4.0  # of the result that TURN has


@pytest.mark.parametrize(
    ("communication", "likely", "low", "high"),
    [
        # Of v5e: 50 GB/s, of which 0.865, 0.92 and a half, a start of 5.6 us, and 1 us for each further step.
        (GATHER, 5.6 + 0.75 * MIB * 24.244, 1 + 0.75 * MIB / 3 * 22.795, 8.4 + 3 + 0.75 * MIB * 41.943),
        (
            GATHER.replace("all-gather", "reduce-scatter").replace("{{0,1,2,3}}", "[2,4]<=[8]"),
            5.6 + 3 * MIB * 24.244, 1 + 3 * MIB / 3 * 22.795, 8.4 + 3 + 3 * MIB * 41.943,
        ),
        (
            GATHER.replace("{{0,1,2,3}}", "[2,16]<=[32]"),  # a ring
            5.6 + 15 / 32 * MIB * 24.244, 1 + 15 / 64 * MIB * 22.795, 8.4 + 15 + 15 / 16 * MIB * 41.943,
        ),
        (
            "all-reduce(%array), replica_groups=mesh['x'=2,'y'=2] {'x','y'}, to_apply=%sum",
            2 * 5.6 + 1.5 * MIB * 24.244, 2 + 1.5 * MIB / 3 * 22.795, 2 * 8.4 + 6 + 1.5 * MIB * 41.943,
        ),
        (
            "all-to-all(%array), replica_groups={{0,1},{2,3}}, dimensions={0}",
            5.6 + 0.5 * MIB * 24.244, 1 + 0.5 * MIB * 22.795, 8.4 + 1 + 0.5 * MIB * 41.943,
        ),
        (
            "collective-permute(%array), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}",
            5.6 + MIB * 24.244, 1 + MIB * 22.795, 8.4 + 2 + 2 * MIB * 41.943,
        ),
    ],
)  # fmt: skip
def test_communication_has_a_range(communication: str, likely: float, low: float, high: float) -> None:
    turn = "fusion(%array), kind=kLoop, calls=%fused"
    found = cost(read(PROGRAM.replace(turn, communication).replace("LIMIT", "1")), "v5e", predicted)
    assert found.missing == []
    share = found.shares["turn"]
    assert (share.microseconds, share.low, share.high) == pytest.approx((likely, low, high), rel=1e-3)


SCATTERED = """%fused (of: f32[1024,1024]) -> f32[256,1024] {
  %of = f32[1024,1024]{1,0} parameter(0)
  %nothing = f32[] constant(0)
  %padded = f32[1024,1024]{1,0} pad(%of, %nothing), padding=0_0x0_0
  %sum = f32[1024,1024]{1,0} all-reduce(%padded), replica_groups={{0,1,2,3}}, to_apply=%sum
  %me = u32[] partition-id()
  %rows = u32[] constant(256)
  %from = u32[]{:T(128)} multiply(%me, %rows)
  ROOT %slice = f32[256,1024]{1,0} dynamic-slice(%sum, %from, %from), dynamic_slice_sizes={256,1024}
}

"""


@pytest.mark.parametrize(
    ("old", "new", "likely"),
    [
        ("pad(", "pad(", 5.6 + 0.75 * MIB * 24.244),
        (" dynamic-slice(%sum, %from, %from)", " slice(%sum)", 2 * 5.6 + 1.5 * MIB * 24.244),
        ("pad(", "tanh(", None),
    ],
)
def test_communication_in_a_fusion_has_a_number_where_it_is_alone(old: str, new: str, likely: float | None) -> None:
    text = PROGRAM.replace("LIMIT", "1").replace("%body (", SCATTERED.replace(old, new) + "%body (")
    turn = "%turn = f32[1024,1024]{1,0} fusion"
    assert turn in text
    found = cost(read(text.replace(turn, "%turn = f32[256,1024]{1,0} fusion")), "v5e", predicted)
    if likely is None:
        assert found.missing == ["turn: the devices wait for each other (all-reduce)"]
    else:
        assert found.missing == [] and found.shares["turn"].microseconds == pytest.approx(likely, rel=1e-3)


def test_communication_runs_beside_what_follows_its_beginning() -> None:
    begin = "  %begun = (f32[64,64], f32[256,64]) all-gather-start(%x), replica_groups={{0,1,2,3}}, dimensions={0}\n"
    end = "  %ended = f32[256,64] all-gather-done(%begun)\n"
    text = (
        PROGRAM.replace("LIMIT", "1")
        .replace("  %transposed", f"{begin}  %transposed")
        .replace("  %zero", f"{end}  %zero")
    )
    share = cost(read(text), "v5e", predicted).shares["ended"]
    assert (share.microseconds, share.low) == (0.0, 0.0)  # seven microseconds and two have passed
    assert share.high == pytest.approx(8.4 + 3 + 0.75 * 65536 / 25e3 - (6.0 + 1.0))


@pytest.mark.parametrize(
    ("old", "new", "turns"),
    [
        ("add(%counter.1, %one)", "add(%moved, %one)", 10),  # of a copy of the count
        ("%limit = s32[]{:T(128)} constant(10)", "%limit = s32[]{:T(128)} get-tuple-element(%state), index=2", 7),
        ("%limit = s32[]{:T(128)} constant(10)", "%limit = s32[]{:T(128)} get-tuple-element(%state), index=3", None),
    ],
)
def test_turns_of_loops(old: str, new: str, turns: int | None) -> None:
    """The state has two numbers more: one that stays as it is, one that each turn changes."""
    text = PROGRAM.replace("LIMIT", "10")
    body, begin = "tuple(%grown, %turn)", "tuple(%zero, %add)"
    kept = """  %kept = s32[] get-tuple-element(%state.1), index=2
  %changed = s32[] get-tuple-element(%state.1), index=4
  %moved = s32[] copy(%counter.1)
  ROOT %next"""
    text = text.replace("  ROOT %next", kept).replace(body, "tuple(%grown, %turn, %kept, %changed)")
    text = text.replace(begin, "tuple(%zero, %add, %seven, %seven)")
    text = text.replace("  %zero =", "  %seven = s32[]{:T(128)} constant(7)\n  %zero =")
    assert old in text
    program = read(text.replace(old, new))
    (loop,) = (each for each in program.computations["main"] if each.opcode == "while")
    assert program.turns(loop, "main") == turns


def test_metadata_may_have_lines_of_its_own() -> None:
    known = 'custom_call_target="tpu_custom_call", '
    assert known in PROGRAM
    metadata = f'{known}frontend_attributes={{kernel_metadata={{\n"blocks":"{{\\"q\\": 128}}"\n}}}}, '
    text = PROGRAM.replace(known, metadata).replace("}\n\nENTRY", '}, execution_thread="sparsecore"\n\nENTRY')
    (kernel,) = (each for each in read(text).computations["main"] if each.is_kernel)
    assert (kernel.name, kernel.place) == ("add", ("around.py", 15))


KERNEL_METADATA = 'metadata={op_name="jit(around)/pallas_call" stack_frame_id=1}'
assert KERNEL_METADATA in PROGRAM

# A row and its computations, with other names; the second one reduces along another dimension.
ALIKE = """
%sum.NUMBER (a.NUMBER: f32[], b.NUMBER: f32[]) -> f32[] {
  %a.NUMBER = f32[] parameter(0)
  %b.NUMBER = f32[] parameter(1)
  ROOT %c.NUMBER = f32[] add(%a.NUMBER, %b.NUMBER), metadata={op_name="NUMBER"}
}

%fused.NUMBER (p.NUMBER: f32[256,256]) -> f32[256] {
  %p.NUMBER = f32[256,256]{1,0} parameter(0)
  %zero.NUMBER = f32[] constant(CONSTANT)
  ROOT %r.NUMBER = f32[256]{0} reduce(%p.NUMBER, %zero.NUMBER), dimensions={DIMENSION}, to_apply=%sum.NUMBER
}
"""
ROW = '  %row.NUMBER = f32[256]{0} fusion(%x), kind=kLoop, calls=%fused.NUMBER, metadata={op_name="NUMBER"}\n'


def test_operations_alike_have_one_code() -> None:
    variants = {"1": ("1", "0"), "2": ("1", "0"), "3": ("0", "0"), "4": ("1", "-inf")}
    parts, rows = "", ""
    for number, (dimension, constant) in variants.items():
        parts += ALIKE.replace("NUMBER", number).replace("DIMENSION", dimension).replace("CONSTANT", constant)
        rows += ROW.replace("NUMBER", number)
    head = "HloModule jit_rows, is_scheduled=true\n"
    entry = "\nENTRY %main (x: f32[256,256]) -> f32[256] {\n  %x = f32[256,256]{1,0} parameter(0)\n"
    program = read(f"{head}{parts}{entry}{rows}}}\n")
    types = program.types("main")
    codes = [program.code(each, types) for each in program.computations["main"] if each.opcode == "fusion"]
    assert [codes.index(code) for code in codes] == [0, 0, 2, 3]


def test_parameters_may_be_written_in_any_order() -> None:
    one, two = "  %a.NUMBER = f32[] parameter(0)\n", "  %b.NUMBER = f32[] parameter(1)\n"
    parts = "".join(
        text.replace("NUMBER", str(at)).replace("DIMENSION", "1").replace("CONSTANT", "0")
        for at, text in enumerate((ALIKE, ALIKE.replace(one + two, two + one), ALIKE.replace("parameter(1)", "x(1)")))
    )
    rows = "".join(ROW.replace("NUMBER", str(at)) for at in range(3))
    entry = "\nENTRY %main (x: f32[256,256]) -> f32[256] {\n  %x = f32[256,256]{1,0} parameter(0)\n"
    program = read(f"HloModule jit_rows, is_scheduled=true\n{parts}{entry}{rows}}}\n")
    first, same, other = (program.code(each, {}) for each in program.computations["main"] if each.opcode == "fusion")
    assert first == same != other


@pytest.mark.parametrize(
    ("origin", "locations", "body", "alike"),
    [
        (r'op_name="jit(\"f}\")" stack_frame_id=2', "BBBB", "AAAA", True),  # called at another line
        ("stack_frame_id=1", "AAAA", "BBBB", False),
    ],
)
def test_a_kernel_called_twice_has_one_code(origin: str, locations: str, body: str, alike: bool) -> None:
    def code(origin: str, locations: str, body: str) -> tuple[object, ...]:
        config = f'backend_config={{"custom_call_config":{{"body":"{body}","debug_locations":"{locations}"}}}}'
        program = read(PROGRAM.replace(KERNEL_METADATA, f"metadata={{{origin}}}, {config}"))
        (kernel,) = (each for each in program.computations["main"] if each.name == "add")
        return program.code(kernel, program.types("main"))

    assert (code(origin, locations, body) == code("stack_frame_id=1", "AAAA", "AAAA")) is alike


def test_what_needs_no_code_and_what_runs_on_other_cores() -> None:
    more = """\
  %room = u32[4]{0} custom-call(), custom_call_target="AllocateBuffer"
  %ready = s32[]{:S(2)} custom-call(), custom_call_target="PrepareAsyncCallStart"
  %prepared = token[] custom-call(%ready), custom_call_target="PrepareAsyncCallDone"
  %one = f32[1]{0} multiply(%zero, %zero)
  %begun = ((), (), (s32[1]{0})) call-start(%room), async_execution_thread="sparsecore", to_apply=%body
  %done = s32[11]{0} call-done(%begun)
  %zero = s32[]"""
    text = PROGRAM.replace("  %zero = s32[]", more, 1).replace("LIMIT", "10")
    assert cost(read(text), "v5e", predicted).missing == ["begun: it runs on SparseCores"]


OFFLOADED = """\
%scattered (old: s32[16], at: s32[8], new: s32[8]) -> s32[16] {
  %old = s32[16]{0} parameter(0)
  %at = s32[8]{0} parameter(1)
  %new = s32[8]{0} parameter(2)
  ROOT %scatter = s32[16]{0} scatter(%old, %at, %new), to_apply=%test
}

%offloaded (old.1: s32[16], at.1: s32[8], new.1: s32[8]) -> s32[16] {
  %old.1 = s32[16]{0} parameter(0)
  %at.1 = s32[8]{0} parameter(1)
  %new.1 = s32[8]{0} parameter(2)
  %inner = ((s32[16]{0}, s32[8]{0}, s32[8]{0}), s32[16]{0}, u32[]) call-start(%old.1, %at.1, %new.1), \
async_execution_thread="sparsecore", to_apply=%scattered
  ROOT %done.1 = s32[16]{0} call-done(%inner)
}

ENTRY %main"""
BEGUN = """\
  %ids = s32[8]{0} custom-call(), custom_call_target="AllocateBuffer"
  %sums = s32[16]{0} custom-call(), custom_call_target="AllocateBuffer"
  %start = ((), (), (s32[1]{0})) call-start(), async_execution_thread="sparsecore", to_apply=%offloaded
  %update = ((s32[16]{0}, s32[8]{0}, s32[8]{0}), s32[16]{0}) call-update(%start, %sums, %ids, %ids)
BESIDE  %done = s32[16]{0} call-done(%update)
  %add = """
BESIDE = "  %transposed.1 = f32[1024,1024]{0,1} copy(%x)\n"


@pytest.mark.parametrize(
    ("beside", "kernel", "waited", "missing"),
    [
        ("", False, 5.0, []),
        (BESIDE, False, 0.0, []),  # which takes longer
        ("", True, 0.0, ["start: it runs on SparseCores"]),
    ],
)
def test_scatters_on_sparse_cores_run_beside_the_rest(
    beside: str, kernel: bool, waited: float, missing: list[str]
) -> None:
    text = PROGRAM.replace("ENTRY %main", OFFLOADED, 1).replace("  %add = ", BEGUN.replace("BESIDE", beside), 1)
    if kernel:
        text = text.replace("scatter(%old, %at, %new)", 'custom-call(%old), custom_call_target="tpu_custom_call"')
    found = cost(
        read(text.replace("LIMIT", "10")),
        "v6e",
        lambda at, _: predicted(at, _) if at.name != "transposed.1" else Prediction(7.0, 6.0, 8.0),
    )
    assert found.missing == missing and len(found.doubts) == (not kernel)
    done = found.shares.get("done")
    assert (0.0 if done is None else done.microseconds) == pytest.approx(waited, abs=0.01)
    assert done is None or done.low < waited + 1 < done.high


@pytest.mark.parametrize(
    ("slices", "likely"),
    [
        ("slice_sizes={1,8192}", 122.7),  # rows of 16 KiB, of which tokamax's records have 188 µs on a v5p
        ("slice_sizes={1,128}", 704.0),
        ("slice_sizes={8,8192}", 704.0),  # more than a row, as of a page
        ("", 704.0),
    ],
)
def test_gathers_of_long_rows_on_sparse_cores(slices: str, likely: float) -> None:
    gather = Operation("gather", "gather", "bf16[4096,8192]{1,0}", [], attributes=f", offset_dims={{1}}, {slices}")
    found = offload(XlaProgram("main", {"gathered": [gather]}), "gathered", "v5p")
    assert found is not None
    took = predict_offload(found, gather, "v5p")
    assert took.likely == pytest.approx(likely, rel=0.01)
    assert took.low < 188 < took.high


@pytest.mark.parametrize(
    ("result", "measured", "likely"),
    [
        ("bf16[2,4096,16,256]", 48.9, 54.2),
        ("bf16[4096,17408]", 104.3, 109.5),
        ("f32[4096,8192]", 93.7, 103.3),
        ("bf16[512,8,160,128]", 206.1, 127.9),  # beside an operation that uses HBM, too
        ("f8e4m3fn[64,1,512]", 4.1, 5.0),
    ],
)
def test_changes_of_layout_on_sparse_cores(result: str, measured: float, likely: float) -> None:
    copy = Operation("copy", "copy", f"{result}{{0,1}}", ["given"])
    program = XlaProgram("main", {"copied": [Operation("given", "parameter", result, []), copy]})
    found = offload(program, "copied", "tpu7x")
    assert found is not None and "layout" in found.doubt
    took = predict_offload(found, copy, "tpu7x")
    assert took.likely == pytest.approx(likely, rel=0.01)
    assert took.low < measured < took.high
    assert offload(program, "copied", "v6e") is None  # of which no times are known


# As libtpu 0.0.50.1 writes a copy within HBM for a v5e, the end left out.
WITHIN_HBM = """
     0   :  { %s35_s12 = smov [#allocation3]  ;;  %s55_s0 = inlined_call_operand.hbm [shape: f32[4096,1024], index: 0, \
kind: input, shape index: {}]  ;;  %s56_s1 = inlined_call_operand.hbm [shape: f32[4096,1024], index: 1, kind: output, \
shape index: {}] }
   0x1   :  { %s14_s8 = sshll.u32 %s55_s0, 4  ;;  %s16_s11 = sshll.u32 %s56_s1, 4  ;;  \
%s15_s8 = int_to_ptr.hbm [resolvable:$true] %s14_s8  ;;  %s17_s11 = int_to_ptr.hbm [resolvable:$true] %s16_s11 }
   0x2   :  { %s37_s14 = smov 0  ;;  %s38_s15 = smov 524288 }
   0x3   :  { %19 = dma.general /*src=*/%s15_s8, /*size_in_granules=*/524288, /*dst=*/%s17_s11, \
/*dst_syncflagno=*/%s35_s12, /*src_syncflagno=*/%s36_s13, /*stridedescaddr=*/[#allocation5], \
/*overrides=*/%s37_s14, /*dst_syncflagno_1=*/0 }
   0x4   :  { %33 = dma.done.wait [#allocation3], %s38_s15 }
   0x5   :  { %34 = vsyncadd [#allocation3], 4294443008 }
"""


def test_a_copy_within_hbm_is_read_and_written() -> None:
    found = predict(WITHIN_HBM, "", "v5e")
    assert (found.read, found.written) == (16 << 20, 16 << 20)
    assert found.microseconds == pytest.approx(2 * (16 << 20) / (819 * 0.92 * 1e3) + 0.43, rel=0.01)
    assert found.low is not None and found.high is not None and found.low < found.microseconds < found.high
    elsewhere = predict(WITHIN_HBM.replace("%s37_s14 = smov 0", "%s37_s14 = smov 1"), "", "v5e")
    assert elsewhere.doubts == ("what `dma.general` does is not known",), "it may go to another device"


# As it writes a copy of 32 KiB from HBM to the next of four devices for a v6e, with a signal and a wait of the barrier
# before it; addresses made shorter.
TO_A_NEIGHBOUR = """
     0   :  { %s2_s6 = sld [smem:[#allocation0]] /* core id */  ;;  %s163_s0 = inlined_call_operand.hbm \
[shape: f32[8,1024], index: 0, kind: input, shape index: {}]  ;;  %s164_s1 = inlined_call_operand.hbm \
[shape: f32[8,1024], index: 1, kind: output, shape index: {}] }
   0x1   :  { %s13_s7 = sld [smem:[#allocation7]] /* loc("a.py":1:2) logical chip id */  ;;  %s87_s9 = int_to_ptr.hbm \
%s163_s0  ;;  %s88_s10 = int_to_ptr.hbm %s164_s1 }
   0x2   :  { %s14_s8 = sadd.s32 %s13_s7, %s2_s6 }
   0x3   :  { %p15_p0 = scmp.eq.s32.totalorder %s14_s8, 0 }
   0x4   :  { %25 = vsyncadd.remote 32818, 1 }
   0x5   :  { %52 = vwait.ge.trace [#allocation6], 1 }
   0x6   :  { %53 = vsyncadd [#allocation6], 4294967295  ;;  %s54_s15 = sld [smem:[#allocation11]] (!%p15_p0) }
   0x7   :  { %s85_s2 = sor.u32 134234112, %s54_s15  ;;  %s144_s3 = smov [#allocation4]  ;;  %s145_s4 = smov 131072 }
   0x8   :  { %s90_s5 = sor.u32 16384, %s144_s3  ;;  %s91_s11 = sor.u32 [#allocation3], %s145_s4 }
   0x9   :  { %93 = dma.general /*src=*/%s87_s9, /*size_in_granules=*/1024, /*dst=*/%s88_s10, \
/*dst_syncflagno=*/%s90_s5, /*src_syncflagno=*/%s91_s11, /*stridedescaddr=*/[#allocation13], \
/*overrides=*/%s85_s2, /*dst_syncflagno_1=*/0 }
   0xa   :  { %136 = dma.done.wait [#allocation3], 1024 }
   0xb   :  { %137 = vsyncadd [#allocation3], 4294966272 }
   0xc   :  { %138 = dma.done.wait [#allocation4], 1024 }
   0xd   :  { %139 = vsyncadd [#allocation4], 4294966272 }
"""


@pytest.mark.parametrize(
    ("device", "startup", "link"), [("v6e", 2.29, 86.5), ("v5e", 2.29, 43.25), ("v5p", 4.55, 86.5)]
)
def test_a_copy_to_another_device(device: str, startup: float, link: float) -> None:
    """All devices do the same: the barrier takes a start-up, and the copy another one and its bytes."""
    found = predict(TO_A_NEIGHBOUR, "", device)
    assert (found.read, found.written) == (32768 * found.cores, 32768 * found.cores)
    assert found.microseconds == pytest.approx(2 * startup + 32768 / link / 1e3, rel=0.03)
    assert found.low is not None and found.high is not None and found.high > 3 * found.low
    assert found.doubts[0].startswith("copies to other devices are timed roughly")


def test_a_wait_that_nothing_ends_has_no_number() -> None:
    alone = TO_A_NEIGHBOUR.replace("%25 = vsyncadd.remote 32818, 1", "%25 = vnop")
    assert predict(alone, "", "v6e").doubts == (
        "a wait for what was not begun here: another core or device must end it",
    )


def test_memory_at_an_unknown_number_has_no_value() -> None:
    with pytest.raises(UndeterminedSchedule, match="a flag of another device"):
        {1: 2}.get(UnknownNumber("a flag of another device"))  # type: ignore[call-overload]


# The remainder decides whether a copy is made, and the quotient how large it is: 20 = 3 x 6 + 2.
DIVIDED = """
     0   :  { %s55_s0 = inlined_call_operand.hbm [shape: f32[8], index: 0, kind: input, shape index: {}]  ;;  \
%s1_s1 = smov 20 }
   0x1   :  { %7 = sdivrem.u32 %s1_s1, 6 /* kDivAndRem */ }
   0x2   :  { %s2_s2 = spop.drf %7 }
   0x3   :  { %s3_s3 = spop.drf %7 }
   0x4   :  { %p4_p0 = scmp.eq.s32.totalorder %s3_s3, 2 }
   0x5   :  { %9 = dma.hbm_to_vmem (%p4_p0), %s55_s0, %s2_s2, [#allocation1], [#allocation2] }
   0x6   :  { %10 = dma.done.wait (%p4_p0), [#allocation2], %s2_s2 }
"""


def test_a_pointer_that_was_spilled() -> None:
    spilled = """ ;;  %9 = sst [smem:[#allocation9_spill]] %s15_s8 }
   0x2   :  { %s37_s14 = smov 0  ;;  %s66_s8 = sld [smem:[#allocation9_spill]]  ;;"""
    text = WITHIN_HBM.replace(" }\n   0x2   :  { %s37_s14 = smov 0  ;;", spilled).replace("/*src=*/%s15_s8", "%s66_s8")
    assert (
        "%s66_s8, /*size" in text
        and predict(text, "", "v5e").microseconds == predict(WITHIN_HBM, "", "v5e").microseconds
    )


def test_the_upper_half_of_a_product() -> None:
    """By which libtpu divides by constants."""
    before, _, _ = DIVIDED.partition("   0x1 ")
    text = f"""{before}   0x1   :  {{ %s2_s2 = smulhi.u32 %s1_s1, 536870912 }}
   0x2   :  {{ %9 = dma.hbm_to_vmem %s55_s0, %s2_s2, [#allocation1], [#allocation2] }}
   0x3   :  {{ %10 = dma.done.wait [#allocation2], %s2_s2 }}
"""
    assert predict(text, "", "v5e").read == (20 * 2**29 >> 32) * 32
    assert predict(text.replace("smov 20", "smov 4294967295"), "", "v5e").read == (2**29 - 1) * 32


def test_a_number_that_goes_through_a_vector() -> None:
    """As an operand of one number does that a kernel reads in VMEM."""
    before, _, _ = DIVIDED.partition("   0x1 ")
    text = f"""{before}   0x1   :  {{ %v2_v0 = vstv %s1_s1 }}
   0x2   :  {{ %3 = vst [vmem:[#allocation3] sm:$0x1] /*src=*/%v2_v0  ;;  %4 = vst [vmem:[#allocation4]] %v2_v0 }}
   0x3   :  {{ %v5_v1 = vld [vmem:[#allocation3] sm:$0x1] }}
   0x4   :  {{ %6 = vpush %v5_v1 }}
   0x5   :  {{ %s7_s2 = spop %6 }}
   0x6   :  {{ %9 = dma.hbm_to_vmem %s55_s0, %s7_s2, [#allocation1], [#allocation2] }}
   0x7   :  {{ %10 = dma.done.wait [#allocation2], %s7_s2 }}
"""
    assert predict(text, "", "v5e").read == 20 * 32
    why = ("it depends on a number that is taken out of a vector",)
    for old, new in (
        ("%v2_v0 = vstv", "%v1_v0 = vstv"),  # another vector is stored
        ("%4 = vst [vmem:[#allocation4]]", "%4 = vst [vmem:[#allocation3]]"),  # and so is something else there
        ("[vmem:[#allocation3] sm:$0x1] }", "[vmem:[#allocation3 + $0x8] sm:$0x1] }"),
        ("vpush %v5_v1", "vpush %v8_v1"),
    ):
        assert old in text and predict(text.replace(old, new), "", "v5e").doubts == why


def test_arrays_of_a_schedule() -> None:
    text = """
     0   :  { %s2512_s0 = inlined_call_operand.hbm [shape: bf16[8,1024,128], index: 0, kind: input, shape index: {}] \
/* operand 0 */  ;;  %s2513_s1 = inlined_call_operand.vmem [shape: f32[6], index: 1, kind: output, shape index: {}] }
"""
    assert _arrays(text) == [(False, "bf16[8,1024,128]"), (True, "f32[6]")]


def test_results_of_divisions_are_popped() -> None:
    assert predict(DIVIDED, "", "v5e").read == 3 * 32
    assert predict(DIVIDED.replace("smov 20", "smov 21"), "", "v5e").read == 0
    assert predict(DIVIDED.replace("/* kDivAndRem */", ""), "", "v5e").doubts != ()
    placed = DIVIDED.replace("/* kDivAndRem */", '/* loc("kernels.py":381:9 to :46) :: kDivAndRem */')
    assert predict(placed, "", "v5e").read == 3 * 32


def test_the_remainder_that_chooses_a_buffer() -> None:
    """As libtpu wrote it before it wrote which result is wanted."""
    before, _, _ = DIVIDED.partition("   0x1 ")
    text = f"""{before}   0x1   :  {{ %7 = sdivrem.u32 %s1_s1, 6 }}
   0x2   :  {{ %s2_s2 = spop.drf %7 }}
   0x3   :  {{ %s3_s3 = scalar_lea.sflag [#allocation2], %s2_s2 }}
   0x4   :  {{ %9 = dma.hbm_to_vmem %s55_s0, %s2_s2, [#allocation1], %s3_s3 }}
   0x5   :  {{ %10 = dma.done.wait %s3_s3, %s2_s2 }}
"""
    assert predict(text, "", "v5e").read == 2 * 32
    for old, new in (
        ("scalar_lea.sflag [#allocation2], %s2_s2", "scalar_lea.sflag [#allocation2], %s1_s1"),
        ("%s3_s3 = scalar_lea", "%s5_s4 = spop.drf %7  ;;  %s3_s3 = scalar_lea"),  # both are wanted
    ):
        assert predict(text.replace(old, new), "", "v5e").microseconds is None


def test_intervals_hold_nine_of_ten_measurements() -> None:
    for (device, kind), each in CALIBRATIONS.items():
        assert each.low < 1 < each.high, (device, kind)
        assert each.inside is None or each.inside >= 0.9 * each.records, (device, kind)


LOOKUP = """\
HloModule jit_looked_up, is_scheduled=true

%fused (rows: f32[64,128], at: s32[16]) -> f32[16,128] {
  %rows = f32[64,128]{1,0} parameter(0)
  %at = s32[16]{0} parameter(1)
  ROOT %gather = f32[16,128]{1,0} gather(%rows, %at), offset_dims={1}, slice_sizes={1,128}
}

ENTRY %main (x: f32[64,128], i: s32[16]) -> f32[16,128] {
  %x = f32[64,128]{1,0} parameter(0)
  %i = s32[16]{0:T(128)} parameter(1)
  ROOT %fusion = f32[16,128]{1,0} fusion(%x, %i), kind=kCustom, calls=%fused
}
"""


# One more computation around, which has the array last.
NESTED = LOOKUP.replace(
    "ENTRY",
    """\
%around (at: s32[16], rows: f32[64,128]) -> f32[16,128] {
  %at = s32[16]{0} parameter(0)
  %rows = f32[64,128]{1,0} parameter(1)
  ROOT %inner = f32[16,128]{1,0} fusion(%rows, %at), kind=kCustom, calls=%fused
}

ENTRY""",
).replace("fusion(%x, %i), kind=kCustom, calls=%fused\n", "fusion(%i, %x), kind=kCustom, calls=%around\n")


@pytest.mark.parametrize("text", [LOOKUP, NESTED])
def test_a_lookup_is_known_by_what_is_fused(text: str) -> None:
    program = read(text)
    (*_, fusion) = program.computations["main"]
    types = program.types("main")
    assert [*program.arrays(fusion, types, {"gather", "scatter"})] == ["f32[64,128]{1,0}"]
    assert not [*program.arrays(fusion, types, {"scatter"})]


@pytest.mark.parametrize(
    ("operation", "name", "called"),
    [
        ("kernel", "kernel", True),
        ("kernel.1", "kernel", True),
        ("MLA-vmem_100.1", "MLA-vmem_100.0", True),  # XLA counts on from the number at the end
        ("MLA-d.1", "MLA-d.0", True),
        ("MLA-bd.1", "MLA-d.0", False),
        ("kernel_of", "kernel", False),
        ("kernel", "", False),
    ],
)
def test_operations_have_the_names_of_launches(operation: str, name: str, called: bool) -> None:
    assert _is_called(operation, Record(None, {"name": name}, [], [])) is called
