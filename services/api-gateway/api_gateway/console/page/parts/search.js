/**
 * Search: everything that has an address, and actions. What the text alone names (pages, segments, letters, requests,
 * written actions) comes first; names come from the gateway.
 */
import {html, onText, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {api, Problem} from '../core/api.js';
import {segmentId} from '../core/format.js';
import {href, navigate, place, routes} from '../core/router.js';
import {WRITTEN} from './actions.js';
import {whyNot} from './dialog.js';
/** @import {Hit} from './types.d.ts' */

const WAIT_MS = 120;
const MAX_HITS = 50;

/** @param {{close: () => void}} props */
export function Search({close}) {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  const [found, setFound] = useState(/** @type {{q: string, items: Hit[], problem?: string}} */ ({q: '', items: []}));
  const q = text.trim();
  useEffect(() => box.current?.showModal(), []);
  useEffect(() => {
    if (q.length === 0) return undefined;
    const call = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const {items} = await api.get('search', {query: {q}, signal: call.signal});
        setFound({q, items});
      } catch (error) {
        if (call.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setFound({q, items: [], problem: error.detail});
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      call.abort();
    };
  }, [q]);
  const hits = useMemo(() => merged(q === '' ? [] : found.items, named(q)), [q, found]);
  useEffect(() => setActive(0), [q]);
  useEffect(() => document.getElementById(`hit-${active}`)?.scrollIntoView({block: 'nearest'}), [active]);

  /** @param {Hit | undefined} hit */
  function follow(hit) {
    if (!hit || hit.why) return;
    box.current?.close();
    if (hit.run) hit.run();
    else if (hit.address) navigate(withMoment(hit.address));
  }

  /** @param {KeyboardEvent} event */
  function onKeyDown(event) {
    if (event.key === 'ArrowDown') setActive(Math.min(hits.length - 1, active + 1));
    else if (event.key === 'ArrowUp') setActive(Math.max(0, active - 1));
    // Until its answer is there, only what the text alone names is meant.
    else if (event.key === 'Enter') follow((found.q === q ? hits : merged([], named(q)))[active]);
    else return;
    event.preventDefault();
  }

  return html`<dialog ref=${box} class="search-box" aria-label="Search" onClose=${close}
    onClick=${(/** @type {MouseEvent} */ event) => event.target === box.current && box.current?.close()}>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="hits"
      aria-activedescendant=${hits.length > 0 ? `hit-${active}` : undefined} aria-label="Search" autocomplete="off"
      spellcheck=${false}
      placeholder="stream, request, 4.#epoch.1, 3/118, seal demo/orders …" value=${text} onInput=${onText(setText)}
      onKeyDown=${onKeyDown} />
    <div role="listbox" id="hits" aria-label="Hits">${hits.map(
      (hit, index) => html`<div role="option" id=${`hit-${index}`} key=${`${hit.type} ${hit.name} ${hit.address ?? ''}`}
        aria-selected=${String(index === active)} aria-disabled=${hit.why ? 'true' : undefined} title=${hit.why}
        onMouseMove=${() => index !== active && setActive(index)} onClick=${() => follow(hit)}>
        <span class="kind">${hit.type}</span><span class="cut">${hit.name}</span><span class="detail cut">
          ${hit.why ?? hit.detail}</span></div>`,
    )}
      ${
        q !== '' &&
        hits.length === 0 &&
        found.q === q &&
        html`<p class="state empty">${found.problem ?? 'Nothing has this in its name.'}</p>`
      }</div>
    <footer class="row"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span><span><kbd>Enter</kbd> open</span><span>
      <kbd>Esc</kbd> close</span></footer>
  </dialog>`;
}

/** The moment that is shown goes along. @param {string} address */
function withMoment(address) {
  const {at} = place.peek();
  return at && !address.includes('at=')
    ? `${address}${address.includes('?') ? '&' : '?'}at=${encodeURIComponent(at)}`
    : address;
}

/** @param {Hit[]} first @param {Hit[]} second @returns {Hit[]} */
function merged(first, second) {
  const seen = new Set(),
    hits = [];
  for (const hit of [...second, ...first]) {
    const key = hit.address ?? `${hit.type} ${hit.name}`;
    if (!seen.has(key)) hits.push(hit);
    seen.add(key);
  }
  return hits.slice(0, MAX_HITS);
}

/** What the text alone names. @param {string} q @returns {Hit[]} */
function named(q) {
  /** @type {Hit[]} */
  const hits = [];
  const lower = q.toLowerCase();
  const {params} = place.peek();
  const letter = /^(\d+)\/(\d+)$/.exec(q);
  if (letter) hits.push({type: 'dead letter', name: q, address: href('/dead-letters', {letter: q})});
  const segment = segmentId(q);
  if (segment !== null && params.stream && q.includes('#')) {
    hits.push({
      type: 'segment',
      name: q,
      detail: `of ${params.scope}/${params.stream}`,
      address: href(['streams', params.scope, params.stream], {segment: String(segment)}),
    });
  }
  for (const action of WRITTEN) {
    const names = action.form.exec(lower === q ? q : `${lower.split(' ')[0]} ${q.split(' ').slice(1).join(' ')}`);
    if (names)
      hits.push({type: 'action', name: q, run: () => action.run(...names.slice(1)), why: whyNot() || undefined});
    else if (lower && action.verb.startsWith(lower))
      hits.push({type: 'action', name: action.what, why: 'write the name'});
  }
  if (/^[\w.-]{16,}$/.test(q) && /\d/.test(q))
    hits.push({type: 'request', name: q, detail: 'trace', address: href(['requests', q])});
  const pages = routes.value.filter((one) => one.label && (!lower || one.label.toLowerCase().includes(lower)));
  hits.push(
    ...pages.map((one) => ({
      type: 'page',
      name: one.label ?? '',
      detail: one.key ? `g ${one.key}` : '',
      address: href(one.path),
    })),
  );
  return hits;
}
