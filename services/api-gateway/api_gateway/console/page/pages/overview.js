/** Is anything wrong? First a sentence, then what needs attention, figures, and what is happening now. */
import {html, useEffect, useMemo, useRef, useState, useLater} from '../core/html.js';
import {chainEnd, count, number, perS, words} from '../core/format.js';
import {onChanged, paused} from '../core/live.js';
import {href} from '../core/router.js';
import {useOverview, useResource} from '../core/store.js';
import {clock, inPast, now} from '../core/time.js';
import {Badge} from '../parts/badges.js';
import {Cli, cli} from '../parts/cli.js';
import {ActionButton, allowedOf} from '../parts/dialog.js';
import {Age, AggregateLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
/** @import {Tone} from '../parts/types.d.ts' */
/** @import {Seen} from './types.d.ts' */
/** @import {OverviewModel, WorkflowItem} from 'api' */

const MAX_CHANGES = 50;
const SPAN_S = 300;
const STEP_S = 5;

export const title = () => 'Overview';

export default function Overview() {
  const overview = useOverview();
  return html`<div class="page overview">
    <div class="title"><h1>Overview</h1><span class="tools"><${Cli} line=${cli`workflow list`} /></span></div>
    <${Panel} of=${overview} class="bare" flush lines=${4}>
      ${(data) => html`<${Sentence} data=${data} /><${Figures} data=${data} />`}<//>
    <${Demonstrated} isEmpty=${overview.data?.counts?.scopes === 0} />
    <div class="halves"><div><${Failing} count=${overview.data?.workflows?.failing} />
      <${Hot} data=${overview.data} /></div><${Activity} /></div>
  </div>`;
}

/**
 * The demonstration, whose module is loaded where there is something to show of it.
 * @param {{isEmpty: boolean}} props
 */
function Demonstrated({isEmpty}) {
  const {data} = useResource('demonstration', {every: 5000});
  const isWanted = isEmpty || Boolean(data?.running);
  const Demonstration = useLater(isWanted, () => import('../parts/demonstration.js'))?.Demonstration;
  return isWanted && Demonstration ? html`<${Demonstration} isEmpty=${isEmpty} />` : null;
}

const TONES = /** @type {Record<string, Tone>} */ ({ok: 'ok', warn: 'warn', bad: 'bad'});
const WORDS = /** @type {Record<string, string>} */ ({ok: 'all well', warn: 'look at this', bad: 'act'});

/** @param {{data: OverviewModel}} props */
function Sentence({data}) {
  const {oldestFailing} = data.workflows ?? {};
  const said = data.sentence.toLowerCase();
  const problems = (data.problems ?? []).filter((/** @type {string} */ one) => !said.includes(one.toLowerCase()));
  return html`<section class=${`sentence ${data.level}`} aria-label="State of the system">
    <${Badge} tone=${TONES[data.level]}>${WORDS[data.level] ?? data.level}<//>
    <div><p class="says">${data.sentence}</p>
      ${
        problems.length > 0 &&
        html`<ul>
        ${problems.map((/** @type {string} */ one) => html`<li key=${one}>${one}</li>`)}</ul>`
      }
      ${
        oldestFailing &&
        html`<p class="muted">Oldest: ${words(oldestFailing.kind)} of <${AggregateLink}
        aggregate=${oldestFailing.aggregate} kind=${false} /> for <${Age} at=${oldestFailing.since} />.</p>`
      }</div>
  </section>`;
}

/** @param {{data: OverviewModel}} props */
function Figures({data}) {
  const {counts, workflows} = data;
  const {running, failing, waiting} = workflows;
  const figures = /** @type {[string, any, string, string][]} */ ([
    ['streams', counts.streams, href('/streams'), ''],
    ['segments', counts.segments, href('/streams', {sort: '-segments'}), ''],
    ['workflows', running + failing + waiting, href('/workflows'), failing ? 'bad' : ''],
    ['transactions', counts.transactionsOpen, href('/transactions'), ''],
    ['waiting commits', counts.transactionsWaiting, href('/transactions'), ''],
    ['overdue leases', data.overdueLeases, href('/transactions'), data.overdueLeases ? 'warn' : ''],
    ['dead letters', data.deadLetters, href('/dead-letters'), data.deadLetters ? 'warn' : ''],
    ['reader groups', counts.groups, href('/groups'), ''],
    ['tables', counts.tables, href('/tables'), ''],
    ['scopes', counts.scopes, href('/streams', {sort: 'scope'}), ''],
  ]);
  return html`<ul class="figures">
    ${figures.map(
      ([label, value, link, tone]) => html`<li key=${label}><a href=${link}><b class=${`num ${tone}`}>
      ${number(value)}</b><span>${label}</span></a></li>`,
    )}</ul>
    ${
      counts.scopes === 0 &&
      html`<${Empty} text="There is no scope yet. Streams, reader groups and tables live in scopes."
      cli=${cli`scope create demo`} />`
    }`;
}

/** The oldest workflows that fail. @param {{count: number | undefined}} props */
function Failing({count: failing}) {
  const work = useResource('workflows', {
    query: {state: 'failing', sort: 'since', limit: 5},
    of: ['cluster'],
    every: 5000,
  });
  return html`<${Panel} title="Failing work" of=${work} flush tools=${
    failing
      ? html`<a href=${href('/workflows', {state: 'failing', group: 'error'})}>all ${failing}, by
      error</a>`
      : null
  } emptyText="No workflow is failing.">${(data) =>
    html`<ul class="list">${data.items.map(
      (/** @type {WorkflowItem} */ item) => html`
      <li key=${item.aggregate}><div><b>${words(item.kind)}</b> <${AggregateLink} aggregate=${item.aggregate}
        kind=${false} /><span class="muted"> for <${Age} at=${item.since} />, ${count(item.attempts, 'attempt')}</span>
        <p class="bad clamp" title=${item.lastError}>${cause(item)}</p></div>
        <${ActionButton} small allowed=${allowedOf(item, 'retry')}
          onClick=${async () => (await import('../parts/actions.js')).retryWorkflow(item)}>Retry now<//></li>`,
    )}</ul>`}<//>`;
}

/** What a chain of waiting ends with says more than the last error. @param {WorkflowItem} item */
function cause({waitsFor, lastError}) {
  const end = chainEnd(waitsFor);
  return end?.container !== undefined ? end.why : lastError || end?.why;
}

/** @param {{data: OverviewModel | undefined}} props */
function Hot({data}) {
  const hot = data?.hotStreams ?? [];
  return html`<${Panel} title="Hot streams" flush>${
    data === undefined
      ? null
      : hot.length === 0
        ? html`<${Empty}
          text="No stream is reported hot. One is when its segments get more than the target of its scaling policy." />`
        : html`<ul class="list">${hot.map((one) => {
            const [scope, stream] = one.split('/');
            return html`<li key=${one}><a href=${href(['streams', scope, stream])}>${one}</a><a class="muted"
              href=${href(['streams', scope, stream], {tab: 'why'})}>why</a></li>`;
          })}</ul>`
  }<//>`;
}

const COMMIT = /Committed|Commit/;

/** What happens, as it happens: lines of the last minutes, and the last changes. */
function Activity() {
  const [seen, setSeen] = useState(/** @type {Seen[]} */ ([]));
  const totals = useRef(/** @type {Map<number, {changes: number, commits: number}>} */ (new Map()));
  const since = useRef(now());
  useEffect(() => {
    if (inPast.value) return undefined;
    /** @type {Seen[]} */
    let waiting = [];
    const unsubscribe = onChanged(['*'], (items) => {
      for (const {at, aggregate, types} of items ?? []) {
        const slot = Math.floor(at / 1000 / STEP_S);
        const total = totals.current.get(slot) ?? {changes: 0, commits: 0};
        total.changes += Math.max(1, types.length);
        if (types.some((type) => COMMIT.test(type))) total.commits++;
        totals.current.set(slot, total);
        waiting.push({at, aggregate, types});
      }
      if (waiting.length > MAX_CHANGES) waiting = waiting.slice(-MAX_CHANGES);
    });
    const timer = setInterval(() => {
      if (waiting.length === 0 || paused.peek() || document.visibilityState === 'hidden') return;
      const news = waiting.reverse();
      waiting = [];
      setSeen((old) => [...news, ...old].slice(0, MAX_CHANGES));
    }, 500);
    return () => {
      unsubscribe();
      clearInterval(timer);
    };
  }, [inPast.value]);
  if (inPast.value) return null;
  return html`<div>
    <${Panel} title="Changes and commits">
      <${Rates} totals=${totals.current} since=${since.current} />
    <//>
    <${Panel} title="Last changes" flush tools=${html`<a href=${href('/journal')}>journal</a>`}>
      ${
        seen.length === 0
          ? html`<${Empty} text="Changes are listed here as they come. None has come since this page was opened." />`
          : html`<ul class="changes">${seen.map(
              (one) => html`
        <li key=${`${one.at} ${one.aggregate} ${one.types.join()}`}><${Time} at=${one.at} /><span class="cut">
          <${AggregateLink} aggregate=${one.aggregate} /></span><span class="muted cut" title=${one.types.join(', ')}>
            ${phrase(one.types)}</span></li>`,
            )}</ul>`
      }
    <//>
  </div>`;
}

/** "ScaleStarted" as "scale started". @param {string[]} types */
function phrase(types) {
  return [...new Set(types)]
    .map((type) => type.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase())
    .join(', ');
}

/** @param {{totals: Map<number, {changes: number, commits: number}>, since: number}} props */
function Rates({totals, since}) {
  const end = Math.floor(clock.value / 1000 / STEP_S);
  const {changes, commits} = useMemo(() => {
    const first = end - SPAN_S / STEP_S;
    for (const slot of totals.keys()) if (slot < first) totals.delete(slot);
    const slots = Array.from({length: SPAN_S / STEP_S}, (_, index) => first + index);
    const known = (/** @type {number} */ slot) => (slot + 1) * STEP_S * 1000 > since;
    return {
      changes: slots.map((slot) => (known(slot) ? (totals.get(slot)?.changes ?? 0) / STEP_S : null)),
      commits: slots.map((slot) => (known(slot) ? (totals.get(slot)?.commits ?? 0) / STEP_S : null)),
    };
  }, [end]);
  return html`<${Spark} name="changes" values=${changes} hue=${1} /><${Spark} name="commits" values=${commits}
    hue=${3} />
    <p class="muted small">Per second, the last five minutes as far as this page was
      open. <a href=${href('/journal')}>What was before</a> is in the journal.</p>`;
}

const WIDE = 600;
const HIGH = 44;

/**
 * A small line with its last and its highest value.
 * @param {{name: string, values: (number | null)[], hue: number}} props
 */
function Spark({name, values, hue}) {
  const known = /** @type {number[]} */ (values.filter((value) => value !== null));
  const top = Math.max(1, ...known),
    last = known.at(-2) ?? known.at(-1) ?? 0;
  const points = values.flatMap((value, index) =>
    value === null || index === values.length - 1
      ? []
      : [`${((index / (values.length - 2)) * WIDE).toFixed(1)},${(HIGH - 1 - (value / top) * (HIGH - 4)).toFixed(1)}`],
  );
  return html`<div class="spark"><span>${name}<b class="num">${perS(last)}</b></span>
    <svg viewBox=${`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" role="img"
      aria-label=${`${name}: ${perS(last)}, at most ${perS(Math.max(0, ...known))}`}>
      <line x1="0" x2=${WIDE} y1=${HIGH - 1} y2=${HIGH - 1} class="axis" /><polyline points=${points.join(' ')}
        style=${`stroke:var(--hue-${hue})`} /></svg>
    <span class="muted num">at most ${perS(Math.max(0, ...known))}</span></div>`;
}
