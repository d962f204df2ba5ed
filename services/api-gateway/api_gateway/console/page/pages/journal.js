/**
 * What happened: the records of the journal, decoded, within a span, by key and type; those without effect are marked.
 */
import '../parts/pages-style.js';
import {html, onText, useEffect, useMemo, useState} from '../core/html.js';
import {toJson} from '../core/api.js';
import {exact, time} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {moment, now} from '../core/time.js';
import {Badge} from '../parts/badges.js';
import {cli, Cli, Copy} from '../parts/cli.js';
import {AggregateLink, RequestLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
import {SearchState} from '../parts/search-state.js';
import {useSearch} from '../parts/searching.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {EventModel} from 'api' */

const SPAN = '-10m';

export const title = () => 'Journal';

/** @param {{query: Filters, at: string | null}} props */
export default function Journal({query, at}) {
  const {key = '', types = '', from = SPAN, to = ''} = query;
  const [draft, setDraft] = useState({key, types, from, to});
  // Back, forward and links change the address while the form is shown.
  useEffect(() => setDraft({key, types, from, to}), [key, types, from, to]);
  const set = (/** @type {string} */ name) => onText((text) => setDraft({...draft, [name]: text.trim()}));
  const wrong = (/** @type {string} */ text) => text !== '' && Number.isNaN(moment(text));
  const isWrong = wrong(draft.from) || wrong(draft.to);
  return html`<div class="page">
    <div class="title"><h1>Journal</h1></div>
    <p class="muted">Every decision is a record here. A void record came too late to count, and says why.</p>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (!isWrong) setQuery({...draft, from: draft.from === SPAN ? '' : draft.from});
    }}>
      <label>Key <input type="text" size="24" placeholder="demo/orders" value=${draft.key}
        onInput=${set('key')} /></label>
      <label>Types <input type="text" size="28" placeholder="StreamScaled,DecisionRecorded" value=${draft.types}
        onInput=${set('types')} /></label>
      <label>From <input type="text" size="18" value=${draft.from}
        aria-invalid=${wrong(draft.from) ? 'true' : undefined} onInput=${set('from')} /></label>
      <label>To <input type="text" size="18" placeholder=${at === null ? 'now' : 'the moment'} value=${draft.to}
        aria-invalid=${wrong(draft.to) ? 'true' : undefined} onInput=${set('to')} /></label>
      <button type="submit" class="primary" disabled=${isWrong}>Search</button>
      ${isWrong ? html`<span class="muted">A moment is -10m, 2026-01-31T12:00:00Z or epoch ms.</span>` : null}
    </form>
    <${Records} path="journal" query=${query} at=${at} />
  </div>`;
}

/**
 * The records within the span that the filters name; the tab of a stream's page, too.
 * @param {{path: string, query: Filters, at: string | null}} props `path` of E6
 */
export function Records({path, query, at}) {
  const {key, types, from = SPAN, to = ''} = query;
  const [turn, setTurn] = useState(0);
  const bounds = useMemo(() => {
    const end = to !== '' ? moment(to) : at === null ? now() : moment(at);
    // "-10m" is that long before the end of the span, which may be a past moment.
    const begins = from.startsWith('-') ? end - (now() - moment(from)) : moment(from);
    return {from: Math.floor(begins), to: Math.ceil(end)};
  }, [from, to, at, turn]);
  const search = useSearch(path, {key, types, ...bounds});
  const line = key
    ? cli`topic tail journal --from ${from} --stream ${key} --no-follow`
    : cli`topic tail journal --from ${from} --no-follow`;
  return html`
    <${Panel} title="Records, newest first" tools=${
      at === null &&
      to === '' &&
      html`<button type="button" class="small" onClick=${() => setTurn(turn + 1)}>Search anew</button>`
    }>
      <ol class="records">
        ${search.items.map(
          (one, index) => html`<${Record} key=${`${one.partition}/${one.offset}/${index}`} record=${one} />`,
        )}</ol>
      <${SearchState} search=${search} what="record" bounds=${`from ${time(bounds.from)} to ${time(bounds.to)}`}>
        <${Empty} text="No record in this span that the filters let through." cli=${line} />
      <//>
    <//>
    <p><${Cli} line=${line} /></p>`;
}

const IMPLIED = new Set(['type', 'scope', 'stream', 'group', 'table', 'aggregate', 'transaction', 'at']);
const BRIEF = 160;

/** What is in a record beside its type and name, on one line. @param {any} value */
function brief(value) {
  if (value === null || typeof value !== 'object') return String(value ?? '');
  const facts = Object.entries(value)
    .filter(([name, one]) => !IMPLIED.has(name) && one !== '' && one !== null)
    .map(([name, one]) => {
      if (typeof one !== 'object') return `${name}=${one}`;
      const size = Array.isArray(one) ? one.length : Object.keys(one).length;
      return size > 3 ? `${name}=(${size})` : `${name}=${toJson(one)}`;
    });
  const text = facts.join(' ');
  return text.length > BRIEF ? `${text.slice(0, BRIEF)}…` : text;
}

/** Why a record was void. @type {Record<string, string>} */
const VOID = {stale: 'decided on an older state', duplicate: 'decided before'};

/** @param {{record: EventModel}} props */
function Record({record}) {
  const [open, setOpen] = useState(false);
  const {partition, offset, at, key, aggregate, type, request, principal} = record;
  const why = VOID[record.why ?? ''] ?? record.why;
  return html`<li class=${record.void ? 'void' : ''}>
    <details onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <time class="num" datetime=${exact(at)} title=${exact(at)}>${time(at)}
          <small>.${String(at % 1000).padStart(3, '0')}</small></time>
        <b class="type" title=${type}>${type}</b>
        <span class="about" title=${aggregate ?? key}>${aggregate ?? key}</span>
        <span class="brief muted">${record.void ? html`<${Badge} tone="warn">void<//> ${why} ` : null}
          ${brief(record.value)}</span>
      </summary>
      ${open ? html`<${Detail} record=${record} />` : null}
    </details>
    <span class="who">${request ? html`<${RequestLink} id=${request} />` : null}
      ${principal ? html` <span class="muted">${principal}</span>` : null}</span>
    <span class="where id muted" title="partition and offset of the journal">${partition}@${offset}</span>
  </li>`;
}

/** @param {{record: EventModel}} props */
function Detail({record}) {
  const text = toJson(record.value, 2);
  return html`<div class="detail"><p>
    ${record.aggregate?.includes(':') ? html`<${AggregateLink} aggregate=${record.aggregate} />, ` : null}
      <${Time} at=${record.at} /> <${Copy} text=${text} /></p><pre tabindex="0" aria-label="Value of the record">
        ${text}</pre></div>`;
}
