"""A model checker for kernels on several devices: event traces, their possible orders, and defects in some.

Traced for one place of the mesh and unrolled, a kernel is a straight line of events: signals, waits, copies that begin,
reads and writes. A copy completes some time after its start, first its reading, then its writing, and then adds to
semaphores. A *configuration* is the position of each device and of each copy.

**Nothing that can happen is ever prevented.** A semaphore is lowered by the waits of one device only, which stand one
after the other. So a wait that can go on still can after whatever else happens: others only add. Hence:

1. *Reachable configurations are closed under union.* Let C and D be reachable, D by the steps s1, s2, ... Take from C
   those of them that C lacks, in their order. Before each, everything is there that was there in D's run, the device is
   at the same event, and has taken from its semaphores what it took there: the step can be made.
2. *Every run that goes on as long as it can ends in the same configuration* (the union of two would be longer). So one
   run shows whether devices wait for ever, and what is left in semaphores.
3. *An access F happens while a copy A is under way in some run if and only if F can be reached without A's completion,
   and A's start without F.* Only-if is plain. If: the first run, up to before F, ends in a configuration without F and
   without A's completion; the second, up to after A's start, too. Their union is reachable by (1): A is under way, and
   F is the next event of its device. The same holds of two copies, and of accesses of two cores.

So every order is judged by a number of runs that is linear in the events, and no order is tried. (1) also holds if
copies from one device to one other arrive in the order in which they began, and if semaphores count whole copies: what
is wrong even then is *sure*; what needs copies that overtake one another, or waits that end with a part of a copy, is
not. `tests/interleaving` compares all of it with a search through every interleaving, and with spin.

A GPU's block of threads is judged in the same way: its lines are warpgroups, and warps where these fork. Its barriers
count all arrivals and are never lowered, so many lines may wait for one, and (1) holds all the more. What TMA
and the matrix units do are copies: those of wgmma are done in order, warpgroup by warpgroup, those in tensor memory for
the whole block. Their end is marked by one of them that reads and writes nothing.

Assumed of the hardware, and not measured: a wait for a copy counts the bytes of the reference that it names.

Nothing but the standard library is imported here: the worker, in the user's interpreter, uses these modules too.
"""
