"""What a question will take, before anything is asked."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """Generations and tokens.

    Attributes:
        generations: assistant turns asked for, at the most.
        input_tokens: tokens read, by a rule of thumb.
        output_tokens: tokens written, by an assumed reply length.
        fewest: assistant turns asked for at the least; None where that is ``generations``.
    """

    generations: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    fewest: int | None = None

    @property
    def least(self) -> int:
        """Assistant turns asked for at the least."""
        return self.generations if self.fewest is None else self.fewest

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            self.generations + other.generations,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.least + other.least,
        )

    def __sub__(self, other: "Estimate") -> "Estimate":
        return self + other.times(-1)

    def times(self, n: int) -> "Estimate":
        """The same, n times over."""
        return Estimate(
            self.generations * n, self.input_tokens * n, self.output_tokens * n, self.least * n
        )
