/** Is anything wrong? First a sentence, then what needs attention, figures, and what is happening now. */
import {html, useEffect, useState, useLater} from '../core/html.js';
import {bytesPerS, chainEnd, count, number, perS, time, words} from '../core/format.js';
import {onChanged, paused} from '../core/live.js';
import {href} from '../core/router.js';
import {useOverview, useResource} from '../core/store.js';
import {inPast} from '../core/time.js';
import {Badge} from '../parts/badges.js';
import {Cli, cli} from '../parts/cli.js';
import {ActionButton, allowedOf} from '../parts/dialog.js';
import {Age, AggregateLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
/** @import {Tone} from '../parts/types.d.ts' */
/** @import {HourLine, Seen, SparkProps} from './types.d.ts' */
/** @import {HourModel, OverviewModel, WorkflowItem} from 'api' */

const MAX_CHANGES = 50;
/** The hour and the last changes: one call, anew where changes may have been missed. */
const HOUR = {query: {changes: MAX_CHANGES}, every: 15_000, of: ['*'], when: () => false};

export const title = () => 'Overview';

export default function Overview() {
  const overview = useOverview();
  return html`<div class="page overview">
    <div class="title"><h1>Overview</h1><span class="tools"><${Cli} line=${cli`workflow list`} /></span></div>
    <${Panel} of=${overview} class="bare" flush lines=${4}>
      ${(data) => html`<${Sentence} data=${data} /><${Figures} data=${data} />`}<//>
    <${Demonstrated} isEmpty=${overview.data?.counts?.scopes === 0} />
    ${inPast.value ? null : html`<${Hour} />`}
    <div class="halves"><div><${Failing} count=${overview.data?.workflows?.failing} />
      <${Hot} data=${overview.data} /></div>${inPast.value ? null : html`<${Changes} />`}</div>
  </div>`;
}

/**
 * The demonstration, whose module is loaded where there is something to show of it.
 * @param {{isEmpty: boolean}} props
 */
function Demonstrated({isEmpty}) {
  const {data} = useResource('demonstration', {every: 15_000});
  const isWanted = isEmpty || Boolean(data?.running || data?.present);
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
      }<p class="muted">${(data.parts ?? []).map(
        ({name, up}) => html`<a key=${name} href=${href('/cluster')}><${Badge}
          tone=${up === false ? 'bad' : up ? 'ok' : 'idle'}>${name}${up === false ? ': not well' : ''}<//></a> `,
      )}</p></div>
  </section>`;
}

/** @param {{data: OverviewModel}} props */
function Figures({data}) {
  const {counts, workflows} = data;
  const {running, failing, waiting, queued} = workflows;
  const figures = /** @type {[string, any, string, string][]} */ ([
    ['streams', counts.streams, href('/streams'), ''],
    ['segments', counts.segments, href('/streams', {sort: '-segments'}), ''],
    ['workflows', running + failing + waiting + queued, href('/workflows'), failing ? 'bad' : ''],
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
  const work = useResource(failing ? 'workflows' : null, {
    query: {state: 'failing', sort: 'since', limit: 5},
    of: ['cluster'],
    every: 10_000,
  });
  if (!failing) {
    return html`<${Panel} title="Failing work" flush>${
      failing === 0 ? html`<${Empty} text="No workflow is failing." />` : null
    }<//>`;
  }
  return html`<${Panel} title="Failing work" of=${work} flush tools=${html`<a
    href=${href('/workflows', {state: 'failing', group: 'error'})}>all ${failing}, by error</a>`}
    emptyText="No workflow is failing.">${(data) =>
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
          text="No stream is short of segments, by the last decision on each within 10 minutes." />`
        : html`<ul class="list">${hot.map((one) => {
            const [scope, stream] = one.split('/');
            return html`<li key=${one}><a href=${href(['streams', scope, stream])}>${one}</a><a class="muted"
              href=${href(['streams', scope, stream], {tab: 'why'})}>why</a></li>`;
          })}</ul>`
  }<//>`;
}

/** The last fifty changes, and those that come. */
function Changes() {
  const hour = useResource('overview/hour', HOUR);
  const [news, setNews] = useState(/** @type {Seen[]} */ ([]));
  useEffect(() => {
    /** @type {Seen[]} */
    let waiting = [];
    // null: something was missed, and all of them are fetched anew.
    const unsubscribe = onChanged(['*'], (items) => {
      waiting = items ? [...waiting, ...items].slice(-MAX_CHANGES) : [];
    });
    const timer = setInterval(() => {
      if (waiting.length === 0 || paused.peek() || document.visibilityState === 'hidden') return;
      const found = waiting.reverse();
      waiting = [];
      setNews((old) => [...found, ...old].slice(0, MAX_CHANGES));
    }, 500);
    return () => {
      unsubscribe();
      clearInterval(timer);
    };
  }, []);
  return html`<${Panel} title="Last changes" flush tools=${html`<a href=${href('/journal')}>journal</a>`} of=${hour}>${(
    /** @type {HourModel} */ {changes},
  ) => {
    const newest = changes[0]?.at ?? 0;
    const shown = [...news.filter((one) => one.at > newest), ...changes].slice(0, MAX_CHANGES);
    if (shown.length === 0) return html`<${Empty} text="Nothing has changed yet." />`;
    return html`<ul class="changes">${shown.map(
      (one) => html`
        <li><${Time} at=${one.at} /><span class="cut">
          <${AggregateLink} aggregate=${one.aggregate} /></span><span class="muted cut" title=${one.types.join(', ')}>
            ${phrase(one.types)}</span></li>`,
    )}</ul>`;
  }}<//>`;
}

/** "ScaleStarted" as "scale started". @param {string[]} types */
function phrase(types) {
  return [...new Set(types)]
    .map((type) => type.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase())
    .join(', ');
}

const HOUR_MS = 3_600_000;
/** Of a minute that has just begun no rate is given. */
const LEAST_MS = 15_000;

/** @type {HourLine[]} */
const LINES = [
  ['changes', 'changes', 1, perS],
  ['commits', 'commits', 3, perS],
  ['aborts', 'aborts', 2, perS],
  ['bytes, where there is a policy', 'bytes', 4, bytesPerS],
  ['open transactions', 'open', 1],
  ['waiting commits', 'waiting', 3],
  ['silent containers', 'silent', 2],
];

/** From before this page was opened, of a new system from its beginning on. */
function Hour() {
  const hour = useResource('overview/hour', HOUR);
  return html`<${Panel} title="The last hour" of=${hour} emptyText="Nothing has happened yet.">${(
    /** @type {HourModel} */ {items, to, bucketMs},
  ) =>
    html`<div class="sparks">${LINES.map(([label, name, hue, format]) => {
      const points = items.flatMap((one) => {
        const value = one[name],
          ms = Math.min(to - one.at, bucketMs);
        if (value === undefined || (format && ms < LEAST_MS)) return [];
        return [{at: one.at, end: one.at + ms, value: format ? (value * 1000) / ms : value}];
      });
      return (
        points.length > 0 && html`<${Spark} key=${name} ...${{label, points, hue, to, format: format ?? number}} />`
      );
    })}</div>`}<//>`;
}

const WIDE = 600;
const HIGH = 44;

/** A line over the hour before `to`: its last and highest value, or the one pointed at. @param {SparkProps} props */
function Spark({label, points, hue, to, format}) {
  const [pointed, point] = useState(NaN);
  const most = Math.max(...points.map((one) => one.value)),
    last = format(points[points.length - 1].value);
  const x = (/** @type {number} */ at) => (((at - to + HOUR_MS) / HOUR_MS) * WIDE).toFixed(1);
  // Each value holds for all of its minute.
  const line = points.map(({at, end, value}, index) => {
    const y = HIGH - 1 - (value / Math.max(1, most)) * (HIGH - 4);
    return `${points[index - 1]?.end === at ? 'L' : 'M'}${x(at)} ${y.toFixed(1)}H${x(end)}`;
  });
  const found = points.find((one) => pointed >= one.at && pointed < one.end);
  const onMove = (/** @type {any} */ event) => {
    const box = event.currentTarget.getBoundingClientRect();
    point(to + ((event.clientX - box.right) / box.width) * HOUR_MS);
  };
  return html`<div class="spark"><p><span>${label}</span><b class="num">${last}</b>
    <span class="muted num">${found ? `${time(found.at)} ${format(found.value)}` : `at most ${format(most)}`}</span></p>
    <svg viewBox=${`0 0 ${WIDE} ${HIGH}`} preserveAspectRatio="none" role="img" onMouseMove=${onMove}
      onMouseLeave=${() => point(NaN)} aria-label=${`${label}: ${last}, in the last hour at most ${format(most)}`}>
      <line x1="0" x2=${WIDE} y1=${HIGH - 1} y2=${HIGH - 1} class="axis" /><path d=${line.join('')}
        style=${`stroke:var(--hue-${hue})`} /></svg></div>`;
}
