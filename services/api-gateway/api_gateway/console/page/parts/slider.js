/**
 * The time of a page: now, or a moment chosen on a slider whose ticks are what happened to the thing that is shown.
 *
 * It is folded while the page shows now. The history is fetched once per span; dragging says what had happened by
 * then and fetches nothing. The moment is taken when the slider is let go.
 */
import './pages-style.js';
import {html, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {duration, exact, time} from '../core/format.js';
import {at, moment, now, setAt} from '../core/time.js';
import {tickRows, ticksOf} from '../pictures/ticks.js';
import {say} from './announce.js';
import {SearchState} from './search-state.js';
import {useSearch} from './searching.js';
import {Rows} from './rows.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Item} from './types.d.ts' */

const HOUR_MS = 3_600_000;
const SPANS = [HOUR_MS, 6 * HOUR_MS, 24 * HOUR_MS, 168 * HOUR_MS];
const STEPS = 1000;
/** Keys move the slider step by step: the moment is taken once they rest. */
const RESTS_MS = 300;

/**
 * @param {{name: string, path?: string, query?: Record<string, string>}} props `name` of what is shown, for the reader;
 *   `path` and `query` are those of E6: where its history is
 */
export function TimeSlider({name, path = 'journal', query = {}}) {
  const [open, setOpen] = useState(at.value !== null);
  useEffect(() => {
    if (at.value !== null) setOpen(true);
  }, [at.value]);
  return html`<details class=${`time-slider ${at.value === null ? '' : 'past'}`} open=${open}
    onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>${
      at.value === null
        ? 'Time: now'
        : html`Time: <b>${time(moment(at.value))}</b>, ${duration(now() - moment(at.value))} ago`
    }</summary>
    ${open ? html`<${Choice} name=${name} path=${path} query=${query} />` : null}
  </details>`;
}

/** @param {{name: string, path: string, query: Filters}} props */
function Choice({name, path, query}) {
  const shown = at.value === null ? null : moment(at.value);
  const [span, setSpan] = useState(
    () => SPANS.find((one) => shown === null || now() - shown < one) ?? SPANS[SPANS.length - 1],
  );
  const [end] = useState(now);
  const [dragged, setDragged] = useState(/** @type {number | null} */ (null));
  const from = Math.floor(end - span),
    to = Math.ceil(end);
  const search = useSearch(path, {...query, from, to});
  const ticks = useMemo(() => ticksOf(search.items), [search.items]);
  const chosen = dragged ?? shown ?? to;
  const model = useMemo(
    () => ({...tickRows(ticks, from, to), lines: chosen < to ? [{at: chosen, label: ''}] : []}),
    [ticks, from, to, chosen],
  );
  const before = ticks.findLast((tick) => tick.at <= chosen);
  const value = Math.min(Math.max(Math.round(((chosen - from) / span) * STEPS), 0), STEPS);
  const words = chosen >= to ? 'now' : `${time(chosen)}, ${duration(end - chosen)} ago`;
  const rests = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  useEffect(() => () => clearTimeout(rests.current), []);
  const take = (/** @type {number} */ ms) => {
    clearTimeout(rests.current);
    setDragged(null);
    setAt(ms >= to ? null : exact(Math.round(ms)));
    say(ms >= to ? 'now' : `as of ${time(ms)}`);
  };
  return html`<div class="time-choice-of">
    <span class="choice" role="group" aria-label="Span">
      ${SPANS.map(
        (one) => html`<button key=${one} type="button" class="small" aria-pressed=${String(one === span)}
        onClick=${() => setSpan(one)}>${duration(one)}</button>`,
      )}</span>
    <${Rows} label=${`What happened to ${name}`} model=${model} high=${22}
      onOpen=${(/** @type {Item} */ tick) => take(tick.at + 1)}
      hint="Each tick is a record; press one to see how it was right after it." />
    <div class="track">
      <input type="range" min="0" max=${STEPS} value=${value} aria-label=${`Moment of ${name}`} aria-valuetext=${words}
        onInput=${(event) => setDragged(from + (Number(event.currentTarget.value) / STEPS) * span)}
        onChange=${(event) => {
          const ms = from + (Number(event.currentTarget.value) / STEPS) * span;
          clearTimeout(rests.current);
          rests.current = setTimeout(() => take(ms), RESTS_MS);
        }} />
    </div>
    <p><b>${words}</b>
      ${
        before
          ? html`,
        after ${before.says} <span class="muted">at ${time(before.at)}</span>`
          : search.complete
            ? html`, <span class="muted">before anything that happened in this span</span>`
            : null
      }
      ${
        at.value === null
          ? null
          : html` <button type="button" class="small" onClick=${() => take(to)}>Back to now</button>`
      }</p>
    ${search.complete ? null : html`<${SearchState} search=${search} what="record" />`}
  </div>`;
}
