"""Shards as tasks of a Ray cluster."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from holdfast.errors import HoldfastError, InputError, InterruptedRunError

from .shard import Shard
from .sharding import Lost, Report, put_apart

HERE = "local"
"""Address that starts a cluster on this machine, for this run alone."""


def check_installed() -> None:
    """Refuse to go on without Ray.

    Raises:
        InputError: it is not installed.
    """
    if find_spec("ray") is None:
        raise InputError(
            "Ray is not installed", field="--ray", remedy="pip install 'holdfast[ray]'"
        )


def put_on_ray(
    address: str,
    given: Mapping[str, Any],
    shards: Sequence[Shard],
    tries: int,
    on_progress: Callable[[Report], None],
) -> Iterator[Report | Lost | HoldfastError]:
    """Put every shard as a task; Ray puts one again whose worker it has lost.

    Args:
        address: of the cluster, or ``local``.
        given: options of ``holdfast run``.
        shards: what is put.
        tries: times that a shard is put whose worker is lost.
        on_progress: not called, since a task speaks only at its end.

    Yields:
        How each task ended.

    Raises:
        InputError: the cluster cannot be reached.
        InterruptedRunError: the user stopped it.
    """
    ray = _connected(address)
    # a process for each task: what a run sets, such as the place of its cache, ends with it
    task = ray.remote(max_calls=1, max_retries=tries - 1, num_cpus=1)(put_in_task)
    where = os.getcwd()
    try:
        running = {task.remote(dict(given), shard, where): shard for shard in shards}
        while running:
            done, _ = ray.wait(list(running), num_returns=1)
            shard = running.pop(done[0])
            try:
                yield ray.get(done[0])
            except ray.exceptions.RayError as error:
                yield Lost(shard, " ".join(str(error).split())[:200])
    except KeyboardInterrupt:
        for left in running:
            ray.cancel(left)
        raise InterruptedRunError from None
    finally:
        ray.shutdown()


def put_in_task(given: Mapping[str, Any], shard: Shard, where: str) -> Report | HoldfastError:
    """One shard, in a worker of the cluster.

    Args:
        given: options of ``holdfast run``.
        shard: which.
        where: the folder that relative paths start from, where the worker has it.
    """
    if os.path.isdir(where):
        os.chdir(where)
    return put_apart(given, shard)


def _connected(address: str) -> Any:
    # nobody is told that it was used
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == HERE:
        # what keeps Ray to the loopback interface, on Linux too; read when it is imported
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    own = {"include_dashboard": False} if address == HERE else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="error", **own)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"cannot be reached ({' '.join(str(error).split())[:200]})",
            address,
            remedy="Check --ray; 'local' starts a cluster on this machine",
        ) from error
    return ray
