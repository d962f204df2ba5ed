/** What the automatics decided and refused, of all streams: what acted first, the rest folded. By kind, code, span. */
import '../parts/pages-style.js';
import {html, useMemo, useState} from '../core/html.js';
import {duration} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {SPANS, SPAN_WORDS, Select} from '../parts/choice.js';
import {cli, Cli} from '../parts/cli.js';
import {CODES, KINDS, codeWords, tally} from '../parts/decision-words.js';
import {DecisionList} from '../parts/decision-list.js';
import {Empty, Panel} from '../parts/panel.js';
import {SearchState} from '../parts/search-state.js';
import {useBounds, useSearch} from '../parts/searching.js';
/** @import {Filters, Query} from '../core/types.d.ts' */

const NOTHING = html`Nothing was changed by a policy in this span, as far as the journal has it.
  Streams with a scaling policy by rate, or a retention policy, are decided on.`;

export const title = () => 'Decisions';

/** @param {{query: Filters, at: string | null}} props */
export default function Decisions({query, at}) {
  const span = SPANS.find(([name]) => name === query.span) ?? SPANS[2];
  const [turn, setTurn] = useState(0);
  const bounds = useBounds(at, span[1], turn);
  const codes = Object.keys(CODES).map((code) => [code, codeWords(code)]);
  const wanted = {kind: query.kind, code: query.code, ...bounds};
  // Of one case all act, or none does.
  const isFolded = !query.code;

  return html`<div class="page">
    <div class="title"><h1>Decisions</h1><span class="tools">
      <${Cli} line=${cli`decision list --from -${span[0]} --acts`} /></span></div>
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
    <${Panel} title=${isFolded ? 'What was changed, newest first' : 'Newest first'}>
      <${Found} wanted=${isFolded ? {...wanted, acts: true} : wanted} spanMs=${span[1]} />
    <//>
    ${isFolded && html`<${Resting} key=${span[0]} wanted=${{...wanted, acts: false}} spanMs=${span[1]} />`}
  </div>`;
}

/** @param {{wanted: Query, spanMs: number}} props */
function Found({wanted, spanMs}) {
  const search = useSearch('decisions', wanted);
  const items = useMemo(() => [...search.items].sort((one, other) => other.at - one.at), [search.items]);
  return html`
    ${wanted.acts === true && items.length > 0 ? html`<p class="says">${tally(items)}</p>` : null}
    <${DecisionList} items=${items} streams />
    <${SearchState} search=${search} what="decision" bounds=${`in ${duration(spanMs)}`}>
      <${Empty} text=${NOTHING} cli=${cli`stream create demo/orders --retain time=1h..2d`} />
    <//>`;
}

/** What changed nothing; searched for once it is unfolded. @param {{wanted: Query, spanMs: number}} props */
function Resting({wanted, spanMs}) {
  const [isOpen, setOpen] = useState(false);
  return html`<section class="panel"><details class="fold" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>What was decided and changed nothing</summary>
    ${isOpen && html`<div class="content"><${Found} wanted=${wanted} spanMs=${spanMs} /></div>`}
  </details></section>`;
}
