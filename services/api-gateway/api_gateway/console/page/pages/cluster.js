/** Who holds what: members with their partitions, containers by segment store, and who held each container when. */
import '../parts/past-style.js';
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
import {joinHoldings, joinMemberships, withGaps} from './holdings.js';
import {PartitionsByTopic, partitionsOf} from './partitions.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Search} from '../parts/types.d.ts' */
/** @import {StoreMark} from '../pictures/types.d.ts' */
/** @import {ContainerMap, MemberItem, PartitionModel} from 'api' */

const OFTEN_MS = 5000;
/** A heartbeat is due each minute and may take half of one more; from this age on it is missed. */
const MISSED_MS = 90_000;
const BANDS_PX = 460;

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
    <${Panel} title="Containers" of=${containers} emptyText="There are no containers.">
      ${(data) => html`<${Containers} data=${data} marks=${marks} query=${query} />`}<//>
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
  return html`<table class="plain"><thead><tr><th scope="col">Service</th><th scope="col">Instance</th>
    <th scope="col">Ready</th><th scope="col">Last heartbeat</th><th scope="col">Up for</th>
    <th scope="col">Endpoints</th>${partitions ? html`<th scope="col">Partitions it owns</th>` : null}</tr></thead>
    <tbody>${items.map(
      (one) => html`<tr key=${`${one.service}/${one.instance}`}
        class=${chosen === `${one.service}/${one.instance}` ? 'chosen' : ''}>
      <td>${one.service}</td><td class="id">${one.instance}</td>
      <td><${Ready} member=${one} isPast=${isPast} /></td>
      <td>${
        one.lastSeen === undefined
          ? html`<span class="muted">${isPast ? 'not recorded' : 'none received yet'}</span>`
          : html`<${Age} at=${one.lastSeen} /> ago`
      }</td>
      <td>${isPast ? html`since <${Time} at=${one.since} />` : html`<${Age} at=${one.since} />`}</td>
      <td class="id">${Object.entries(one.endpoints)
        .map(([protocol, address]) => `${protocol} ${address}`)
        .join(', ')}</td>
      ${partitions ? html`<td>${partitionsOf(partitions, one.instance)}</td>` : null}</tr>`,
    )}</tbody></table>
    ${
      items.some((one) => one.service === 'retention-spark')
        ? null
        : html`<p class="muted">retention-spark does not
      announce itself: it is never listed here.</p>`
    }`;
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
    const found = bandRows(withGaps(search.items, bounds.from, to), bounds.from, to, marks);
    return {
      ...found,
      to: bounds.to,
      gaps: to < bounds.to ? [{from: to, to: bounds.to, label: 'not searched yet'}] : [],
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
