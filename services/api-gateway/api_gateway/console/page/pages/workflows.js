/** What is under way, and what blocks it: a board with lanes, oldest first. */
import '../parts/pages-style.js';
import {html, onText, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {duration, words} from '../core/format.js';
import {useKey} from '../core/keys.js';
import {setQuery} from '../core/router.js';
import {useResource} from '../core/store.js';
import {now} from '../core/time.js';
import {cancelWorkflow, MAX_RETRIED, retryWorkflow, retryWorkflows} from '../parts/actions.js';
import {Badge, Beads} from '../parts/badges.js';
import {Cli, quoted} from '../parts/cli.js';
import {say} from '../parts/announce.js';
import {ActionButton, allowedOf, mayChange, whyNot} from '../parts/dialog.js';
import {AggregateLink, aggregateHref, Age, ContainerLink, StoreLink, Until} from '../parts/link.js';
import {Panel} from '../parts/panel.js';
import {STEPS} from '../parts/steps.js';
import {Choice, Select} from '../parts/choice.js';
import {groupsOf} from './workflow-groups.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Tone} from '../parts/types.d.ts' */
/** @import {Wait, WorkflowItem} from 'api' */

const LANES = /** @type {[string, string, Tone, string][]} */ ([
  ['failing', 'Failing', 'bad', 'A step fails and is tried again.'],
  ['waiting', 'Waiting for another', 'warn', 'Work that others come before.'],
  ['running', 'Running', 'busy', 'Work that gets on.'],
  ['queued', 'Waiting its turn', 'idle', 'Work that has not begun.'],
]);
const SHOWN = 30;
const SHOWN_ERROR = 2000;
const ENDED_MS = 600_000;
const MAX_ENDED = 20;
const LIMIT = 1000;

export const title = () => 'Workflows';

/** @param {{query: Filters}} props */
export default function Workflows({query}) {
  const {kind = '', scope = '', q = '', group = 'error', state = ''} = query;
  const work = useResource('workflows', {
    query: {kind, scope, q, state, sort: 'since', limit: LIMIT},
    of: ['*'],
    keep: true,
    every: 5000,
    // What transactions do is too much to follow one by one.
    when: ({aggregate}) => !/^(txn|prepared|commits):/.test(aggregate),
  });
  const items = /** @type {WorkflowItem[]} */ (work.data?.items ?? []);
  // What is shown until the answer is there is of another filter.
  const isWhole = work.fetchedAt > 0 && !work.data?.next;
  // What leaves a lane has not ended.
  const ended = useEnded(items, `${kind} ${scope} ${q}`, isWhole && !state);
  const kinds = useMemo(
    () => [...new Set([...items.map((item) => item.kind), ...(kind ? [kind] : [])])].sort(),
    [work.data, kind],
  );
  const lanes = LANES.filter(([name]) => !state || name === state);
  const board = useRef(/** @type {HTMLElement | null} */ (null));
  useCards(board, items);

  return html`<div class="page fill">
    <div class="title"><h1>Workflows</h1>
      ${LANES.map(([name, , tone]) => {
        const number = items.filter((item) => item.state === name).length;
        return number || state === name
          ? html`<button type="button" key=${name} class="mark" aria-pressed=${String(state === name)}
            title=${state === name ? 'show all lanes' : 'show this lane alone'}
            onClick=${() => setQuery({state: state === name ? '' : name})}>
          <${Badge} tone=${tone}>${number} ${name}<//></button>`
          : null;
      })}${
        state
          ? html`<button type="button" class="small quiet" onClick=${() => setQuery({state: ''})}>all lanes</button>`
          : null
      }
      <span class="tools"><${Cli} line=${line(query)} /></span></div>
    <div class="filters" role="search">
      <input type="search" aria-label="Text in name, kind, step or error" placeholder="name, kind, step or error"
        value=${q} onInput=${onText((text) => setQuery({q: text}))} />
      <${Select} label="Kind" value=${kind} options=${[['', 'all kinds'], ...kinds.map((one) => [one, words(one)])]}
        onChange=${(text) => setQuery({kind: text})} />
      <input type="text" aria-label="Scope" placeholder="scope" size="12" value=${scope}
        onInput=${onText((text) => setQuery({scope: text.trim()}))} />
      <${Choice} label="Grouped by" value=${group}
        options=${[['error', 'error'], ['kind', 'kind'], ['store', 'store'], ['scope', 'scope'], ['no', 'no groups']]}
        onChange=${(/** @type {string} */ next) => setQuery({group: next === 'error' ? '' : next})} />
    </div>
    <${Panel} of=${work} class="fill bare" flush lines=${8}>${(data) => html`
      ${data.next ? html`<div class="banner warn">These are the ${LIMIT} oldest; filters show others.</div>` : null}
      <div class="board" ref=${board}>
        ${lanes.map(
          ([name, label, tone, hint]) => html`<${Lane} key=${name} ...${{name, label, tone, hint, group}}
          items=${items.filter((item) => item.state === name)} isAll=${isWhole && !kind && !scope && !q} />`,
        )}
        ${state ? null : html`<${Ended} items=${ended} />`}
      </div>`}<//>
  </div>`;
}

/** The same list on the command line. @param {Filters} query */
function line({kind, scope, state, q}) {
  const options = Object.entries({kind, scope, state, text: q})
    .filter(([, value]) => value)
    .map(([name, value]) => ` --${name} ${quoted(value ?? '')}`);
  return `sluice workflow list${options.join('')}`;
}

/**
 * @param {{name: string, label: string, tone: Tone, hint: string, group: string, items: WorkflowItem[], isAll:
 *   boolean}} props
 *   `isAll`: there are no others than those that were fetched
 */
function Lane({name, label, tone, hint, group, items, isAll}) {
  const [most, setMost] = useState(SHOWN);
  const isGrouped = group !== 'no';
  const groups = isGrouped ? groupsOf(items, group) : [];
  return html`<section class=${`lane ${tone}`} aria-label=${label}>
    <header><h2>${label}</h2><span class="count num">${items.length}</span>
      ${name === 'failing' && items.length > 1 ? html`<${RetryAll} items=${items} />` : null}</header>
    ${
      items.length === 0 &&
      html`<p class="none">
      ${name === 'failing' ? (isAll ? 'Nothing is failing.' : 'None of these is failing.') : hint}</p>`
    }
    ${
      isGrouped
        ? groups.map(
            (one) => html`<div class="cluster" key=${one.key}>
        <h3 title=${one.key}><span class="cut">${one.key}</span><span class="num">${one.items.length}</span>
          ${name === 'failing' && one.items.length > 1 && html`<${RetryAll} items=${one.items} why=${one.key} />`}</h3>
        ${one.items.slice(0, most).map((item) => html`<${Card} key=${item.aggregate} item=${item} lane=${tone} />`)}
        ${
          one.items.length > most &&
          html`<${More} left=${one.items.length - most} onClick=${() => setMost(most + SHOWN)} />`
        }
      </div>`,
          )
        : html`${items.slice(0, most).map((item) => html`<${Card} key=${item.aggregate} item=${item} lane=${tone} />`)}
        ${items.length > most && html`<${More} left=${items.length - most} onClick=${() => setMost(most + SHOWN)} />`}`
    }
  </section>`;
}

/** @param {{left: number, onClick: () => void}} props */
function More({left, onClick}) {
  return html`<button type="button" class="quiet" onClick=${onClick}>${Math.min(left, SHOWN)} more of ${left}</button>`;
}

/** @param {{items: WorkflowItem[], why?: string}} props */
function RetryAll({items, why}) {
  const chosen = items.slice(0, MAX_RETRIED);
  return html`<${ActionButton} small allowed=${mayChange('workflows')} onClick=${() => void retryWorkflows(chosen, why)}
    title=${items.length > chosen.length ? `the ${MAX_RETRIED} oldest of ${items.length}` : undefined}>
    Retry ${chosen.length === items.length ? 'all' : 'the first'} ${chosen.length}<//>`;
}

/** @param {{item: WorkflowItem, lane: Tone}} props */
function Card({item, lane}) {
  const steps = STEPS[item.kind];
  const cancel = allowedOf(item, 'cancel') ?? {allowed: item.canCancel, why: item.cancelWhyNot};
  return html`<article class="card" tabindex="-1" data-aggregate=${item.aggregate}
    aria-label=${`${words(item.kind)} ${item.aggregate}`}>
    <div class="head"><b>${words(item.kind)}</b><span class="muted">for <${Age} at=${item.since} /></span></div>
    <div class="what"><${AggregateLink} aggregate=${item.aggregate} /></div>
    ${
      item.state === 'queued'
        ? null
        : html`<div class="step">${steps ? html`<${Beads} steps=${steps} step=${item.step} tone=${lane} />` : null}
          <span>${item.step ? words(item.step) : html`<span class="muted">first step</span>`}</span>
      ${
        item.attempts
          ? html`<span class="muted num">${item.attempts} ${item.attempts === 1 ? 'attempt' : 'attempts'}</span>`
          : null
      }
      ${
        item.nextAttemptAt
          ? html`<span class="muted">next <${Until} at=${item.nextAttemptAt} over="any moment" /></span>`
          : null
      }</div>`
    }
    ${
      item.lastError &&
      item.state !== 'waiting' &&
      item.lastError !== item.waitsFor?.why &&
      html`<${Fold} text=${item.lastError.slice(0, SHOWN_ERROR)} />`
    }
    ${item.waitsFor ? html`<${Chain} wait=${item.waitsFor} />` : null}
    ${item.cancelled ? html`<p class="muted">Its end has been requested.</p>` : null}
    ${
      item.id
        ? html`<footer>
          ${
            item.state === 'running'
              ? null
              : html`<${ActionButton} small allowed=${allowedOf(item, 'retry')}
            onClick=${() => void retryWorkflow(item)}>Retry now<//>`
          }
      <${ActionButton} small allowed=${cancel} onClick=${() => void cancelWorkflow(item)}>Cancel<//>
      ${cancel && !cancel.allowed && cancel.why ? html`<span class="muted why">${cancel.why}</span>` : null}</footer>`
        : null
    }
  </article>`;
}

/** A failure: its first line as far as there is room, all of it when it is opened. @param {{text: string}} props */
function Fold({text}) {
  return html`<details class="fold error"><summary title=${text}>${text}</summary><p>${text}</p></details>`;
}

/** Whom it waits for, and whom that waits for in turn. @param {{wait: Wait}} props */
function Chain({wait}) {
  const links = [];
  for (let one = /** @type {typeof wait | undefined} */ (wait); one && links.length < 8; one = one.then)
    links.push(one);
  return html`<ol class="chain" aria-label="waits for">${links.map(
    (one, index) => html`<li key=${index} style=${`margin-left:${index * 12}px`}>
    <span aria-hidden="true">↳</span> ${
      one.aggregate
        ? html`${one.kind ? html`${words(one.kind)} ` : null}
      <${AggregateLink} aggregate=${one.aggregate} />`
        : null
    }
    ${
      one.container !== undefined &&
      html`<${ContainerLink}
      container=${one.container} /> ${one.store ? html`<${StoreLink} store=${one.store} />` : null}`
    }
    ${one.why ? html`<${Fold} text=${one.why} />` : null}</li>`,
  )}</ol>`;
}

/** @param {{items: {item: WorkflowItem, at: number}[]}} props */
function Ended({items}) {
  if (items.length === 0) return null;
  return html`<section class="lane ended" aria-label="Ended lately"><header><h2>Ended lately</h2>
    <span class="count num">${items.length}</span></header>
    ${items.map(
      ({
        item,
        at,
      }) => html`<article class="card" key=${item.id || item.aggregate}><div class="head"><b>${words(item.kind)}</b>
        <span class="muted"><${Age} at=${at} /> ago</span></div>
      <div class="what"><${AggregateLink} aggregate=${item.aggregate} /></div>
      <div class="muted">took ${duration(at - item.since)}</div></article>`,
    )}</section>`;
}

/**
 * What has left the board while it was open.
 * @param {WorkflowItem[]} items @param {string} filter what is compared is of one filter
 * @param {boolean} isWhole whether these are all
 */
function useEnded(items, filter, isWhole) {
  const before = useRef({filter: '', items: /** @type {Map<string, WorkflowItem>} */ (new Map())});
  const [ended, setEnded] = useState(/** @type {{item: WorkflowItem, at: number}[]} */ ([]));
  useEffect(() => {
    if (!isWhole) return;
    const present = new Map(items.map((item) => [`${item.aggregate} ${item.id}`, item]));
    if (before.current.filter === filter) {
      const gone = [...before.current.items]
        .filter(([key, item]) => !present.has(key) && item.id)
        .map(([, item]) => ({item, at: now()}));
      if (gone.length > 0)
        setEnded((old) => [...gone, ...old].filter(({at}) => now() - at < ENDED_MS).slice(0, MAX_ENDED));
    }
    before.current = {filter, items: present};
  }, [items, filter, isWhole]);
  return ended;
}

/**
 * j k go through the cards, Enter opens, r retries.
 * @param {{current: HTMLElement | null}} board @param {WorkflowItem[]} items
 */
function useCards(board, items) {
  const cards = () => [
    .../** @type {NodeListOf<HTMLElement>} */ (board.current?.querySelectorAll('.card[data-aggregate]') ?? []),
  ];
  const focused = () =>
    /** @type {HTMLElement | null} */ (document.activeElement?.closest('.card[data-aggregate]') ?? null);
  const aggregate = () => focused()?.dataset.aggregate ?? '';
  /** @param {number} by */
  function step(by) {
    const all = cards(),
      now = focused();
    const next = all[Math.max(0, Math.min(all.length - 1, (now ? all.indexOf(now) : by > 0 ? -1 : all.length) + by))];
    next?.focus();
    next?.scrollIntoView({block: 'nearest'});
  }
  useKey('j', 'next card', () => step(1));
  useKey('k', 'card before', () => step(-1));
  useKey('r', 'retry the card', () => {
    const item = items.find((one) => one.aggregate === aggregate() && one.id);
    const why = item && whyNot(allowedOf(item, 'retry'));
    if (why) say(why);
    else if (item) void retryWorkflow(item);
  });
  useKey('Enter', 'open the card', () => {
    if (document.activeElement === focused() && aggregate()) location.hash = aggregateHref(aggregate());
  });
}
