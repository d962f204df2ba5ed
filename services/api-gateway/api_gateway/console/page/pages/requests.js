/** The requests that were replied to lately, by outcome: refused, done. One can be asked for by its id. */
import '../parts/pages-style.js';
import {html, onText, useMemo, useState} from '../core/html.js';
import {duration, number, words} from '../core/format.js';
import {href, navigate, setQuery} from '../core/router.js';
import {Badge} from '../parts/badges.js';
import {Choice, Select, SPANS, SPAN_WORDS} from '../parts/choice.js';
import {cli, Cli} from '../parts/cli.js';
import {AggregateLink, RequestLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
import {Plain} from '../parts/plain.js';
import {SearchState} from '../parts/search-state.js';
import {useBounds, useSearch} from '../parts/searching.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {RepliedModel} from 'api' */

const OUTCOMES = /** @type {[string, string][]} */ ([
  ['', 'all'],
  ['refused', 'refused'],
  ['done', 'done'],
]);
/** Of what one request changed so much is named. */
const MAX_NAMED = 3;

export const title = () => 'Requests';

/** @param {{query: Filters}} props */
export default function Requests({query}) {
  const span = SPANS.find(([name]) => name === query.span) ?? SPANS[0];
  const [turn, setTurn] = useState(0);
  const bounds = useBounds(null, span[1], turn);
  const refused = query.outcome === 'refused' ? true : query.outcome === 'done' ? false : undefined;
  const search = useSearch('requests', {refused, ...bounds});
  const found = /** @type {RepliedModel[]} */ (search.items);
  const status = query.status ?? '';
  const shown = status ? found.filter((one) => one.status === status) : found;
  const option = refused === undefined ? '' : refused ? ' --refused' : ' --done';

  return html`<div class="page">
    <div class="title"><h1>Requests</h1><span class="tools">
      <${Cli} line=${`sluice request list --from -${span[0]}${option}`} /></span></div>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <${Choice} label="Outcome" value=${query.outcome ?? ''} options=${OUTCOMES}
        onChange=${(outcome) => setQuery({outcome, status: ''})} />
      <label>Span <${Select} value=${span[0]} options=${SPAN_WORDS}
        onChange=${(name) => setQuery({span: name === SPANS[0][0] ? '' : name})} /></label>
      <button type="button" onClick=${() => setTurn(turn + 1)}>Search anew</button>
      <span class="spread"></span><${Ask} />
    </form>
    <${Panel} title="Newest first" tools=${html`<${Statuses} found=${found} status=${status} />`}>
      ${shown.length > 0 && html`<${Replied} items=${shown} />`}
      <${SearchState} search=${search} what="request" bounds=${`in ${duration(span[1])}`}>
        <${Empty} text="No request was replied to in this span, as far as the journal has it."
          cli=${cli`stream create demo/orders --segments 4`} />
      <//>
    <//>
  </div>`;
}

/** How many have each outcome; a press shows only those. @param {{found: RepliedModel[], status: string}} props */
function Statuses({found, status}) {
  const counts = useMemo(() => {
    /** @type {Map<string, {times: number, refused: boolean}>} */
    const each = new Map();
    for (const one of found) {
      const before = each.get(one.status) ?? {times: 0, refused: one.refused};
      each.set(one.status, {...before, times: before.times + 1});
    }
    return [...each].sort(([, one], [, other]) => other.times - one.times);
  }, [found]);
  return counts.map(
    ([name, {times, refused}]) => html`<button key=${name} type="button" class="mark"
      aria-pressed=${String(status === name)} onClick=${() => setQuery({status: status === name ? '' : name})}>
      <${Badge} tone=${refused ? 'warn' : 'ok'}>${number(times)} × ${words(name)}<//></button>`,
  );
}

/** @param {{items: RepliedModel[]}} props */
function Replied({items}) {
  return html`<${Plain} heads=${['Time', 'Outcome', 'About', 'What happened', 'Caller', 'Request']}>
    ${items.map(
      (one) => html`<tr key=${`${one.request} ${one.at}`}>
      <td><${Time} at=${one.at} path="/journal" /></td>
      <td><${Badge} tone=${one.refused ? 'warn' : 'ok'}>${words(one.status)}<//></td>
      <td>${one.aggregates
        .slice(0, MAX_NAMED)
        .map((aggregate) => html`<${AggregateLink} key=${aggregate} aggregate=${aggregate} /> `)}
        ${one.aggregates.length > MAX_NAMED ? `and ${one.aggregates.length - MAX_NAMED} more` : ''}</td>
      <td>${one.refused ? one.reason : one.types.map(spaced).join(', ')}</td>
      <td>${one.principal ?? html`<span class="muted" title="not known">–</span>`}</td>
      <td><${RequestLink} id=${one.request} /></td></tr>`,
    )}<//>`;
}

/** "StreamSealed" as "stream sealed". @param {string} type */
const spaced = (type) => type.replaceAll(/(?<=.)([A-Z])/g, ' $1').toLowerCase();

function Ask() {
  const [typed, setTyped] = useState('');
  const show = () => typed && navigate(href(['requests', typed]));
  return html`<label>Request <input type="text" size="36" value=${typed} spellcheck=${false} autocomplete="off"
      placeholder="the id that a change answered with"
      onInput=${onText((text) => setTyped(text.trim()))}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Enter' && show()} /></label>
    <button type="button" disabled=${typed === ''} onClick=${show}>Show</button>`;
}
