"""Models judge a study through a real local endpoint that misbehaves in every way we know of."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from datetime import UTC, datetime

import pytest

from steelyard import Study
from steelyard.errors import ConfigError
from steelyard.judges import (
    Endpoint,
    EndpointError,
    FunctionJudge,
    ModelJudge,
    Prices,
    Prompt,
    QuestionPlan,
    QuestionsByGain,
    ReplyCache,
    Settings,
    estimate,
    plan_questions,
    run_judge,
)
from steelyard.judges.endpoint import retry_after
from steelyard.study import differing_picks
from tests.judges.endpoint import ChatServer, sensible, word_in

pytestmark = pytest.mark.server

FAST = {"first_wait": 0.01, "timeout": 0.5}


@pytest.fixture
def chat():
    servers = []

    def make(behave):
        servers.append(ChatServer(behave))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def judge_for(server, *, cache=None, prices=Prices(), tries=3, template=None, **settings):
    endpoint = Endpoint(server.url, "gpt-x", "secret", Settings(**{**FAST, **settings}))
    prompt = Prompt("How good?") if template is None else Prompt("How good?", template=template)
    return ModelJudge(endpoint, prompt, prices=prices, cache=cache, tries=tries)


def run(study, judge, plan=None, **options):
    return run_judge(study, judge, plan_questions(study, plan or QuestionPlan()), **options)


def values(study):
    table = study.judges.judgments()
    return {j.items[0]: j.answer[j.items[0]] for j in table if len(j.items) == 1 and j.purpose == "judgment"}


def once_per_item(trouble):
    """Misbehave at the first request about each item, then answer sensibly."""
    times: Counter[int] = Counter()

    def behave(handler, body, number):
        word = word_in(body)
        times[word] += 1
        if times[word] == 1:
            trouble(handler, body)
        else:
            sensible(handler, body, number)

    return behave


TROUBLES = {
    "timeout": lambda handler, body: time.sleep(0.8),
    "rate limit": lambda handler, body: handler.send(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.05"}),
    "server error": lambda handler, body: handler.send(503, "busy"),
    "malformed response": lambda handler, body: handler.send(200, "<html>login</html>"),
    "connection": lambda handler, body: handler.hang_up(),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_passing_trouble_is_retried_and_no_answer_is_lost(make_study, chat, trouble):
    server = chat(once_per_item(TROUBLES[trouble]))
    with Study.open(make_study(items=4)) as study:
        result = run(study, judge_for(server))
        assert (result.answered, result.failures, result.stopped) == (4, [], "")
        assert values(study) == {f"w{n}": 10 * n for n in range(4)}
        assert result.retries == {trouble: 4}


@pytest.mark.parametrize(
    "bad",
    ["I would say 7.", '{"A": "high"}', '{"A": 700}', '{"A": ', "[[[[", '{"B": 3}', "{}"],
)
def test_an_answer_that_does_not_fit_goes_back_with_the_reason(make_study, chat, bad):
    server = chat(once_per_item(lambda handler, body: handler.say(bad)))
    with Study.open(make_study(items=2)) as study:
        assert run(study, judge_for(server)).answered == 2
        again = server.requests[-1]["messages"]
        assert again[2] == {"role": "assistant", "content": bad}
        assert "is not valid" in again[3]["content"]


def test_an_answer_cut_off_is_asked_for_with_more_tokens(make_study, chat):
    def behave(handler, body, number):
        if body["max_tokens"] < 200:
            handler.say('{"A": 1', finish="length")
        else:
            sensible(handler, body, number)

    server = chat(behave)
    with Study.open(make_study(items=2)) as study:
        assert run(study, judge_for(server, max_tokens=64)).answered == 2
        assert sorted({request["max_tokens"] for request in server.requests}) == [64, 128, 256]


def test_refusals_and_hopeless_answers_are_listed_and_the_run_goes_on(make_study, chat):
    def behave(handler, body, number):
        word = word_in(body)
        if word == 0:
            handler.say(None, refusal="I cannot rate this.")
        elif word == 1:
            handler.say("no idea")
        elif word == 2:
            handler.say("", finish="content_filter")
        else:
            sensible(handler, body, number)

    with Study.open(make_study(items=5)) as study:
        result = run(study, judge_for(chat(behave)))
        assert result.answered == 2
        kinds = {failure.question.items[0]: failure.kind for failure in result.failures}
        assert kinds == {"w0": "refused", "w1": "invalid answer", "w2": "refused"}
        assert "no idea" in next(f.reason for f in result.failures if f.kind == "invalid answer")


def test_a_run_that_only_fails_stops_early(make_study, chat):
    server = chat(lambda handler, body, number: handler.say("no"))
    with Study.open(make_study(items=40)) as study:
        result = run(study, judge_for(server, tries=1, concurrency=1), concurrency=1)
        assert "10 failures in a row" in result.stopped
        assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("status", "words"), [(401, "refuses the key"), (404, "does not know the model"), (400, "400")]
)
def test_a_wrong_key_or_model_ends_the_run_at_once(make_study, chat, status, words):
    server = chat(lambda handler, body, number: handler.send(status, {"error": {"message": "nope"}}))
    with Study.open(make_study(items=4)) as study, pytest.raises(EndpointError, match=words):
        run(study, judge_for(server), concurrency=1)
    assert len(server.requests) == 1


def test_an_endpoint_without_structured_output_is_asked_without(make_study, chat):
    def behave(handler, body, number):
        if "response_format" in body:
            handler.send(400, {"error": {"message": "response_format is not supported"}})
        else:
            sensible(handler, body, number)

    server = chat(behave)
    with Study.open(make_study(items=3)) as study:
        assert run(study, judge_for(server), concurrency=1).answered == 3
    forms = [request.get("response_format", {}).get("type") for request in server.requests]
    assert forms == ["json_schema", "json_object", None, None, None]


def test_retry_after_is_obeyed_by_all_requests(make_study, chat):
    def behave(handler, body, number):
        if number == 1:
            handler.send(429, "wait", {"Retry-After": "0.4"})
        else:
            sensible(handler, body, number)

    server = chat(behave)
    with Study.open(make_study(items=6)) as study:
        assert run(study, judge_for(server), concurrency=1).answered == 6
    assert server.times[1] - server.times[0] >= 0.39


def test_a_date_in_retry_after_is_understood():
    now = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
    assert retry_after("Thu, 01 Jan 2026 12:00:30 GMT", now) == 30
    assert retry_after("7") == 7
    assert retry_after("soon") is None
    assert retry_after("-3") == 0


def test_requests_keep_their_rate(make_study, chat):
    server = chat(sensible)
    with Study.open(make_study(items=4)) as study:
        run(study, judge_for(server, requests_per_minute=600))
    gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
    assert min(gaps) > 0.06


def test_the_cost_cap_holds_and_the_run_resumes_where_it_stopped(make_study, chat):
    server = chat(sensible)
    prices = Prices(input=1000, output=1000)  # 0.11 a call
    with Study.open(make_study(items=6)) as study:
        judge = judge_for(server, prices=prices)
        result = run(study, judge, max_cost=0.3, concurrency=1)
        assert (result.answered, result.meter.calls) == (3, 3)
        assert result.meter.cost == pytest.approx(0.33)
        assert "limit of" in result.stopped
        again = run(study, judge, concurrency=1)
        assert (again.already, again.answered) == (3, 3)
        assert len(server.requests) == 6
        assert study.judgments()["cost"].sum() == pytest.approx(0.66)


def test_replies_are_cached_by_content_across_studies_and_a_torn_line_is_ignored(make_study, chat, tmp_path):
    server = chat(sensible)
    file = tmp_path / "cache.jsonl"
    for name in ("one", "two"):
        with Study.open(make_study(items=3, name=name)) as study:
            result = run(study, judge_for(server, cache=ReplyCache(file)))
            assert result.answered == 3
        file.write_text(file.read_text() + '{"key": "abc", "te')
    assert len(server.requests) == 3
    assert (result.meter.cached, result.meter.calls) == (3, 0)


def test_a_new_prompt_is_a_new_version_in_the_log(make_study, chat):
    server = chat(sensible)
    with Study.open(make_study(items=2)) as study:
        run(study, judge_for(server))
        assert run(study, judge_for(server)).already == 2
        assert run(study, judge_for(server, template="Be strict. {items} {form}")).answered == 2
        versions = study.judges.registrations()["gpt-x"]
        assert [v.prompt.endswith("Be strict. {items} {form}") for v in versions] == [False, True]
        assert len(set(study.judgments()["version"])) == 2
        log = "".join(event.text for event in study.events())
    assert "secret" not in log


def test_repeats_are_asked_again_and_measure_self_consistency(make_study, chat):
    calls: Counter[int] = Counter()

    def behave(handler, body, number):
        calls[word_in(body)] += 1
        handler.say(json.dumps({"A": 10 * word_in(body) + calls[word_in(body)]}))

    with Study.open(make_study(items=3)) as study:
        result = run(study, judge_for(chat(behave), temperature=1.0), QuestionPlan(repeats=3))
        assert result.answered == 9
        repeated = [j for j in study.judges.judgments() if j.purpose == "repeat"]
        assert len(repeated) == 6
        assert {j.about for j in repeated} == {
            j.judgment_id for j in study.judges.judgments() if j.purpose == "judgment"
        }


ANSWERS = {
    'name = "direct"': {"A": 50},
    'name = "likert"': {"A": 3},
    'name = "direct"\ncriteria = { joy = {}, fear = {} }': {"A": {"joy": 1, "fear": 2}},
    'name = "choice"\nlabels = ["yes", "no"]': {"A": "yes"},
    'name = "pairwise"': {"winner": "A"},
    'name = "pairwise"\nties = true': {"winner": "tie"},
    'name = "pairwise"\nsteps = 5': {"winner": "B", "strength": 2},
    'name = "pairwise"\ncriteria = { joy = {}, fear = {} }': {"joy": {"winner": "A"}, "fear": {"winner": "tie"}},
    'name = "ranking"\nsize = 2\ncriteria = { joy = {}, fear = {} }': {
        "joy": {"ranking": [["A"], ["B"]]},
        "fear": {"ranking": [["A", "B"]]},
    },
    'name = "best_worst"': {"best": "A", "worst": "D"},
    'name = "ranking"\nsize = 3': {"ranking": [["A"], ["B"], ["C"]]},
    'name = "scored_ranking"\nsize = 3': {"A": 1, "B": 2, "C": 3},
    'name = "error_spans"': {"A": {"score": 40, "spans": [{"quote": "", "severity": "minor"}]}},
}


@pytest.mark.parametrize("protocol", ANSWERS)
def test_every_protocol_can_be_judged_and_its_schema_accepts_the_answer(make_study, chat, protocol):
    server = chat(
        lambda handler, body, number: handler.say("Sure!\n```json\n" + json.dumps(ANSWERS[protocol]) + "\n```")
    )
    with Study.open(make_study(protocol, items=6)) as study:
        result = run(study, judge_for(server), QuestionPlan(per_item=2))
        assert not result.failures
        assert result.answered == study.status().model_judgments > 0
        judged = {item for j in study.judges.judgments() for item in j.items}
        assert judged == {item.id for item in study.items}
    schema = server.requests[0]["response_format"]["json_schema"]["schema"]
    assert set(schema["required"]) == set(ANSWERS[protocol])


def test_comparisons_are_asked_in_both_orders_and_within_people_s_pairs(make_study, chat):
    server = chat(lambda handler, body, number: handler.say('{"winner": "A"}'))
    with Study.open(make_study('name = "pairwise"', items=6)) as study:
        task = study.ask("ann")
        study.tell(task, {"winner": task.item_ids[0]})
        run(study, judge_for(server), QuestionPlan(per_item=1))
        sets = [j.items for j in study.judges.judgments()]
        assert set(sets) == {pair[::-1] for pair in sets}
        assert task.item_ids in sets


def test_a_function_can_judge(make_study):
    def length(items, protocol):
        if items[0].id == "w1":
            raise ValueError("cannot say")
        return len(items[0].text)

    with Study.open(make_study(items=3)) as study:
        result = run_judge(study, FunctionJudge(length), plan_questions(study, QuestionPlan()))
        assert set(values(study)) == {"w0", "w2"}
        assert "ValueError: cannot say" in result.failures[0].reason
        assert study.annotators.kind("length") == "model"


def place_of(items, protocol):
    return 3 * int(items[0].id[1:])


def test_people_and_a_model_share_the_design_the_log_says_why_and_every_pick_replays(make_study):
    """The model stops while it is unproven, is excluded and readmitted on the way, and then answers the others."""
    design = 'name = "adaptive"\njudgments = 3\nmodel_cost = 0.2\nperson_cost = 1.0'
    folder = make_study(design=design, items=30)
    with Study.open(folder) as study:
        first = run_judge(study, FunctionJudge(place_of), QuestionsByGain(study))
        assert first.answered == 23  # 5 % of 90 judgments at a cost of 1 pay for 22.5 answers
        assert "people have judged 0" in first.ending
        for number in range(40):
            if number == 20:
                study.annotators.exclude("place_of", "a test")
            if number == 25:
                study.annotators.readmit("place_of")
            task = study.ask(f"p{number % 4}")
            study.tell(task, {task.items[0].id: place_of(task.items, None)})
        second = run_judge(study, FunctionJudge(place_of), QuestionsByGain(study))
        assert second.answered == 7
        assert differing_picks(study.events()) == []
        reasons = [event.data.reason for event in study.events() if event.kind in {"picked", "judgment"}]
        assert sum(reason.startswith("model: gain per cost") for reason in reasons) == 30
        assert sum(reason.startswith("person: ") for reason in reasons) == 40
        with study.core.log.read() as state:
            residual = state.progress[0].design_state.judges.residual
    assert residual < 0.5
    with Study.open(folder) as again, again.core.log.read() as state:
        assert state.progress[0].design_state.judges.residual == residual


def first_wins(items, protocol):
    return {"winner": max(items, key=lambda item: int(item.id[1:])).id}


def test_people_and_a_model_share_the_pairs_and_every_pick_replays(make_study):
    design = 'name = "adaptive"\njudgments = 8\nmodel_cost = 0.1\nperson_cost = 1.0'
    folder = make_study('name = "pairwise"', design=design, items=21)
    with Study.open(folder) as study:
        first = run_judge(study, FunctionJudge(first_wins), QuestionsByGain(study))
        assert first.answered == 42  # 5 % of 84 tasks at a cost of 1 pay for 42 answers
        assert "people have judged 0" in first.ending
        for number in range(24):
            task = study.ask(f"p{number % 4}")
            study.tell(task, first_wins(task.items, None))
        second = run_judge(study, FunctionJudge(first_wins), QuestionsByGain(study, limit=5))
        assert second.answered == 5
        pairs = [tuple(sorted(j.items)) for j in study.judges.judgments()]
        assert len(set(pairs)) == len(pairs) == 47
        assert differing_picks(study.events()) == []
        reasons = [event.data.reason for event in study.events() if event.kind in {"picked", "judgment"}]
        assert sum(reason.startswith("model: gain per cost") for reason in reasons) == 47
        with study.core.log.read() as state:
            residual = state.progress[0].design_state.judges.residual
    assert residual < 0.6
    with Study.open(folder) as again, again.core.log.read() as state:
        assert state.progress[0].design_state.judges.residual == residual


def test_a_design_that_does_not_weigh_models_is_named(make_study):
    with Study.open(make_study()) as study, pytest.raises(ConfigError, match="does not decide between people"):
        QuestionsByGain(study)


def test_the_estimate_is_close_to_what_is_sent(make_study, chat):
    server = chat(sensible)
    with Study.open(make_study(items=5)) as study:
        judge = judge_for(server, prices=Prices(input=1.0))
        questions = plan_questions(study, QuestionPlan())
        expected = estimate(study, judge, "gpt-x", questions)
        assert (expected.questions, expected.calls) == (5, 5)
        run_judge(study, judge, questions)
        assert estimate(study, judge, "gpt-x", questions).calls == 0
    sent = sum(len(json.dumps(request["messages"])) / 4 for request in server.requests)
    assert expected.input_tokens == pytest.approx(sent, rel=0.3)


def test_items_of_other_contexts_are_never_compared(make_study, tmp_path):
    folder = make_study('name = "pairwise"', items=2)
    rows = [f"s{n // 3}-{n % 3},text {n},source {n // 3}" for n in range(12)]
    (folder / "items.csv").write_text("id,text,context\n" + "\n".join(rows) + "\n")
    with Study.open(folder) as study:
        for question in plan_questions(study, QuestionPlan(per_item=3)):
            assert len({name.split("-")[0] for name in question.items}) == 1


def test_a_prompt_without_a_place_for_the_items_is_refused():
    with pytest.raises(ConfigError, match=r"no \{items\}"):
        Prompt("Q", template="Rate it. {form}")


def test_text_in_items_cannot_fill_the_template(make_study):
    from steelyard.protocols import Direct
    from steelyard.records import Item

    text = Prompt("Q").messages([Item("a", "{form} {question}")], Direct())[1]["content"]
    assert "<item A>{form} {question}</item>" in text


def test_the_endpoint_is_used_within_its_context(chat):
    server = chat(sensible)

    async def ask():
        async with Endpoint(server.url, "m", None, Settings(**FAST)) as endpoint:
            return await endpoint.reply([{"role": "s", "content": ""}, {"role": "u", "content": "<item A>word 3"}], {})

    assert asyncio.run(ask()).text == '{"A": 30}'


def test_an_endpoint_that_is_not_there_ends_the_run_and_leaves_no_trace(make_study, chat):
    server = chat(sensible)
    judge = judge_for(server)
    server.close()
    with Study.open(make_study(items=4)) as study:
        with pytest.raises(EndpointError, match="cannot be reached"):
            run(study, judge)
        assert study.judges.names() == []
