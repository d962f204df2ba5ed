/**
 * The picture of a stream with its controls, legend, card and table. All that a reader chooses stands in the address.
 */
import {html, onText, useEffect, useMemo, useRef, useState} from '../../core/html.js';
import {under} from '../../core/api.js';
import {count, duration, number} from '../../core/format.js';
import {isStructural} from '../../core/live.js';
import {place, setQuery} from '../../core/router.js';
import {useResource} from '../../core/store.js';
import {ActionButton, allowedOf} from '../../parts/dialog.js';
import {Panel} from '../../parts/panel.js';
import {Choice, Select} from '../../parts/choice.js';
import {DARK, LIGHT, MODES, coloring, newestIds, sizeOf} from '../../pictures/topology/colors.js';
import {cutIn, cutProblem} from '../../pictures/topology/cuts.js';
import {whereGoes} from '../../pictures/topology/hit.js';
import {modelOf, nameOf, newestId} from '../../pictures/topology/model.js';
import {OVERLAYS} from '../../pictures/topology/overlays.js';
import {keyText} from '../../pictures/topology/words.js';
import {scaleStream, truncateStream} from './actions.js';
import {Card} from './card.js';
import {extrasOf, lengthsOf, useJournal, useRates, useStores, watermarkOf} from './facts.js';
import {Legend, Overlays} from './legend.js';
import {useHistory} from './rate-history.js';
import {Segments} from './segments.js';
import {Stage} from './stage.js';
/** @import {Filters} from '../../core/types.d.ts' */
/** @import {History, Mode, Model, Range} from '../../pictures/types.d.ts' */
/** @import {OfStream} from '../types.d.ts' */
/** @import {StreamDescription, TopologyModel} from 'api' */

const ADDRESS_MS = 200;
const OPEN_LIMIT = 1000;
const FROM_JOURNAL = ['config', 'truncations'];

/**
 * @param {object} props @param {string} props.scope @param {string} props.stream
 * @param {StreamDescription} props.description what `GET …/streams/N` has, also of a past moment
 * @param {Record<string, string>} props.query
 * @param {number | null} props.at the moment that is shown, epoch ms; null for now
 */
export function TopologyPanel({scope, stream, description, query, at}) {
  const base = under`scopes/${scope}/streams/${stream}`;
  const of = [`stream:${scope}/${stream}`];
  const topology = useResource(`${base}/topology`, {of, when: isStructural});
  // What is sampled as a whole may be exact in part.
  const part = topology.data?.merged ? partOf(query) : null;
  const detail = useResource(part ? `${base}/topology` : null, {of, when: isStructural, query: part ?? {}, keep: true});
  return html`<${Panel} title="Topology" class="picture-panel" of=${topology} lines=${9}
    tools=${html`<${Choices} query=${query} />`}
    empty=${(data) => data.segments.id.length === 0} emptyText="The stream has no segment yet: it is being created.">
    ${(data) => html`<${Shown} scope=${scope} stream=${stream} answer=${(part && detail.data) || data}
      since=${data.epochs.at[0]} description=${description} query=${query} at=${at} />`}
  <//>`;
}

/**
 * The time that the view shows, with as much on either side, on a raster, so that moving a little asks nothing.
 * @param {Filters} query
 */
function partOf({x, view}) {
  const found = /^(\d+(?:\.\d+)?)\.\.(\d*(?:\.\d+)?)/.exec(x === 'epoch' ? '' : (view ?? ''));
  if (!found) return null;
  const [from, to] = [Number(found[1]), Number(found[2] || Date.now())];
  const raster = 2 ** Math.ceil(Math.log2(Math.max(to - from, 1000)));
  return {
    from: (Math.floor(from / raster) - 1) * raster,
    ...(found[2] ? {to: (Math.ceil(to / raster) + 1) * raster} : {}),
  };
}

/** Time or epochs, picture or table. @param {{query: Filters}} props */
function Choices({query}) {
  const axis = query.x === 'epoch' ? 'epoch' : '';
  const as = query.as === 'table' ? 'table' : '';
  return html`<${Choice} label="Across" value=${axis} options=${[['', 'Time'], ['epoch', 'Epochs']]}
      onChange=${(x) => setQuery({x, view: ''})} />
    <${Choice} label="Shown as" value=${as} options=${[['', 'Picture'], ['table', 'Table']]}
      onChange=${(as) => setQuery({as})} />`;
}

/** @param {string | undefined} shown as the address has it */
function overlaysOf(shown) {
  if (shown !== undefined) return new Set(shown.split(',').filter(Boolean));
  return new Set(OVERLAYS.filter((one) => one.on).map((one) => one.name));
}

/**
 * @param {OfStream & {answer: TopologyModel, since: number, description: StreamDescription, query: Filters, at: number
 *   | null}} props
 */
function Shown({scope, stream, answer, since, description, query, at}) {
  const live = at === null;
  const folds = query.fold !== 'no';
  const then = at === null ? {} : {at, head: description.headCut, subscribers: description.subscribers};
  const model = useMemo(
    () => modelOf(answer, {fold: folds, since, ...then}),
    [answer, since, at, folds, at === null ? null : description],
  );
  // Of events only the rate of now is known, of bytes the whole past.
  const standard = model.target?.type === 'kbytes' ? 'rate' : 'flow';
  const mode = modesOf(model).find((one) => one.mode === query.color)?.mode ?? standard;
  const on = useMemo(() => overlaysOf(query.show), [query.show]);
  const rates = useRates(scope, stream, live);
  const history = useHistory(scope, stream, model.since);
  const stores = useStores(scope, stream);
  const hasOpen = live && on.has('held') && description?.transactions?.open > 0;
  const open = useResource(hasOpen ? `${under`scopes/${scope}/streams/${stream}`}/transactions` : null, {
    query: {state: 'open', limit: OPEN_LIMIT},
    of: [`stream:${scope}/${stream}`],
  });
  const journal = useJournal(scope, stream, live && FROM_JOURNAL.some((name) => on.has(/** @type {any} */ (name))));
  const lengths = useMemo(() => lengthsOf(model, rates, history), [model, rates, history]);
  const extras = useMemo(
    () =>
      extrasOf({
        description,
        open: open.data?.items ?? [],
        journal: journal.items,
        isWhole: journal.state === '',
        cut: query.cut ?? '',
        lengths,
        history,
      }),
    [description, open.data, journal.items, journal.state, query.cut, lengths, history],
  );
  const facts = useMemo(
    () => ({rates, history, storeOf: stores.storeOf, stores: stores.stores}),
    [rates, history, stores],
  );
  const ids = useMemo(() => newestIds(model), [model]);
  const about = (/** @type {number} */ rect) => ({
    size: sizeOf(model, rect, rates, ids),
    rate: model.end[rect] === Infinity ? rates.get(ids[rect]) : undefined,
    container: stores.containerOf(model.number[rect]),
    store: rates.get(ids[rect])?.store ?? stores.storeOf(model.number[rect]),
  });
  const pinned = query.segment ? (model.known.rect[model.index.get(query.segment) ?? -1] ?? -1) : -1;
  const picture = useRef(/** @type {import('../../pictures/topology.js').Topology | null} */ (null));
  const [refused, setRefused] = useState('');
  const addresses = useAddress(query);
  const allowed = allowedOf(description, 'scale');
  const pin = (/** @type {number} */ rect) => setQuery({segment: rect < 0 ? '' : ids[rect]});
  const colors = useMemo(
    () => coloring(model, mode, facts, matchMedia('(prefers-color-scheme: dark)').matches ? DARK : LIGHT),
    [model, mode, facts],
  );

  function divide(/** @type {number} */ below, /** @type {number} */ above, /** @type {number} */ key) {
    const [low, high] = [model.low[below], model.high[above]];
    /** @type {Range[]} */
    const come =
      key <= low || key >= high
        ? [[low, high]]
        : [
            [low, key],
            [key, high],
          ];
    setRefused(
      scaleStream(scope, stream, {
        ids: [ids[below], ids[above]],
        gone: [
          [low, model.high[below]],
          [model.low[above], high],
        ],
        come,
      }) ?? '',
    );
  }

  if (query.as === 'table')
    return html`<${Segments} scope=${scope} stream=${stream} model=${model} rates=${rates} stores=${stores} />`;
  const extent = `${count(model.count, 'segment')} in ${count(model.epochs.count, 'epoch')}`;
  const label = `Segments of ${scope}/${stream} over ${query.x === 'epoch' ? 'epochs' : 'time'} and keys: ${extent}`;
  return html`
    <${Controls} model=${model} mode=${mode} on=${on} query=${query} journal=${journal} picture=${picture} live=${live}
      description=${description} history=${history} scope=${scope} stream=${stream} />
    ${refused ? html`<p class="bad" role="alert">${refused}</p>` : null}
    <div class=${`picture-body ${pinned >= 0 ? 'with-card' : ''}`}>
      <div class="picture-main">
        <${Stage} model=${model} mode=${mode} facts=${facts} extras=${extras} overlays=${on} about=${about}
          live=${live && !model.sealed} canDivide=${live && allowed?.allowed !== false}
          pinned=${pinned} sought=${query.key ?? ''} address=${addresses.address} onAddress=${addresses.send}
          onPin=${pin} onDivide=${divide} onReady=${(one) => (picture.current = one)} label=${label} />
      </div>
      ${
        pinned >= 0 &&
        html`<${Card} scope=${scope} stream=${stream} model=${model} rect=${pinned} about=${about(pinned)}
            allowed=${allowed} onPin=${pin}
        onZoom=${() => picture.current?.zoomTo(pinned)} onDivide=${(divider) => picture.current?.divide(divider)} />`
      }
    </div>
    <${Legend} coloring=${colors} model=${model} note=${rateNote(mode, model, history)} />
    <${Notes} model=${model} query=${query} rates=${rates} journal=${journal} />`;
}

/** A rate against a target is only where there is one. @param {Model} model */
const modesOf = ({target}) => MODES.filter(({mode}) => mode !== 'rate' || target);

/** What past rates rest on. @param {Mode} mode @param {Model} model @param {History | null} history */
function rateNote(mode, model, history) {
  if (mode === 'rate' && model.target?.type === 'events')
    return 'of events only the rate of now is known; bytes have a past';
  if (mode !== 'rate' && mode !== 'flow') return '';
  return history?.segments.size ? 'by the minute; between samples the mean' : "the mean of each segment's life";
}

/**
 * The view in the address, written when it rests; what this page wrote itself is not followed.
 * @param {Filters} query
 */
function useAddress(query) {
  const timer = useRef(/** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined));
  const last = useRef(/** @type {{x?: string, view?: string}} */ ({x: query.x, view: query.view}));
  useEffect(() => () => clearTimeout(timer.current), []);
  function send(/** @type {{x: string | null, view: string | null}} */ next) {
    clearTimeout(timer.current);
    last.current = {x: next.x ?? undefined, view: next.view ?? undefined};
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setQuery(next);
    }, ADDRESS_MS);
  }
  // While the view moves, what stands in the address is older than it.
  return {send, address: timer.current === undefined ? {x: query.x, view: query.view} : last.current};
}

/** @param {any} props */
function Controls({model, mode, on, query, journal, picture, live, description, history, scope, stream}) {
  const [opened, setOpened] = useState(Boolean(query.cut));
  const available = (/** @type {string} */ name) => {
    if (!live && ['held', 'gaps', 'config', 'truncations'].includes(name)) return 'only now';
    if (name === 'held' && !(description?.transactions?.open > 0)) return 'no transaction is open';
    if (name === 'subscribers' && model.subscribers.length === 0) return 'no group holds the stream';
    if (name === 'watermark' && !watermarkOf(description)) return 'there is none';
    if (name === 'gaps' && !history?.segments.size) return 'there are no samples yet';
    if (name === 'pasted' && !query.cut) return 'paste one below';
    if (FROM_JOURNAL.includes(name) && !journal.items)
      return `${OVERLAYS.find((one) => one.name === name)?.hint ?? ''}; read from the journal when switched on`;
    return '';
  };
  function toggle(/** @type {string} */ name) {
    const next = new Set(on);
    if (!next.delete(name)) next.add(name);
    setQuery({show: [...next].join(',') || ','});
  }
  return html`<div class="picture-controls">
    <label>Colour <${Select} value=${mode} options=${modesOf(model).map((one) => [one.mode, one.label])}
      onChange=${(color) => setQuery({color})} /></label>
    <button type="button" aria-expanded=${String(opened)}
      onClick=${() => setOpened(!opened)}>Overlays <span class="muted num">${on.size}</span></button>
    <${SeekKey} query=${query} model=${model} />
    ${
      model.duplicates > 0 &&
      html`<label class="check"><input type="checkbox" checked=${query.fold === 'no'}
      onChange=${() => setQuery({fold: query.fold === 'no' ? '' : 'no'})} />
        ${count(model.duplicates, 'duplicate')} of rolling commits</label>`
    }
    <span class="spread"></span>
    <span class="choice" role="group" aria-label="Zoom"><button type="button" aria-label="Closer" title="closer (+)"
      onClick=${() => picture.current?.zoom(0.6)}>+</button>
      <button type="button" aria-label="Further away" title="further away (−)"
        onClick=${() => picture.current?.zoom(1 / 0.6)}>−</button>
      <button type="button" title="everything (0)" onClick=${() => picture.current?.fit()}>All</button></span>
  </div>
  ${
    opened &&
    html`<${Overlays} on=${on} onToggle=${toggle} available=${available}
    note=${html`<${PasteCut} query=${query} model=${model} live=${live} allowed=${allowedOf(description, 'truncate')}
      scope=${scope} stream=${stream} />`} />`
  }`;
}

/** Where does a routing key go? @param {any} props */
function SeekKey({query, model}) {
  const [text, setText] = useState(query.key ?? '');
  const found = useMemo(() => (query.key ? whereGoes(model, query.key) : null), [query.key, model]);
  useEffect(() => {
    const timer = setTimeout(() => text !== (query.key ?? '') && setQuery({key: text}), ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class="seek">Where does key <input type="search" placeholder="routing key" aria-label="Routing key"
    autocomplete="off" spellcheck=${false} value=${text} onInput=${onText(setText)} /> go?</label>
    ${
      found
        ? html`<output>
          ${
            found.rect >= 0
              ? html`to <button type="button" class="small id"
            onClick=${() => setQuery({segment: newestId(model, found.rect)})}>${nameOf(model, found.rect)}</button>`
              : 'nowhere: the stream is sealed'
          }
      <span class="muted num">at ${keyText(Number(found.position.toFixed(9)))}</span></output>`
        : null
    }`;
}

/** A cut to be shown, and truncated at. @param {any} props */
function PasteCut({query, model, live, allowed, scope, stream}) {
  const [text, setText] = useState(query.cut ?? '');
  let cut = null,
    why = '';
  try {
    cut = text.trim() ? cutIn(text) : null;
    why = cut ? (cutProblem(model, cut) ?? '') : '';
  } catch (error) {
    why = /** @type {Error} */ (error).message;
  }
  return html`<div class="field paste">
    <label for="paste-cut">Cut <span class="muted">as the interfaces and the command line write it: 0=1024,
      4.#epoch.1=0</span></label>
    <div class="row"><input id="paste-cut" type="text" spellcheck=${false} autocomplete="off" value=${text}
      aria-invalid=${why ? 'true' : undefined} onInput=${(event) => {
        setText(event.currentTarget.value);
        setQuery({cut: event.currentTarget.value.trim()});
      }} />
    ${
      live
        ? html`<${ActionButton} danger
      allowed=${why || !cut ? {allowed: false, why: why || 'paste a cut first'} : allowed}
      onClick=${() => cut && truncateStream(scope, stream, cut)}>Truncate here…<//>`
        : null
    }</div>
    ${why ? html`<p class="bad" role="status">${why}</p>` : null}</div>`;
}

/** @param {any} props */
function Notes({model, query, journal}) {
  const strange = query.segment && !model.index.has(query.segment);
  return html`<div class="picture-notes muted">
    ${
      model.merged
        ? html`<p>
      <b>Sampled.</b> The stream has had more segments than can be shown: each rectangle stands for one of several. Zoom
        in for what there was exactly.</p>`
        : null
    }
    ${
      strange &&
      html`<p class="warn">The stream has no segment with the id ${query.segment}
      ${place.value.at ? ' at this moment' : ''}.</p>`
    }
    ${
      journal.state
        ? html`<p>
      ${journal.state} ${
        journal.more ? html`<button type="button" class="small" onClick=${journal.more}>Read on</button>` : null
      }</p>`
        : null
    }
    <p>${count(model.count, 'segment')} in ${count(model.epochs.count, 'epoch')}
      ${` over ${duration(model.now - model.since)}`}
        ${model.folded && `, ${number(model.duplicates)} duplicates folded`}.
      Drag to move, Ctrl and wheel to zoom, drag on the key axis to choose
        keys${query.as ? '' : ', drag a dividing line at now to scale'}.</p>
  </div>`;
}
