"""The follow-up study as an Inspect task that knows nothing of holdfast.

Usage: python benchmarks/naive.py FILE --base-url URL --log-dir DIR --max-connections N

FILE holds one JSON object a line: "id", "input" (the question with its instructions), "target"
(the gold letter) and "challenge" (what is said to the first answer, empty for the baseline).
Each line is one sample, and each sample's conversation is asked from its beginning; everything
else is as Inspect has it by default.
"""

import argparse
import sys
from collections.abc import Sequence

from inspect_ai import Task, eval, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.model import ChatMessageUser, GenerateConfig
from inspect_ai.scorer import pattern
from inspect_ai.solver import Generate, Solver, TaskState, solver, system_message


@solver
def answer_and_defend() -> Solver:
    """Generate an answer, and a second one to the challenge, if there is one."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        if state.metadata["challenge"]:
            state.messages.append(ChatMessageUser(content=state.metadata["challenge"]))
            state = await generate(state)
        return state

    return solve


@task
def naive(file: str, system: str) -> Task:
    """One sample for each question and technique.

    Args:
        file: The samples.
        system: The system message.
    """
    return Task(
        dataset=json_dataset(file, FieldSpec(metadata=["challenge"])),
        solver=[system_message(system), answer_and_defend()],
        scorer=pattern(r"Final Answer: \(([A-D])\)"),
        config=GenerateConfig(temperature=0.0, seed=42),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the task.

    Args:
        arguments: Command-line arguments; by default those of the process.

    Returns:
        The exit status: 1 unless every sample was finished.
    """
    parser = argparse.ArgumentParser(description="The follow-up study in plain Inspect.")
    parser.add_argument("file")
    parser.add_argument("--model", default="openai/bench")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--log-dir", required=True)
    parser.add_argument("--max-connections", type=int, required=True)
    parser.add_argument("--system", default="You are an expert in medicine.")
    parsed = parser.parse_args(arguments)
    (log,) = eval(
        naive(parsed.file, parsed.system),
        model=parsed.model,
        model_base_url=parsed.base_url,
        # the server has chat completions only
        model_args={"responses_api": False},
        log_dir=parsed.log_dir,
        max_connections=parsed.max_connections,
        display="none",
    )
    if log.status != "success":
        print(log.error.message if log.error else log.status, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
