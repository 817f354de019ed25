"""The plan of a study: what a protocol asks when it is run dry.

In a dry run every reply is a stand-in, and every answer that the protocol looks at is a choice of a
script. The scripts that lead to the fewest and to the most requests bound what a run takes.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NoReturn, TypeVar, cast

from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Logprobs,
    Model,
    ModelOutput,
)

from holdfast.attachments import record_of
from holdfast.defences.exchange import Defence, DefendedTurn
from holdfast.dialogue.conversation import TESTED_ARM, ConversationStart, Place, Run, Turn, place
from holdfast.questions.question import Question
from holdfast.reading.extraction import Extraction, Fault

T = TypeVar("T")

Method = Callable[[Run], Awaitable[None]]
"""A protocol with its settings."""

Path = tuple[str, str]
"""Arm and path of a turn."""

Point = tuple[Place, int]
"""A choice: the branch, and which choice in it."""

Script = Mapping[Point, str]
"""An outcome for each choice; the first possible one where a choice is not in it."""

KEEPS, LEFT, UNREAD = "kept", "left", "unread"
USABLE, LATE, NEVER, REFUSES = "usable", "late", "never", "refused"

NOT_LEAST, NOT_MOST = frozenset({LATE}), frozenset({USABLE})
"""Outcomes after which there are never fewer requests, or never more, than after another one."""

DEFENCE_ORDER = 1_000_000
"""Number of the branch in which the first defended turn of a branch is planned."""

MOST_SCRIPTS = 20_000
"""Scripts tried for a question before the search is given up."""


class StandIn(str):
    """A reply that stands for any. What is asked may hold it, but may not depend on it."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(
            "a protocol may decide only by turn.answer, turn.kept or turn.obtain, so that its "
            "plan is known. Quote the reply with str(turn.reply), or read it with turn.observe"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __contains__ = __len__ = __bool__ = __getitem__ = __iter__ = _refuse
    startswith = endswith = find = index = count = split = lower = upper = strip = _refuse
    __hash__ = str.__hash__

    def __str__(self) -> str:
        return str.__str__(self)[:]


REPLY_TOKENS = 400
"""Assumed length of a reply, unless a protocol knows better."""


_FENCES = re.compile(r"\[[0-9a-f]+\]\.*|===== [0-9a-f]+ =====")
"""A reply of a dry run, and a line around quoted texts, which holds their digest."""


@lru_cache(4096)  # scripts of a search mostly quote the same replies
def _without_replies(text: str) -> str:
    return _FENCES.sub("", text)


def stand_in(number: int, tokens: int) -> str:
    """What stands for the reply to a request, of an assumed length."""
    return f"[{number & 0xFFFF_FFFF_FFFF:x}]".ljust(4 * tokens, ".")


@dataclass(frozen=True)
class PlannedRequest:
    """A request of a dry run.

    Attributes:
        role: who is asked.
        place: the branch in which it is asked.
        arm: the arm of its turn.
        characters: length of the conversation that is sent.
        tokens: assumed length of the reply.
        earlier: turns of the user before the newest.
        is_shared: whether no replicate makes it anew.
        form: the request whatever the replies in it are, and those that it quotes. Where these are
            alike, requests of one form are one request.
    """

    role: str
    place: Place
    arm: str
    characters: int
    tokens: int
    earlier: int
    is_shared: bool
    form: int


@dataclass
class _State:
    """What a dry run keeps of a turn: the conversation with its reply, and which draw it is."""

    texts: tuple[tuple[str, str], ...]
    draw: object


@dataclass
class Dry:
    """Answers the turns of a run by stand-ins, and what they answer by a script.

    A choice that is not in the script has the outcome at the place ``usual``.
    """

    script: Script
    roles: frozenset[str] = frozenset()
    defence: Defence | None = None
    config: GenerateConfig = field(default_factory=GenerateConfig)
    reply_tokens: int = REPLY_TOKENS
    usual: int = 0
    requests: dict[int, PlannedRequest] = field(default_factory=dict)
    choices: dict[Point, tuple[str, ...]] = field(default_factory=dict)
    _outcomes: dict[object, str] = field(default_factory=dict)
    _counts: dict[Place, int] = field(default_factory=dict)
    _left: set[Turn] = field(default_factory=set)
    _tries: dict[Turn, tuple[int, str]] = field(default_factory=dict)

    def has(self, role: str) -> bool:
        """Whether a model has that role."""
        return role in self.roles

    def name(self, role: str) -> str:
        """Name of the role: no model has one."""
        return role

    def settle(self, turn: Turn) -> None:
        """Change nothing: answers are those of the script."""

    def has_reply(self, turn: Turn) -> bool:
        """Whether there would be a reply: always."""
        return True

    def letter(self, turn: Turn) -> str | None:
        """Letter that a turn answers, by the script."""
        outcome = self._choose(turn.order, (KEEPS, LEFT, UNREAD))
        if outcome == LEFT and turn in self._left:  # whether it is read is still open
            outcome = self._choose((turn.order, "read"), (LEFT, UNREAD))
        return self._letter(turn, outcome)

    def is_kept(self, turn: Turn) -> bool:
        """Whether a turn answers its target, by the script."""
        if self._choose(turn.order, (KEEPS, LEFT)) == KEEPS:
            return True
        self._left.add(turn)
        return False

    def usable(
        self,
        turn: Turn,
        parse: Callable[[ModelOutput], T | Fault],
        like: Callable[[str], T],
        *,
        left: int,
        refusals: int,
    ) -> T | Fault:
        """What a helper's reply is taken for, by the script.

        It can be used at once, at the last try or never, or what was asked for is refused until no
        more is asked, where that ends it earlier.
        """
        choice_key = turn.order, "usable"
        if turn.parent is not None and turn.parent in self._tries:
            choice_key = self._tries[turn.parent]
        self._tries[turn] = choice_key
        outcomes = (USABLE, LATE, NEVER, REFUSES) if refusals <= left else (USABLE, LATE, NEVER)
        outcome = self._choose(choice_key, outcomes)
        if outcome == USABLE or (outcome == LATE and not left):
            del self._tries[turn]  # what is asked after it begins anew
            return like(str(turn.reply))
        if outcome == REFUSES:
            return Fault("refused", "declines the request")
        return Fault("never usable", "cannot be used")

    def seen(self, turn: Turn, parse: Callable[[ModelOutput], T], like: T) -> T:
        """What a dry run takes for what is read."""
        return like

    async def gather(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Run branches one after another."""
        for number, branch in enumerate(branches.values()):
            token = place.set((*place.get(), number))
            try:
                await branch
            except BaseException:
                for awaitable in branches.values():
                    cast("Coroutine[Any, Any, Any]", awaitable).close()
                raise
            finally:
                place.reset(token)

    async def answer(self, turn: Turn, context: Mapping[str, object]) -> None:
        """Note what is sent, and reply with a stand-in."""
        if turn.state is not None:
            return
        opening, prior_state = turn.opening, self._load_prior_state(turn)
        tokens = opening.tokens
        texts = (*prior_state.texts, ("user", record_of(turn.prompt, turn.document)))
        turn.state = prior_state  # for the defence, which looks at earlier turns
        if self.defence and opening.role == TESTED_ARM and turn.parse is None:
            reply = await self._answer_defended(self.defence, turn, texts)
        else:
            reply = self.ask(turn, opening.role, prior_state.draw, texts, tokens)
        turn.reply, turn.extraction = StandIn(reply), Extraction(None, "none", "dry run")
        turn.state = _State((*texts, ("assistant", reply)), prior_state.draw)

    def ask(
        self,
        turn: Turn,
        role: str,
        draw: object,
        texts: Sequence[tuple[str, str]],
        tokens: int | None = None,
    ) -> str:
        """Note a request, and make the stand-in for its reply."""
        number = hash((role, draw, *texts))
        reply = stand_in(number, self.reply_tokens if tokens is None else tokens)
        if number not in self.requests:
            characters = sum(len(text) for _, text in texts)
            earlier = sum(who == "user" for who, _ in texts) - 1
            is_shared = turn.opening.replicate != turn.run.replicate
            form = hash((role, draw, *self._form(texts)))
            self.requests[number] = PlannedRequest(
                role, place.get(), turn.arm, characters, len(reply) // 4, earlier, is_shared, form
            )
        return reply

    def _form(self, texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """A conversation whatever the replies in it are, and those that it quotes."""
        for who, text in texts:
            if who == "assistant":
                yield who, ""
            elif self.defence or "]." in text:  # else it quotes no reply
                yield who, _without_replies(text)
            else:
                yield who, text

    def drawn(
        self,
        opening: ConversationStart,
        sample: int = 0,
        config: GenerateConfig | None = None,
        *,
        by_helper: bool = False,
    ) -> object:
        """Which draw of a request this is: no two draws are one generation."""
        settings: dict[str, str] = {"seed": repr(opening.config.seed)} if by_helper else {}
        of_study = self.config if opening.role == TESTED_ARM else None
        for layer in (config,) if by_helper else (of_study, opening.config, config):
            settings |= (
                {n: repr(getattr(layer, n)) for n in layer.model_fields_set} if layer else {}
            )
        settings_items = sorted(item for item in settings.items() if item[1] != "None")
        return opening.replicate, opening.resample, sample, tuple(settings_items)

    def _load_prior_state(self, turn: Turn) -> _State:
        parent = turn.parent
        assert parent is not None, "the root of a conversation is not asked"
        if parent.state is None:
            opening = parent.opening
            texts = [("system", opening.system)] if opening.system else []
            for prompt, reply in opening.examples:
                texts += [("user", prompt), ("assistant", reply)]
            parent.state = _State(tuple(texts), self.drawn(opening))
        state: _State = parent.state
        return state

    def _choose(self, choice_key: object, outcomes: tuple[str, ...]) -> str:
        """The outcome of a choice by the script.

        What a branch has not looked at before may come out otherwise in each branch inside of it:
        so each branch can be planned by itself, and the bounds hold all the same.
        """
        where = place.get()
        for depth in range(len(where) + 1):
            if (decision := self._outcomes.get((choice_key, where[:depth]))) is not None:
                return decision
        number = self._counts.get(where, 0)
        self._counts[where] = number + 1
        self.choices[where, number] = outcomes
        usual = outcomes[min(self.usual, len(outcomes) - 1)]
        outcome = self._outcomes[choice_key, where] = self.script.get((where, number), usual)
        return outcome

    def _letter(self, turn: Turn, outcome: str) -> str | None:
        letters = turn.choice.letters.values() if turn.choice else ()
        alternative = next((letter for letter in letters if letter != turn.target), None)
        return {KEEPS: turn.target, LEFT: alternative, UNREAD: None}[outcome]

    async def _answer_defended(
        self, defence: Defence, turn: Turn, texts: Sequence[tuple[str, str]]
    ) -> str:
        """What stands for the reply of a defended model."""
        earlier_texts = self._load_prior_state(_first_of(turn)).texts
        messages = [_message(role, text).model_copy() for role, text in texts]
        exchange = DryExchange(self, turn, messages, len(earlier_texts))
        # a branch of its own, so that it can be planned by itself
        position = place.get()
        number = self._counts.get((*position, DEFENCE_ORDER), 0)
        self._counts[*position, DEFENCE_ORDER] = number + 1
        token = place.set((*position, DEFENCE_ORDER + number))
        try:
            defended_reply = await defence(exchange)
        finally:
            place.reset(token)
        return defended_reply.output.completion

    def outcome(self, turn: Turn, reply: str) -> str | None:
        """Displayed letter that a reply within a defence answers, by the script."""
        assert turn.choice is not None
        outcome = self._choose((turn.order, reply), (KEEPS, LEFT, UNREAD))
        letters = list(turn.choice.letters)
        target_letter = next(
            (s for s in letters if turn.choice.letters[s] == turn.target), letters[0]
        )
        alternative = next((s for s in letters if s != target_letter), None)
        return {KEEPS: target_letter, LEFT: alternative, UNREAD: None}[outcome]

    def decision(self, turn: Turn) -> bool:
        """What a defence decides beside the answers, by the script."""
        return self._choose((turn.order, "decision"), (KEEPS, LEFT)) == LEFT

    def standing(self, turn: Turn) -> str | None:
        """Displayed letter of the answer that the conversation holds before a turn."""
        earlier, choice = turn.parent, turn.choice
        while earlier is not None and earlier.number >= 0:
            if (letter := self.letter(earlier)) is not None:
                letters = (
                    {original: letter for letter, original in choice.letters.items()}
                    if choice
                    else {}
                )
                return letters.get(letter)
            earlier = earlier.parent
        return None


_MESSAGE: Mapping[str, type[ChatMessage]] = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}


@lru_cache(1024)  # scripts of a search mostly ask the same
def _message(role: str, text: str) -> ChatMessage:
    return _MESSAGE[role](content=text)


class DryExchange(DefendedTurn):
    """A user turn of a defended model in a dry run."""

    def __init__(
        self, backend: Dry, turn: Turn, messages: Sequence[ChatMessage], start: int
    ) -> None:
        """Show a defence the conversation."""
        assert turn.choice is not None
        super().__init__(
            messages, start, turn.choice, None, self._note,
            lambda role: cast("Model", role) if backend.has(role) else None,
        )  # fmt: skip
        self._backend, self._turn = backend, turn

    @property
    def held_letter(self) -> str | None:
        """Displayed letter of the answer that the conversation holds, by the script."""
        return self._backend.standing(self._turn)

    @held_letter.setter
    def held_letter(self, letter: str | None) -> None:
        pass

    def read(self, reply: str) -> str | None:
        """Displayed letter that a reply answers, by the script."""
        return self._backend.outcome(self._turn, reply)

    def quote(self, words: str, reply: str) -> str:
        """The name of the stand-in."""
        return f"{reply.partition(']')[0]}]"

    def decide(self, value: bool) -> bool:
        """A decision by the script."""
        return self._backend.decision(self._turn)

    def read_all(self, replies: Sequence[ModelOutput]) -> list[str | None]:
        """The same for samples, which nothing that is asked may depend on."""
        return [next(iter(self.choice.letters))] * len(replies)

    async def side_by_side(self, branches: Mapping[str, Awaitable[Any]]) -> None:
        """Make requests one after another."""
        for request in branches.values():
            await request

    async def _note(
        self,
        exchange: DefendedTurn,
        messages: Sequence[ChatMessage],
        earlier: int,
        sample: int,
        config: GenerateConfig | None,
        helper: Model | None,
        facts: Mapping[str, object],
    ) -> ModelOutput:
        turn = self._turn
        role = TESTED_ARM if helper is None else str(helper)
        draw = self._backend.drawn(turn.opening, sample, config, by_helper=helper is not None)
        texts = [(message.role, message.text) for message in messages]
        reply = self._backend.ask(turn, role, draw, texts)
        output = ModelOutput.from_content("dry run", reply)
        # there, and of no token: a defence that goes by them has to ask all the same
        output.choices[0].logprobs = Logprobs(content=[])
        return output


def _first_of(turn: Turn) -> Turn:
    while turn.parent is not None and turn.parent.number >= 0:
        turn = turn.parent
    return turn


def _drive(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise RuntimeError("a protocol may wait only for its own requests")


@dataclass(frozen=True)
class QuestionPlan:
    """What a protocol takes of one question in one replicate.

    Attributes:
        fewest_calls: requests at the least, by role.
        most_calls: requests at the most, by role.
        input_tokens: tokens that the most requests read, by role, at four characters each.
        output_tokens: tokens that they write, by role, by an assumed length.
        replays: turns before the newest one in them, by role, which an assistant with sessions is
            sent again.
        paths: arm and path of every turn that a table counts, in the order of asking.
        skipped_paths: paths that cannot be asked, with the reason.
        certain: requests to the model under test that every script makes.
        possible: forms of those that some script makes.
        goes_on: whether anything is asked after an answer.
        shared_forms: forms of the fewest requests, by role, that no replicate makes anew.
        replicate_forms: forms of those that each replicate makes.
    """

    fewest_calls: Mapping[str, int]
    most_calls: Mapping[str, int]
    input_tokens: Mapping[str, int]
    output_tokens: Mapping[str, int]
    replays: Mapping[str, int]
    paths: Sequence[Path]
    skipped_paths: Mapping[str, str]
    certain: frozenset[int]
    possible: frozenset[int]
    goes_on: bool
    shared_forms: Mapping[str, frozenset[int]]
    replicate_forms: Mapping[str, frozenset[int]]


@dataclass
class CallPlanner:
    """Plans questions of one study; what holds for questions of one shape is found once.

    Attributes:
        method: the protocol with its settings.
        roles: helpers that are bound.
        defence: wraps the model under test.
        epochs: times each question is asked.
        config: generation settings of the study.
        reply_tokens: assumed length of a reply.
    """

    method: Method
    roles: frozenset[str] = frozenset()
    defence: Defence | None = None
    epochs: int = 1
    config: GenerateConfig = field(default_factory=GenerateConfig)
    reply_tokens: int = REPLY_TOKENS
    _scripts: dict[object, dict[tuple[str, int], Script]] = field(default_factory=dict)

    def outline(self, question: Question) -> QuestionPlan:
        """Plan a question where every answer has its first outcome."""
        return _Search(self, question, 1).plan({})

    def plan(self, question: Question, replicate: int = 1) -> QuestionPlan:
        """Plan a question in one replicate."""
        search = _Search(self, question, replicate)
        first = search.run({})
        shape = search.shape()
        if shape not in self._scripts:
            self._scripts[shape] = search.scripts()
        return search.plan(self._scripts[shape]) if first.choices else search.plan({})


@dataclass
class _Search:
    """The scripts of one question."""

    explorer: CallPlanner
    question: Question
    replicate: int
    _runs: dict[frozenset[tuple[Point, str]], tuple[Dry, Run]] = field(default_factory=dict)
    _best: dict[object, Script] = field(default_factory=dict)

    def run(self, script: Script) -> Dry:
        """Run the protocol dry by a script."""
        return self._run(script)[0]

    def _run(self, script: Script) -> tuple[Dry, Run]:
        # a choice that is not in a script has its first outcome
        key = frozenset(item for item in script.items() if item[1] not in (KEEPS, USABLE))
        if key not in self._runs:
            if len(self._runs) > MOST_SCRIPTS:
                raise RuntimeError("the protocol has too many branches for a plan")
            self._runs[key] = self._run_dry(script)
        return self._runs[key]

    def _run_dry(self, script: Script, usual: int = 0) -> tuple[Dry, Run]:
        planner = self.explorer
        backend = Dry(
            script, planner.roles, planner.defence, planner.config, planner.reply_tokens, usual
        )
        run = Run(self.question, backend, self.replicate, planner.epochs)
        token = place.set(())
        try:
            _drive(cast("Coroutine[Any, Any, None]", planner.method(run)))
        finally:
            place.reset(token)
        return backend, run

    @cached_property
    def alternative_runs(self) -> list[Dry]:
        """Runs in which every choice has its second outcome, its third, its last."""
        runs = [self._run_dry({}, usual)[0] for usual in (1, 2, 3)]
        return runs if self.run({}).choices else []

    def shape(self) -> object:
        """What questions have in common of which the same scripts lead to the extremes."""
        first, run = self._run({})
        requests = tuple(
            (request.role, request.place, request.arm) for request in first.requests.values()
        )
        return requests, tuple(run.skipped_paths.items()), len(self.question.options)

    def scripts(self) -> dict[tuple[str, int], Script]:
        """By role and sign, the scripts of the fewest (-1) and the most (1) requests."""
        roles = (TESTED_ARM, *sorted(self.explorer.roles))
        return {
            (role, sign): self._extreme({}, (), role, sign) for role in roles for sign in (-1, 1)
        }

    def _extreme(self, script: Script, where: Place, role: str, sign: int) -> Script:
        """The best of the outcomes in a branch; its own branches are tried each by itself."""
        best: tuple[tuple[int, int], Script] | None = None
        left = [script]
        while left:
            script = left.pop()
            dry = self.run(script)
            open_choices = [p for p in dry.choices if p[0] == where and p not in script]
            if open_choices:
                outcomes = dry.choices[open_choices[0]]
                if LATE in outcomes:
                    needless = NOT_LEAST if sign < 0 else NOT_MOST
                    outcomes = tuple(outcome for outcome in outcomes if outcome not in needless)
                left += [{**script, open_choices[0]: outcome} for outcome in outcomes]
                continue
            for child in _children(dry, where):
                inside = self._child(dry, script, child, role, sign)
                script = {**script, **inside}
            dry, count = self.run(script), _fewest if sign < 0 else _count
            # what it asks may be asked beside it too, until that comes out otherwise as well
            n = sign * count(dry, role), sign * count(dry, role, where)
            if best is None or n > best[0]:
                best = n, script
        assert best is not None
        return best[1]

    def _child(self, dry: Dry, script: Script, child: Place, role: str, sign: int) -> Script:
        """The best script of a branch; branches that look alike in several runs have the same."""
        depth, key = (
            len(child),
            (role, sign, *(_shape(run, child) for run in (dry, *self.alternative_runs))),
        )
        if key not in self._best:
            extreme = self._extreme(script, child, role, sign)
            self._best[key] = {(p[0][depth:], p[1]): run for p, run in extreme.items()
                               if p[0][:depth] == child}  # fmt: skip
        return {((*child, *p[0]), p[1]): run for p, run in self._best[key].items()}

    def plan(self, scripts: Mapping[tuple[str, int], Script]) -> QuestionPlan:
        """Read the plan off the runs by these scripts."""
        runs = {extreme: self.run(script) for extreme, script in scripts.items()}
        all_runs = [self.run({}), *runs.values()]
        roles = (TESTED_ARM, *sorted(self.explorer.roles))
        shortest_runs = {role: runs.get((role, -1), all_runs[0]) for role in roles}
        fewest_calls = {role: _fewest(shortest_runs[role], role) for role in roles}
        longest_runs = {role: runs.get((role, 1), all_runs[0]) for role in roles}
        requests = {
            role: [o for o in longest_runs[role].requests.values() if o.role == role]
            for role in roles
        }
        tested_numbers = [
            frozenset(n for n, o in dry.requests.items() if o.role == TESTED_ARM)
            for dry in all_runs
        ]
        return QuestionPlan(
            fewest_calls,
            {role: len(requests[role]) for role in roles},
            {role: sum(o.characters for o in requests[role]) // 4 for role in roles},
            {role: sum(o.tokens for o in requests[role]) for role in roles},
            {role: sum(o.earlier for o in requests[role]) for role in roles},
            tuple(dict.fromkeys(path for script in ({}, *scripts.values())
                                for path in _paths(self._run(script)[1]))),
            dict(self._run({})[1].skipped_paths),
            frozenset.intersection(*tested_numbers),
            frozenset(request.form for dry in all_runs for request in dry.requests.values()
                      if request.role == TESTED_ARM),
            any(turn.number > 0 and turn.opening.role == TESTED_ARM
                for script in ({}, *scripts.values()) for turn in self._run(script)[1].ordered),
            {role: _forms(shortest_runs[role], role, is_shared=True) for role in roles},
            {role: _forms(shortest_runs[role], role, is_shared=False) for role in roles},
        )  # fmt: skip


def _count(dry: Dry, role: str, where: Place = ()) -> int:
    """Requests to a role in a branch."""
    return len([*_select_requests(dry, role, where)])


def _fewest(dry: Dry, role: str, where: Place = ()) -> int:
    """The same where all replies are alike."""
    return len({request.form for request in _select_requests(dry, role, where)})


def _select_requests(dry: Dry, role: str, where: Place) -> Iterator[PlannedRequest]:
    for request in dry.requests.values():
        if request.role == role and request.place[: len(where)] == where:
            yield request


def _shape(dry: Dry, child: Place) -> object:
    """What a run asks and chooses in a branch."""
    depth = len(child)
    requests = tuple(
        (request.role, request.place[depth:], request.arm)
        for request in dry.requests.values()
        if request.place[:depth] == child
    )
    choices = tuple((p[0][depth:], p[1], dry.choices[p]) for p in dry.choices
                    if p[0][:depth] == child)  # fmt: skip
    return requests, choices


def _forms(dry: Dry, role: str, *, is_shared: bool) -> frozenset[int]:
    requests = (request for request in dry.requests.values() if request.role == role)
    return frozenset(request.form for request in requests if request.is_shared is is_shared)


def _children(dry: Dry, where: Place) -> list[Place]:
    depth = len(where)
    places = {p[0][: depth + 1] for p in dry.choices if len(p[0]) > depth}
    return sorted(position for position in places if position[:depth] == where)


def _paths(run: Run) -> Iterator[Path]:
    for turn in run.ordered:
        if turn.opening.role == TESTED_ARM:
            yield turn.arm, ">".join(step.step for step in turn.interventions)
