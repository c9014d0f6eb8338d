"""A peer in a worker: its machine code under several loads, and for AMD what a run of it on small ones shows."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from m3gen.codegen.launch import Launch, Pointer
from m3gen.compiler.candidate import facts_cache
from m3gen.compiler.compile import CompileError, Prepared, compile_prepared, prepare, resource_fault
from m3gen.compiler.facts import KernelFacts
from m3gen.compiler.triton_adapter import require_compiler
from m3gen.errors import UserError
from m3gen.evaluate.observed import MOST_WORKGROUPS, recalled, remember, trace_of, whole
from m3gen.evaluate.trace import Trace, Traces
from m3gen.paths import cache_dir
from m3gen.peers.arithmetic import Value
from m3gen.peers.loading import kernels
from m3gen.peers.peer import Peer
from m3gen.peers.resolve import Load, Loaded, resolve, samples
from m3gen.spec import Status
from m3gen.targets import Vendor, architecture

if TYPE_CHECKING:
    from m3gen.emulator.kernel import Code, Emulator

HANDLER = "m3gen.peers.worker:judge_peer"


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """A peer under several loads on one architecture; `root` is the folder that its paths are relative to."""

    peer: Peer
    root: Path
    arch: str
    loads: tuple[Mapping[str, Value], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerResult:
    """`facts` and `keys` hold a tuple for each load, in launch order. `reason` says in one line what failed."""

    status: Status
    reason: str = ""
    facts: tuple[tuple[KernelFacts, ...], ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    compiled: int = 0
    cached: int = 0


def judge_peer(request: PeerRequest) -> PeerResult:
    """The pool's handler. `UserError` for what stands wrong in the peer's file, and where its Python is missing."""
    require_compiler()
    facts, keys = [], []
    try:
        run = _Run(request)
        for load in request.loads:
            found, known = run.load(load)
            facts.append(found)
            keys.append(known)
    except CompileError as error:
        return PeerResult(status=Status.COMPILE, reason=str(error))
    target = architecture(request.arch)
    faults = (f"{one.kernel}: {fault}" for of in facts for one in of if (fault := resource_fault(one, target)))
    fault = next(faults, "")
    return PeerResult(
        status=Status.RESOURCES if fault else Status.OK,
        reason=fault,
        facts=tuple(facts),
        keys=tuple(keys),
        compiled=run.compiled,
        cached=run.cached,
    )


class _Run:
    """One request: its kernels, and what is known of them so far."""

    def __init__(self, request: PeerRequest) -> None:
        self._request = request
        self._target = architecture(request.arch)
        self._cache = facts_cache(cache_dir() / "facts")
        self._kernels = kernels(request.peer, request.root)
        self._emulator: Emulator | None = None
        self._codes: dict[str, Code] = {}
        self.compiled = self.cached = 0

    def load(self, given: Load) -> tuple[tuple[KernelFacts, ...], tuple[str, ...]]:
        """Facts and keys of each launch under a load."""
        loaded = resolve(self._request.peer, self._request.arch, given)
        prepared = [self._prepared(launch) for launch in loaded.launches]
        facts = [self._facts(one) for one in prepared]
        if self._target.vendor is Vendor.AMD:
            found = self._dynamics(given, prepared, facts)
            facts = [replace(one, extra={**one.extra, **more}) for one, more in zip(facts, found, strict=True)]
        return tuple(facts), tuple(one.key for one in prepared)

    def _prepared(self, launch: Launch) -> Prepared:
        try:
            return prepare(self._kernels, launch, self._target, checked=False)
        except CompileError as error:
            raise CompileError(f"{launch.kernel}: {error}") from None

    def _facts(self, prepared: Prepared) -> KernelFacts:
        if (known := self._cache.get(prepared.key)) is not None:
            self.cached += 1
            return known
        try:
            made = compile_prepared(prepared)
        except CompileError as error:
            raise CompileError(f"{prepared.launch.kernel}: {error}") from None
        self.compiled += 1
        self._cache.put(prepared.key, made.facts, made.assembly)
        return made.facts

    def _dynamics(
        self, given: Load, prepared: Sequence[Prepared], facts: Sequence[KernelFacts]
    ) -> list[dict[str, Any]]:
        """`extra` of the facts of each launch: from memory, or from a run. They depend on the code, the sample and
        the version of the constants."""
        loads = list(samples(self._request.peer, self._request.arch, given))
        if not loads:
            return [{"dynamics_failed": "the file has no sample"} for _ in prepared]
        names = [
            "-".join([one.key, _sha(number, loads), *whole(fact)])
            for number, (one, fact) in enumerate(zip(prepared, facts, strict=True))
        ]
        known = [recalled(name, one) for name, one in zip(names, facts, strict=True)]
        if all(one is not None for one in known):
            return [one.extra for one in known if one is not None]
        found = self._observed(loads, prepared, facts)
        if isinstance(found, str):
            return [{"dynamics_failed": found} for _ in prepared]
        return [remember(*one).extra for one in zip(names, found, facts, strict=True)]

    def _observed(
        self, loads: Sequence[tuple[Load, Loaded]], prepared: Sequence[Prepared], facts: Sequence[KernelFacts]
    ) -> list[Traces] | str:
        """Of each launch; why it failed."""
        from m3gen.emulator.faults import EmulationError

        seen: list[list[Trace]] = [[] for _ in prepared]
        started = time.perf_counter()
        try:
            for names, loaded in loads:
                for of, trace in zip(seen, self._executed(names, loaded, prepared, facts), strict=True):
                    of.append(trace)
        except (EmulationError, UserError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        return [Traces(tuple(sorted(of, key=lambda one: one.trips)), seconds) for of in seen]

    def _executed(
        self, names: Load, loaded: Loaded, prepared: Sequence[Prepared], facts: Sequence[KernelFacts]
    ) -> list[Trace]:
        """Every launch of a small load, by the machine code of the real one."""
        from m3gen.peers.sample import materialise

        sample = self._request.peer.sample
        assert sample is not None
        if [one.kernel for one in loaded.launches] != [one.launch.kernel for one in prepared]:
            raise ValueError("the sample launches other kernels than the load")
        tensors: dict[str, Any] = {}
        emulator, found = self._emulating(), []
        for launch, work, pointers, real, fact in zip(
            loaded.launches, loaded.works, loaded.tensors, prepared, facts, strict=True
        ):
            self._require_same_code(launch, real)
            arguments: dict[str, Any] = dict(launch.arguments)
            for name, tensor in pointers.items():
                if tensor.name not in tensors:
                    tensors[tensor.name] = materialise(tensor, sample.fills.get(tensor.name, 0), names)
                arguments[name] = tensors[tensor.name]
            emulator.execute(self._code(real, fact), launch.grid, arguments)
            found.append(trace_of(emulator.profiles.pop(), work))
        return found

    def _require_same_code(self, launch: Launch, real: Prepared) -> None:
        """`ValueError` where the JIT would compile something else for the sample than for the real launch; that its
        tensors are smaller does not count."""
        pointers = {name: value for name, value in real.launch.arguments if isinstance(value, Pointer)}
        arguments = tuple((name, pointers.get(name, value)) for name, value in launch.arguments)
        same = replace(real.launch, arguments=arguments, options=launch.options)
        if self._prepared(same).key != real.key:
            differing = [name for name, value in launch.arguments if dict(same.arguments)[name] != value]
            other = [n for n, v in same.arguments if dict(real.launch.arguments).get(n) != v] or differing
            raise ValueError(
                f"the sample's {launch.kernel} is compiled to other code than the load's; these differ: "
                f"{', '.join(other) or 'options'}"
            )

    def _code(self, prepared: Prepared, facts: KernelFacts) -> Code:
        from m3gen.emulator.kernel import Code
        from m3gen.emulator.program import parse

        if (known := self._codes.get(prepared.key)) is not None:
            return known
        assembly = self._cache.assembly(prepared.key)
        if assembly is None:
            raise ValueError(f"no machine code of {facts.kernel}")
        signature = prepared.specialised.source.signature
        parameters = tuple(name for name, kind in signature.items() if kind != "constexpr")
        code = Code(facts.kernel, assembly, parse(assembly), facts.num_warps, facts.shared_bytes, parameters)
        self._codes[prepared.key] = code
        return code

    def _emulating(self) -> Emulator:
        from m3gen.emulator.kernel import Emulator

        if self._emulator is None:
            self._emulator = Emulator(self._target.name, late=False, profile=True, workgroups=MOST_WORKGROUPS)
        return self._emulator


def _sha(number: int, loads: Sequence[tuple[Load, Loaded]]) -> str:
    """Of what decides what a run of the `number`-th launch shows: all that ran before it, too."""
    ran = [(sorted(names.items(), key=str), one.launches[: number + 1], one.works) for names, one in loads]
    return hashlib.sha256(repr(ran).encode()).hexdigest()[:16]
