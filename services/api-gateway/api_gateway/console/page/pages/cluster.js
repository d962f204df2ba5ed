/** Who holds what: members with their partitions, containers by segment store, and who held each container when. */
import '../parts/pages-style.js';
import {html, useMemo} from '../core/html.js';
import {count, duration, number} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {useResource} from '../core/store.js';
import {clock} from '../core/time.js';
import {Badge} from '../parts/badges.js';
import {Cli} from '../parts/cli.js';
import {Age, StoreLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
import {Rows} from '../parts/rows.js';
import {SearchState} from '../parts/search-state.js';
import {useBounds, useSearch} from '../parts/searching.js';
import {TimeSlider} from '../parts/slider.js';
import {Choice, SPAN_WORDS, SPANS} from '../parts/choice.js';
import {Plain} from '../parts/plain.js';
import {bandRows} from '../pictures/bands.js';
import {storeMarks} from '../pictures/stores.js';
import {joinHoldings, joinMemberships, movesOf, withGaps} from './holdings.js';
import {PartitionsByTopic, partitionsOf, ranges} from './partitions.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Search} from '../parts/types.d.ts' */
/** @import {StoreMark} from '../pictures/types.d.ts' */
/** @import {ContainerMap, MemberItem, PartitionModel} from 'api' */

const OFTEN_MS = 5000;
/** A heartbeat is due each minute and may take half of one more; from this age on it is missed. */
const MISSED_MS = 90_000;
/** From this age on what waits for a member is marked. */
const OLD_MS = 10_000;
const BANDS_PX = 460;
/** The service that decides by policies. */
const DECIDES = 'retention-spark';
/** @type {Record<string, string>} */
const DOES = {
  'api-gateway': 'answers calls',
  'stream-workflows': 'changes streams, groups, tables',
  'txn-manager': 'commits and aborts transactions',
  'cluster-manager': 'spreads containers over stores',
  [DECIDES]: 'decides on scaling and retention',
};
/** So many moves are named, the last ones. */
const MAX_MOVES = 12;

export const title = () => 'Cluster';

/** @param {{query: Filters, at: string | null}} props */
export default function ClusterPage({query, at}) {
  const isPast = at !== null;
  const containers = useResource('containers', {of: ['cluster'], every: OFTEN_MS, past: true});
  const members = useResource('members', {query: {limit: 1000}, of: ['cluster'], every: OFTEN_MS, past: true});
  const partitions = useResource(isPast ? null : 'partitions', {every: OFTEN_MS});
  const span = SPANS.find(([name]) => name === query.span) ?? SPANS[1];
  const bounds = useBounds(at, span[1]);
  const held = useSearch('containers/history', bounds, joinHoldings);
  const was = useSearch('members/history', bounds, joinMemberships);
  const marks = useMemo(
    () =>
      storeMarks([
        ...(containers.data?.stores ?? []),
        ...(containers.data?.items ?? []).map((one) => one.store),
        ...held.items.map((one) => one.store),
      ]),
    [containers.data, held.items],
  );
  const spans = html`<${Choice} label="Span" small value=${span[0]} options=${SPAN_WORDS}
    onChange=${(name) => setQuery({span: name === '6h' ? '' : name})} />`;

  return html`<div class="page">
    <div class="title"><h1>Cluster</h1><span class="tools"><${Cli} line="sluice member list" />
      <${Cli} line="sluice container list" /></span></div>
    <${TimeSlider} name="cluster" query=${{key: 'cluster'}} />
    <${Panel} title="Members" of=${members} emptyText="No instance is known.">
      ${(data) => html`<${Members} items=${data.items} partitions=${partitions.data?.items} isPast=${isPast}
        chosen=${query.member} />`}<//>
    <div class="halves">
      <${Panel} title="Containers" of=${containers} emptyText="There are no containers.">
        ${(data) => html`<${Containers} data=${data} marks=${marks} query=${query} />`}<//>
      <${Panel} title="Moves of containers"><${Moves} search=${held} marks=${marks} span=${span[1]} /><//>
    </div>
    <${Panel} title="Who held which container" tools=${spans}>
      <${Bands} search=${held} bounds=${bounds} marks=${marks} />
    <//>
    ${
      isPast
        ? null
        : html`<${Panel} title="Partitions" of=${partitions} emptyText="Kafka has none of Sluice's topics yet.">
      ${(data) => html`<${PartitionsByTopic} items=${data.items} at=${data.at} />`}<//>`
    }
    <${Panel} title="Members that left or were missed">
      <${Departures} search=${was} span=${span[1]} />
    <//>
  </div>`;
}

/**
 * @param {{items: MemberItem[], partitions: PartitionModel[] | undefined, isPast: boolean, chosen: string | undefined}}
 *   props `chosen`: service/instance
 */
function Members({items, partitions, isPast, chosen}) {
  const isDecided = items.some((one) => one.service === DECIDES);
  const heads = ['Service', 'Instance', 'Ready', 'Does', ...(partitions ? ['Waits for it', 'Partitions it owns'] : [])];
  return html`<${Plain} heads=${[...heads, 'Last heartbeat', isPast ? 'Up since' : 'Up for', 'Endpoints']}>
    ${items.map(
      (one) => html`<tr key=${`${one.service}/${one.instance}`}
        class=${chosen === `${one.service}/${one.instance}` ? 'chosen' : ''}>
      <td>${one.service}</td><td class="id">${one.instance}</td>
      <td><${Ready} member=${one} isPast=${isPast} /></td><td>${DOES[one.service] ?? ''}</td>
      ${
        partitions &&
        html`<td><${Waiting} own=${partitions.filter(({owner}) => owner === one.instance)} /></td>
          <td>${partitionsOf(partitions, one.instance)}</td>`
      }
      <td>${
        one.lastSeen === undefined
          ? html`<span class="muted">${isPast ? 'not recorded' : 'none received yet'}</span>`
          : html`<${Age} at=${one.lastSeen} /> ago`
      }</td>
      <td>${isPast ? html`<${Time} at=${one.since} />` : html`<${Age} at=${one.since} />`}</td>
      <td class="id">${Object.entries(one.endpoints)
        .map(([protocol, address]) => `${protocol} ${address}`)
        .join(', ')}</td></tr>`,
    )}<//>
    ${
      items.some((one) => one.instance.endsWith('-without-spark'))
        ? html`<p class="muted">Scaling and retention are decided without Spark,
      in the process of stream-workflows.</p>`
        : null
    }
    ${
      isDecided
        ? null
        : html`<p><${Badge} tone="warn">no ${DECIDES}<//> No policy for scaling or retention is decided on.</p>`
    }`;
}

/** How many records wait for a member, and for how long. @param {{own: PartitionModel[]}} props */
function Waiting({own}) {
  if (own.length === 0) return html`<span class="muted">–</span>`;
  const lag = own.reduce((sum, one) => sum + (one.lag ?? 0), 0);
  const oldestMs = Math.max(...own.map((one) => one.oldestOpenMs ?? 0));
  if (lag === 0) return html`<span class="muted">nothing</span>`;
  const text = `${count(lag, 'record')}${oldestMs > 0 ? `, the oldest for ${duration(oldestMs)}` : ''}`;
  return oldestMs > OLD_MS ? html`<${Badge} tone="warn">${text}<//>` : text;
}

/** @param {{member: MemberItem, isPast: boolean}} props */
function Ready({member, isPast}) {
  const problems = Object.entries(member.problems ?? {});
  if (problems.length > 0)
    return html`<${Badge} tone="bad">
      ${count(problems.length, 'problem')}
        <//> ${problems.map(([check, problem]) => `${check}: ${problem}`).join('; ')}`;
  if (isPast) return html`<span class="muted">not recorded</span>`;
  const age = clock.value - (member.lastSeen ?? 0);
  return member.lastSeen !== undefined && age > MISSED_MS
    ? html`<${Badge} tone="warn">silent<//>`
    : html`<${Badge} tone="ok">ready<//>`;
}

/**
 * The containers as a grid of numbers: each says its store by number and hue; what does not answer is marked.
 * @param {{data: ContainerMap, marks: Map<string, StoreMark>, query: Filters}} props
 */
function Containers({data, marks, query}) {
  const stores = [...marks].map(([store, mark]) => ({
    store,
    mark,
    held: data.items.filter((one) => one.store === store),
  }));
  const homeless = data.items.filter((one) => !one.store).length;
  const silent = data.items.filter((one) => one.problem);
  return html`
    <p class="says">
      ${count(data.items.length, 'container')} on ${count(stores.filter(({held}) => held.length > 0).length, 'store')}.
      ${homeless > 0 ? html` <${Badge} tone="bad">${number(homeless)} without a store<//>` : null}
      ${
        silent.length > 0 &&
        html` <${Badge} tone="bad">
        ${count(silent.length, 'container')} ${silent.length === 1 ? 'does' : 'do'} not answer<//>`
      }
      ${data.assignedAt ? html` <span class="muted">Last changed <${Time} at=${data.assignedAt} />.</span>` : null}</p>
    <ul class="stores">${stores.map(({store, mark, held}) => {
      const says = held.length > 0 ? count(held.length, 'container') : data.stores.includes(store) ? 'idle' : 'gone';
      return html`<li key=${store} class=${`${mark.hue} ${query.store === store ? 'chosen' : ''}`}>
        <i class="store-number">${mark.number}</i> <${StoreLink} store=${store} /> <span class="muted">
          ${says}</span></li>`;
    })}</ul>
    <p class="muted">Each container with the number of its store:</p>
    <ul class="containers" aria-label="Containers">${data.items.map((one) => {
      const mark = one.store ? marks.get(one.store) : undefined;
      const says = `container ${one.container}: ${one.store ?? 'no store'}${one.problem ? `, ${one.problem}` : ''}`;
      const isChosen = String(one.container) === query.container || (query.store && one.store === query.store);
      const style = `${mark?.hue ?? 'none'} ${one.problem ? 'silent' : ''} ${isChosen ? 'chosen' : ''}`;
      return html`<li key=${one.container} title=${says} class=${style}>
        <b>${one.container}</b><span aria-hidden="true">${mark ? mark.number : '–'}${one.problem ? ' !' : ''}</span>
        <span class="away">${says}</span></li>`;
    })}</ul>
    ${
      silent.length > 0 &&
      html`<ul class="notes">
      ${silent.map((one) => html`<li key=${one.container}>container ${one.container}: ${one.problem}</li>`)}
        </ul>`
    }`;
}

/** @param {{search: Search, bounds: {from: number, to: number}, marks: any}} props */
function Bands({search, bounds, marks}) {
  const to = search.complete ? bounds.to : (search.searchedTo ?? bounds.to);
  const model = useMemo(() => {
    // Of a new cluster nothing was before it began.
    const begins = Math.max(bounds.from, Math.min(to, ...search.items.map((one) => one.from)));
    const found = bandRows(withGaps(search.items, begins, to), bounds.from, to, marks);
    return {
      ...found,
      to: bounds.to,
      gaps: [
        {from: bounds.from, to: begins, label: 'no store had a container'},
        {from: to, to: bounds.to, label: 'not searched yet'},
      ].filter((gap) => gap.to > gap.from),
    };
  }, [search.items, bounds, marks, to]);
  const table = () => html`<${Plain} heads=${['#Container', 'Store', 'From', 'To', '#For']}>
      ${search.items.map(
        (one, index) => html`<tr key=${index}><td class="num">${one.container}</td><td>
          ${one.store ? html`${marks.get(one.store)?.number} <${StoreLink} store=${one.store} />` : 'no store'}</td>
      <td><${Time} at=${one.from} /></td><td>${one.to ? html`<${Time} at=${one.to} />` : 'still'}</td><td class="num">
        ${duration((one.to ?? to) - one.from)}</td></tr>`,
      )}<//>`;
  return html`
    ${
      model.rows.length > 0 &&
      html`<${Rows} label="Which segment store held which container" model=${model} high=${20} table=${table}
      most=${BANDS_PX}
      hint="Numbers are those of the stores above; hatched: no store held it. Drag to look closer, 0 shows all." />`
    }
    <${SearchState} search=${search} what="holding" forward>
      <${Empty} text="The journal has no container map in this span." cli="sluice container list" /><//>`;
}

/** Which containers went from which store to which. @param {{search: Search, marks: any, span: number}} props */
function Moves({search, marks, span}) {
  const moves = useMemo(() => movesOf(search.items), [search.items]);
  const store = (/** @type {string | undefined} */ name) =>
    name ? html`${marks.get(name)?.number} <${StoreLink} store=${name} />` : html`<span class="muted">no store</span>`;
  return html`
    ${
      moves.length > 0 &&
      html`<${Plain} heads=${['Time', 'Containers', 'From', 'To', '#Without a store']}>
      ${moves.slice(0, MAX_MOVES).map(
        (one) => html`<tr key=${`${one.at} ${one.before} ${one.after}`}><td><${Time} at=${one.at} /></td>
        <td>${ranges(one.containers)}</td><td>${store(one.before)}</td><td>${store(one.after)}</td>
        <td class="num">${one.gapMs > 0 ? duration(one.gapMs) : '–'}</td></tr>`,
      )}<//>
      ${moves.length > MAX_MOVES && html`<p class="muted">And ${moves.length - MAX_MOVES} before these.</p>`}`
    }
    ${search.complete && moves.length === 0 && html`<p class="muted">None moved in ${duration(span)}.</p>`}
    ${search.complete ? null : html`<${SearchState} search=${search} what="holding" forward />`}`;
}

/** @param {{search: Search, span: number}} props */
function Departures({search, span}) {
  const ended = search.items.filter((one) => one.to !== undefined).sort((one, other) => other.to - one.to);
  return html`
    ${
      ended.length > 0
        ? html`<${Plain} heads=${['Service', 'Instance', 'From', 'To', '#For', 'Why it ended']}>
      ${ended.map(
        (one, index) => html`<tr key=${index}><td>${one.service}</td><td class="id">${one.instance}</td><td>
          <${Time} at=${one.from} /></td><td><${Time} at=${one.to} /></td>
        <td class="num">${duration(one.to - one.from)}</td><td>${one.why ?? ''}</td></tr>`,
      )}<//>`
        : search.complete
          ? html`<p class="muted">None left in ${duration(span)}.</p>`
          : null
    }
    ${search.complete ? null : html`<${SearchState} search=${search} what="membership" forward />`}`;
}
