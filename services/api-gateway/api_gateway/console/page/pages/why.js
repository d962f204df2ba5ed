/**
 * Why a stream is as it is: what was decided on its scaling and retention, and beside it what another policy would do.
 */
import '../parts/pages-style.js';
import {html, useMemo} from '../core/html.js';
import {under} from '../core/api.js';
import {setQuery} from '../core/router.js';
import {cli, Cli} from '../parts/cli.js';
import {DecisionList} from '../parts/decision-list.js';
import {KINDS} from '../parts/decision-words.js';
import {Empty, Panel} from '../parts/panel.js';
import {SearchState} from '../parts/search-state.js';
import {useBounds, useSearch} from '../parts/searching.js';
import {Select} from '../parts/choice.js';
import {Reported} from './stream/reported.js';
import {WhatIf} from './what-if.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {OfStream} from './types.d.ts' */
/** @import {StreamDescription} from 'api' */

const NOTHING = html`Nothing was decided on this stream in 7 d.
  A policy that scales by rate, or a retention policy, makes decisions.`;
const WEEK_MS = 7 * 86_400_000;

/**
 * The tab of a stream's page.
 * @param {OfStream & {description: StreamDescription, etag?: string, query: Filters, at: string | null}} props
 *   `description`: what `GET /scopes/S/streams/N` has; `etag` with it
 */
export function WhyTab({scope, stream, description, etag, query, at}) {
  const bounds = useBounds(at, WEEK_MS);
  const search = useSearch(under`scopes/${scope}/streams/${stream}/decisions`, bounds);
  const kind = query.decided ?? '';
  const items = useMemo(
    () => search.items.filter((one) => kind === '' || one.kind === kind).sort((one, other) => other.at - one.at),
    [search.items, kind],
  );
  const tools = html`<${Select} label="Kind of decision" value=${kind}
    options=${[['', 'all'], ...Object.entries(KINDS)]} onChange=${(decided) => setQuery({decided})} />`;

  return html`<div class="why-tab">
    <${Panel} title="Decided" tools=${tools}>
      <${DecisionList} items=${items} scrolls />
      <${SearchState} search=${search} what="decision" bounds="in 7 d">
        <${Empty} text=${NOTHING} cli=${cli`decision list ${scope}/${stream}`} />
      <//>
      <p><${Cli} line=${cli`decision list ${scope}/${stream}`} /></p>
    <//>
    ${
      at === null
        ? html`<${Reported} scope=${scope} stream=${stream} />
          <${WhatIf} scope=${scope} stream=${stream} description=${description} etag=${etag} query=${query} />`
        : html`<${Panel} title="What if">
          <${Empty} text="Another policy is replayed up to the present: go back to now for that." /><//>`
    }
  </div>`;
}
