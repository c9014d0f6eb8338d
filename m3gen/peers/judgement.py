"""The prediction of a peer under one load, by the model that predicts m3gen's own kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from m3gen.compiler.facts import KernelFacts
from m3gen.evaluate.evaluation import Evaluation
from m3gen.evaluate.predict import floor_us, predict
from m3gen.peers.peer import Peer
from m3gen.peers.resolve import Load, Loaded, resolve
from m3gen.peers.worker import PeerResult
from m3gen.targets import Device


@dataclass(frozen=True, slots=True)
class Judgement:
    """`evaluation` is of all launches together, `parts` of each by itself; `floor_us` of the bytes they stream."""

    peer: Peer
    device: Device
    load: Load
    loaded: Loaded
    facts: tuple[KernelFacts, ...]
    keys: tuple[str, ...]
    evaluation: Evaluation
    parts: tuple[Evaluation, ...]
    floor_us: float

    @property
    def not_run(self) -> Mapping[str, str]:
        """Why the emulator did not run a kernel, by kernel; those are predicted from their instructions alone."""
        reasons = {one.kernel: str(one.extra.get("dynamics_failed", "")) for one in self.facts}
        return {kernel: reason for kernel, reason in reasons.items() if reason}


def judge(peer: Peer, device: Device, load: Load, result: PeerResult, number: int = 0) -> Judgement:
    """From an OK result, whose `number`-th load this is."""
    loaded, facts = resolve(peer, device.arch, load), result.facts[number]
    each = zip(loaded.launches, facts, loaded.works, strict=True)
    return Judgement(
        peer=peer,
        device=device,
        load=load,
        loaded=loaded,
        facts=facts,
        keys=result.keys[number],
        evaluation=predict(loaded.launches, facts, loaded.works, device),
        parts=tuple(predict([launch], [fact], [work], device) for launch, fact, work in each),
        floor_us=sum(floor_us(work, device) for work in loaded.works),
    )
