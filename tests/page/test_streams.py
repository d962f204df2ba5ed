"""The list of streams: when the gateway refuses a part of it, and what changes while it is fetched anew."""

import pytest
from page.fixtures import Open
from page.gateway import InThread
from playwright.sync_api import Route, expect

FIRST = 10
"""So many rows come with the first page."""


def test_a_list_whose_second_page_is_refused_says_so_and_is_whole_later(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    opened.expected = ["503"]
    refuses = True

    def answer(route: Route) -> None:
        if "limit=100&" in f"{route.request.url}&":
            route.fulfill(response=route.fetch(url=route.request.url.replace("limit=100", f"limit={FIRST}")))
        elif refuses:
            route.fulfill(status=503, json={"detail": "too much to do"})
        else:
            route.continue_()

    opened.page.route("**/sluice/v1/streams?*", answer)
    page = opened.go("#/streams")
    count = page.locator("main .title [role=status]")
    expect(page.get_by_role("alert")).to_contain_text("too much to do")
    expect(count).to_contain_text(f"{FIRST}+")
    refuses = False
    expect(page.get_by_role("alert")).to_have_count(0)
    listed = page.request.get(f"{sample.origin}/sluice/v1/streams?limit=1000").json()["items"]
    expect(count).to_have_text(str(len(listed)))


_LIST = """const entry = performance.getEntriesByType('resource').find(({name}) => name.endsWith('/core/live.js'));
    const {StreamList} = await import(entry.name.replace('core/live.js', 'pages/stream-list.js'));
    const calls = [], real = fetch;
    globalThis.fetch = (url, init) => !String(url).includes('/streams?') ? real(url, init) : new Promise((done) =>
        calls.push({url: String(url), answer: (items) => done(new Response(JSON.stringify({items})))}));
    const stream = (state) => [{scope: 'a', name: 'b', state}];
    const settled = async () => {
        while (list.fetching) await new Promise((done) => setTimeout(done));
    };
    const list = new StreamList(query ?? {});
    const loading = list.load();
    calls.shift().answer(stream('ACTIVE'));
    await loading;
"""


def test_what_changes_while_the_list_is_fetched_anew_is_not_undone(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/")
    state = page.evaluate(
        f"""async (query) => {{
            {_LIST}
            const again = list.load(), read = calls.shift();
            list.take([{{aggregate: 'stream:a/b', types: [], version: 2, at: 1}}]);
            list.flush();
            calls.shift()?.answer(stream('SEALED'));
            await settled();
            read.answer(stream('ACTIVE'));
            await again;
            list.flush();
            calls.shift()?.answer(stream('SEALED'));
            await settled();
            return list.rows.get('a/b').state;
        }}"""
    )
    assert state == "SEALED"


def test_a_list_behind_which_too_much_changed_is_fetched_anew(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/")
    fetched = page.evaluate(
        f"""async (query) => {{
            {_LIST}
            const names = Array.from({{length: 5000}}, (_, n) => `stream:a/${{n}}`);
            list.take(names.map((aggregate) => ({{aggregate, types: [], version: 2, at: 1}})));
            list.flush();
            clearTimeout(list.reloads);
            list.reload();
            return calls.map(({{url}}) => new URL(url).search);
        }}"""
    )
    assert fetched == ["?limit=1000"]


def test_a_commit_that_fails_is_found_in_a_list_that_does_not_show_its_stream(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/")
    fetched = page.evaluate(
        f"""async (query) => {{
            {_LIST}
            const found = [], began = 'CommitBatchStarted';
            for (const type of [began, 'WorkflowStepFailed', 'CommitBatchEnded', began]) {{
                list.take([{{aggregate: 'commits:a/b', types: [type], version: 2, at: 1}}]);
                list.flush();
                const call = calls.shift();
                const fails = type === 'WorkflowStepFailed';
                call?.answer([{{...stream('ACTIVE')[0], ...(fails ? {{workflow: 'commit', failing: true}} : {{}})}}]);
                await settled();
                found.push([type, call !== undefined, list.rows.get('a/b').failing ?? false]);
            }}
            return found;
        }}"""
    )
    assert fetched == [
        ["CommitBatchStarted", False, False],
        ["WorkflowStepFailed", True, True],
        ["CommitBatchEnded", True, False],
        ["CommitBatchStarted", False, False],
    ]


def test_what_transactions_changed_out_of_sight_is_fetched_once_it_is_seen(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/")
    fetched = page.evaluate(
        f"""async (query) => {{
            {_LIST}
            list.take([{{aggregate: 'txn:a/b', types: ['TransactionOpened'], version: 0, at: 1}}]);
            list.flush();
            const unseen = calls.length;
            list.visible = new Set(['a/b']);
            list.countsAt = 0;
            list.flush();
            return [unseen, calls.length];
        }}"""
    )
    assert fetched == [0, 1]


@pytest.mark.parametrize(("query", "left"), [({"scope": "a"}, [["a/b", True]]), ({"tag": "t"}, []), ({"q": "t"}, [])])
def test_a_stream_that_a_filter_lets_through_no_more_is_not_shown_as_gone(
    sample: InThread, visit: Open, query: dict[str, str], left: list[list[object]]
) -> None:
    page = visit(sample.url).go("#/")
    rows = page.evaluate(
        f"""async (query) => {{
            {_LIST}
            list.take([{{aggregate: 'stream:a/b', types: [], version: 2, at: 1}}]);
            list.flush();
            calls.shift().answer([]);
            await settled();
            return [...list.rows.values()].map((row) => [row.key, row.gone]);
        }}""",
        query,
    )
    assert rows == left
