/** What the automatics decided and refused, of all streams: by kind, code and span. */
import '../parts/past-style.js';
import {html, useMemo, useState} from '../core/html.js';
import {duration} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {SPANS, SPAN_WORDS, Select} from '../parts/choice.js';
import {cli, Cli} from '../parts/cli.js';
import {CODES, KINDS, codeWords} from '../parts/decision-words.js';
import {DecisionList} from '../parts/decision-list.js';
import {Empty, Panel} from '../parts/panel.js';
import {SearchState} from '../parts/search-state.js';
import {useBounds, useSearch} from '../parts/searching.js';
/** @import {Filters} from '../core/types.d.ts' */

const NOTHING = html`Nothing was decided in this span, as far as the journal has it.
  Streams with a scaling policy by rate, or a retention policy, are decided on.`;

export const title = () => 'Decisions';

/** @param {{query: Filters, at: string | null}} props */
export default function Decisions({query, at}) {
  const span = SPANS.find(([name]) => name === query.span) ?? SPANS[2];
  const [turn, setTurn] = useState(0);
  const bounds = useBounds(at, span[1], turn);
  const search = useSearch('decisions', {kind: query.kind, code: query.code, ...bounds});
  const items = useMemo(() => [...search.items].sort((one, other) => other.at - one.at), [search.items]);
  const codes = Object.keys(CODES).map((code) => [code, codeWords(code)]);

  return html`<div class="page">
    <div class="title"><h1>Decisions</h1><span class="tools">
      <${Cli} line=${cli`topic tail journal --type DecisionRecorded --from -${span[0]} --no-follow`} /></span></div>
    <p class="muted">What scaling and retention decided of every stream, and why. A decision is recorded when it differs
      from the one before.</p>
    <form class="filters" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      <label>Kind <${Select} value=${query.kind ?? ''} options=${[['', 'both'], ...Object.entries(KINDS)]}
        onChange=${(kind) => setQuery({kind})} /></label>
      <label>Decision <${Select} value=${query.code ?? ''} options=${[['', 'any'], ...codes]}
        onChange=${(code) => setQuery({code})} /></label>
      <label>Span <${Select} value=${span[0]} options=${SPAN_WORDS} onChange=${(span) => setQuery({span})} /></label>
      ${at === null ? html`<button type="button" onClick=${() => setTurn(turn + 1)}>Search anew</button>` : null}
    </form>
    <${Panel} title="Newest first">
      <${DecisionList} items=${items} streams />
      <${SearchState} search=${search} what="decision" bounds=${`in ${duration(span[1])}`}>
        <${Empty} text=${NOTHING} cli=${cli`stream create demo/orders --retain time=1h..2d`} />
      <//>
    <//>
  </div>`;
}
