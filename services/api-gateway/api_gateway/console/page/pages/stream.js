/**
 * One stream: how it stands, its topology, and in tabs why it is so, its transactions, readers, events, segments,
 * configuration.
 */
import {html, useEffect, useMemo, useState} from '../core/html.js';
import {under} from '../core/api.js';
import {count, duration, number, words} from '../core/format.js';
import {isStructural} from '../core/live.js';
import {href} from '../core/router.js';
import {useResource} from '../core/store.js';
import {clock, moment} from '../core/time.js';
import {deleteStream, sealStream} from '../parts/actions.js';
import {Badge, State, Tag, Unreachable} from '../parts/badges.js';
import {Cli, cli} from '../parts/cli.js';
import {ActionButton, allowedOf} from '../parts/dialog.js';
import {Age, ScopeLink, Time} from '../parts/link.js';
import {Failed, Gone, Panel, Skeleton} from '../parts/panel.js';
import {TimeSlider} from '../parts/slider.js';
import {modelOf} from '../pictures/topology/model.js';
import {ConfigurationTab} from './stream/configuration.js';
import {useRates, useStores, watermarkOf} from './stream/facts.js';
import {ReadersTab} from './stream/readers.js';
import {Segments} from './stream/segments.js';
import {TopologyPanel} from './stream/topology-panel.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {OfStream} from './types.d.ts' */
/** @import {StreamDescription} from 'api' */

const style = document.createElement('link');
style.rel = 'stylesheet';
style.href = new URL('./stream.css', import.meta.url).href;
// The page is drawn once its style is there; without it, it still works.
await new Promise((done) => {
  style.onload = style.onerror = done;
  document.head.append(style);
});

const TABS = /** @type {[string, string][]} */ ([
  ['', 'Why'],
  ['transactions', 'Transactions'],
  ['readers', 'Readers'],
  ['events', 'Events'],
  ['segments', 'Segments'],
  ['configuration', 'Configuration'],
]);

/** @param {Record<string, string>} params */
export const title = ({scope, stream}) => `${scope}/${stream}`;

/** @param {{params: Record<string, string>, query: Filters, at: string | null}} props */
export default function StreamPage({params: {scope, stream}, query, at}) {
  const name = `${scope}/${stream}`;
  const path = under`scopes/${scope}/streams/${stream}`;
  const found = useResource(path, {of: [`stream:${name}`, 'cluster'], past: true});
  const then = useMemo(() => (at === null ? null : moment(at)), [at]);
  const live = at === null;
  const show = live ? cli`stream show ${name}` : cli`stream show ${name} --at ${at}`;
  const {data, problem} = found;
  return html`<div class="page stream-page">
    <div class="title"><h1><span class="muted"><${ScopeLink} scope=${scope} />/</span>${stream}</h1>
      <${State} state=${data?.state} unreachable=${data?.unreachable?.segments} />
      ${(data?.config?.tags ?? []).map((/** @type {string} */ tag) => html`<${Tag} key=${tag} text=${tag} />`)}
      <span class="tools"><${Cli} line=${show} />
        <${ActionButton} danger allowed=${allowedOf(data, 'seal')} onClick=${() => sealStream(scope, stream)}>Seal…<//>
        <${ActionButton} danger allowed=${allowedOf(data, 'delete')}
          onClick=${() => deleteStream(scope, stream)}>Delete…<//></span></div>
    ${data ? html`<${Status} data=${data} live=${live} />` : null}
    <${TimeSlider} name=${`stream ${name}`} path=${`${path}/history`} />
    ${
      problem?.kind === 'missing'
        ? html`<${Panel}><${Gone} problem=${problem}><p>
          <a href=${href('/journal', {key: name, from: '-7d'})}>What the journal has of ${name}</a></p><//><//>`
        : !data
          ? (problem ? html`<${Failed} problem=${problem} retry=${found.reload} />` : html`<${Skeleton} lines=${6} />`)
          : html`
      <${TopologyPanel} scope=${scope} stream=${stream} description=${data} query=${query} at=${then} />
      <${Tabs} name=${[scope, stream]} query=${query} />
      <${Tab} scope=${scope} stream=${stream} data=${data} etag=${found.etag} query=${query} at=${at} then=${then} />`
    }
  </div>`;
}

/** The line that says how the stream stands. @param {{data: StreamDescription, live: boolean}} props */
function Status({data, live}) {
  const {workflow, waiting, transactions, decisions} = data;
  const watermark = watermarkOf(data);
  const scaled = decisions?.find((one) => one.kind === 'scale');
  return html`<p class="status-line">
    ${
      data.unreachable
        ? html`<${Unreachable} found=${data.unreachable} of=${data.segments.length} what="segments" />`
        : null
    }
    ${
      data.undecidedSince
        ? html`<span><${Badge} tone="warn">no automatics<//> since <${Time} at=${data.undecidedSince} />:
          no retention-spark decides</span>`
        : null
    }
    <span>epoch <b class="num">${number(data.epoch)}</b></span>
    <span><b class="num">
      ${number(data.segments.length)}</b> ${data.segments.length === 1 ? 'segment' : 'segments'}</span>
    ${
      workflow
        ? html`<span><a href=${href('/workflows', {q: `${data.scope}/${data.name}`})}>${words(workflow.kind)}</a>
          ${workflow.step ? `, ${words(workflow.step)}` : ''} for <${Age} at=${workflow.since} />
      ${
        workflow.attempts > 0
          ? html` <${Badge} tone="bad" title=${workflow.lastError}>${count(workflow.attempts, 'attempt')}<//>`
          : null
      }</span>`
        : null
    }
    ${
      waiting
        ? html`<span><${Badge} tone="warn">${words(waiting.kind)} waits<//> since <${Time} at=${waiting.at} /></span>`
        : null
    }
    ${
      transactions
        ? html`<span title=${ended(transactions)}>
      transactions: ${number(transactions.open)} open, ${number(transactions.waiting)} to
      commit${transactions.aborting ? `, ${number(transactions.aborting)} aborting` : ''}</span>`
        : null
    }
    <span title="others may read it, too">kept for ${count(data.subscribers?.length ?? 0, 'reader group')}</span>
    ${
      watermark && live
        ? html`<span
      title="in the writers' own time">watermark ${duration(Math.max(clock.value - watermark.upper, 0))} behind</span>`
        : null
    }
    ${
      scaled && !data.unreachable
        ? html`<span class="cut" title=${scaled.reason}>${words(scaled.code)}: ${scaled.reason}</span>`
        : null
    }
    <span class="muted">since <${Time} at=${data.createdAt} /></span>
  </p>`;
}

/** @param {StreamDescription['transactions']} of */
const ended = (of) =>
  `${number(of.ended)} that have ended are remembered, for ${duration(of.endedKeptMs)} each or longer`;

/** What the picture shows stays as it is. @param {{name: [string, string], query: Filters}} props */
function Tabs({name: [scope, stream], query}) {
  return html`<nav class="tabs" aria-label="About the stream">
    ${TABS.map(
      ([key, label]) => html`<a key=${key} href=${href(['streams', scope, stream], {...query, tab: key})}
      aria-current=${key === (query.tab ?? '') ? 'page' : undefined}>${label}</a>`,
    )}
    <a href=${href('/journal', {key: `${scope}/${stream}`})}>Journal ↗</a>
  </nav>`;
}

/**
 * @param {OfStream & {data: StreamDescription, etag: string, query: Filters, at: string | null, then: number | null}}
 *   props
 */
function Tab({scope, stream, data, etag, query, at, then}) {
  const live = at === null;
  if (query.tab === 'readers')
    return html`<${ReadersTab} scope=${scope} stream=${stream} description=${data} live=${live} />`;
  if (query.tab === 'configuration')
    return html`<${ConfigurationTab} scope=${scope} stream=${stream} description=${data} etag=${etag} live=${live} />`;
  if (query.tab === 'segments')
    return html`<${SegmentsTab} scope=${scope} stream=${stream} data=${data} then=${then} />`;
  if (query.tab === 'events') {
    return live
      ? html`<${Later} key="events" load=${() => import('./stream/events.js').then((found) => found.EventsTab)}
        props=${{scope, stream, query}} />`
      : html`<p class="muted">Events are read only as they are now.</p>`;
  }
  if (query.tab === 'transactions') {
    return live
      ? html`<${Later} key="transactions"
        load=${() => import('./transactions.js').then((found) => found.StreamTransactions)}
        props=${{scope, stream, transaction: query.transaction}} />`
      : html`<p class="muted">Transactions are known only as they are now.</p>`;
  }
  return html`<${Later} key="why" load=${() => import('./why.js').then((found) => found.WhyTab)}
    props=${{scope, stream, description: data, etag, query, at}} />`;
}

/** A tab that another module has, loaded when it is opened. @param {{load: () => Promise<any>, props: any}} props */
function Later({load, props}) {
  const [found, setFound] = useState(/** @type {{component?: any, problem?: string}} */ ({}));
  useEffect(() => {
    let current = true;
    load().then(
      (component) => current && setFound({component}),
      (error) => current && setFound({problem: String(error.message)}),
    );
    return () => {
      current = false;
    };
  }, []);
  if (found.problem)
    return html`<div class="state bad" role="alert"><p>
      <b>This part could not be loaded.</b> ${found.problem}</p></div>`;
  return found.component ? html`<${found.component} ...${props} />` : html`<${Skeleton} />`;
}

/** @param {OfStream & {data: StreamDescription, then: number | null}} props */
function SegmentsTab({scope, stream, data, then}) {
  const path = under`scopes/${scope}/streams/${stream}`;
  const topology = useResource(`${path}/topology`, {of: [`stream:${scope}/${stream}`], when: isStructural});
  const rates = useRates(scope, stream, then === null);
  const stores = useStores(scope, stream);
  const model = useMemo(
    () => topology.data && modelOf(topology.data, then === null ? {} : {at: then, head: data.headCut}),
    [topology.data, then],
  );
  return html`<${Panel} title="Segments that are written to" flush of=${topology}
    tools=${html`<${Cli} line=${cli`stream segments ${`${scope}/${stream}`}`} />`}>
    ${() => html`<${Segments} scope=${scope} stream=${stream} model=${model} rates=${rates} stores=${stores}
      activeOnly />`}
  <//>`;
}
