/** How far a search through the past has come, what stopped it, and how to go on. */
import {html} from '../core/html.js';
import {count, time} from '../core/format.js';
import {Failed, Skeleton} from './panel.js';
/** @import {Search} from './types.d.ts' */

/**
 * @param {{search: Search, what: string, whats?: string, bounds?: string, forward?: boolean, children?: any}} props
 * `what` is searched for, in the singular; `bounds` says within what; `forward`: the earliest is found first; children
 * are shown while nothing is found at its end
 */
export function SearchState({search, what, whats, bounds, forward = false, children}) {
  const {items, running, complete, problem, full, searchedTo, keptFrom} = search;
  const way = forward ? 'searched to' : 'searched back to';
  const found = count(items.length, what, whats);
  if (problem) return html`<${Failed} problem=${problem} retry=${search.goOn} />`;
  if (running) {
    return html`<div class="search-state" aria-busy="true">
      ${items.length === 0 ? html`<${Skeleton} />` : null}
      <p class="muted">
        ${found} so far${searchedTo ? `, ${way} ${time(searchedTo)}` : ', searching'} <button type="button"
          class="small" onClick=${search.stop}>Stop</button></p>
    </div>`;
  }
  if (full)
    return html`<p class="search-state muted">${found}: more than are shown. Choose a shorter span or a filter.</p>`;
  if (!complete) {
    return html`<p class="search-state">${found}
      ${searchedTo ? `, ${way} ${time(searchedTo)}` : ''}. <button type="button"
        onClick=${search.goOn}>Go on searching</button></p>`;
  }
  if (keptFrom)
    return html`<p class="search-state">${found}
      ${bounds ? ` ${bounds}` : ''}. Of what lies before ${time(keptFrom)} not all is kept.</p>`;
  if (items.length === 0) return children;
  return html`<p class="search-state muted">${found}${bounds ? ` ${bounds}` : ''}. That is all.</p>`;
}
