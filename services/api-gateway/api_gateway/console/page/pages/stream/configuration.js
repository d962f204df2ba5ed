/**
 * The configuration of a stream, to be read and edited. An update replaces all of it, on the condition that it is still
 * the one that was edited; where it is not, both are compared. Limits keep all their digits: 2^63-1 stays what it is.
 */
import {html, onText, useEffect, useId, useState} from '../../core/html.js';
import {api, Problem, toJson, under} from '../../core/api.js';
import {bytes, duration, number, UNLIMITED} from '../../core/format.js';
import {Tag} from '../../parts/badges.js';
import {Cli, cli} from '../../parts/cli.js';
import {ActionButton, allowedOf} from '../../parts/dialog.js';
import {Panel} from '../../parts/panel.js';
import {Select} from '../../parts/choice.js';
import {updateStream} from './actions.js';
import {configOf, draftOf, problemsOf} from './config-draft.js';
import {retentionText, scalingText} from './config-words.js';
/** @import {Draft, Exact, OfStream} from '../types.d.ts' */
/** @import {StreamConfiguration, StreamDescription, StreamSettings} from 'api' */

/** @param {OfStream & {description: StreamDescription, etag: string, live: boolean}} props */
export function ConfigurationTab({scope, stream, description, etag, live}) {
  const [editing, setEditing] = useState(/** @type {{config: StreamConfiguration, etag: string} | null} */ (null));
  const {config} = description;
  const tools =
    editing || !live
      ? null
      : html`<${ActionButton} allowed=${allowedOf(description, 'update')}
        onClick=${() => setEditing({config, etag})}>Edit<//>`;
  return html`<${Panel} title="Configuration" tools=${tools}>
    ${
      editing
        ? html`<${Editor} scope=${scope} stream=${stream} from=${editing} isOld=${editing.etag !== etag}
      onEnd=${() => setEditing(null)} />`
        : html`<${Shown} config=${config} />`
    }
    <p><${Cli} line=${cli`stream show ${`${scope}/${stream}`}`} /></p>
  <//>`;
}

/** @param {{config: StreamConfiguration}} props */
function Shown({config}) {
  const timeout = config.timestampAggregationTimeout;
  return html`<dl class="facts">
    <dt>Scaling</dt><dd>${scalingText(config.scaling)}</dd>
    <dt>Retention</dt><dd>${retentionText(config.retention)}</dd>
    <dt>Tags</dt><dd>
      ${
        config.tags.length
          ? config.tags.map((/** @type {string} */ tag) => html`<${Tag} key=${tag} text=${tag} />`)
          : html`<span class="muted">none</span>`
      }</dd>
    <dt>Rollover size</dt><dd>
      ${config.rolloverSizeBytes ? bytes(config.rolloverSizeBytes) : 'as segment stores do'}</dd>
    <dt>Silent writers</dt><dd>
      ${timeout ? `no longer hold up watermarks after ${duration(timeout)}` : 'as Pravega does by default'}</dd>
  </dl>`;
}

const SCALINGS = [
  ['fixed', 'nothing: a fixed number of segments'],
  ['events', 'events a second'],
  ['kbytes', 'kilobytes a second'],
];
const RETENTIONS = [
  ['none', 'nothing: everything is kept'],
  ['size', 'size, in bytes'],
  ['time', 'age, in milliseconds'],
];

/** @param {OfStream & {from: {config: StreamConfiguration, etag: string}, isOld: boolean, onEnd: () => void}} props */
function Editor({scope, stream, from, isOld, onEnd}) {
  const [draft, setDraft] = useState(() => draftOf(from.config));
  const problems = problemsOf(draft);
  const set = (/** @type {Partial<Draft>} */ what) => setDraft({...draft, ...what});
  const hasProblem = Object.keys(problems).length > 0;
  const isSame = !hasProblem && toJson(configOf(draft)) === toJson(configOf(draftOf(from.config)));
  const name = `${scope}/${stream}`;
  function apply() {
    const wanted = configOf(draft);
    updateStream(scope, stream, wanted, from.etag, {
      done: onEnd,
      cli: cli`stream update ${name}` + commandOf(wanted),
      compare: () => html`<${Compare} scope=${scope} stream=${stream} edited=${from.config} wanted=${wanted} />`,
    });
  }
  const field = (/** @type {keyof Draft} */ key, /** @type {string} */ label, /** @type {string} */ hint = '') =>
    html`<${Field} label=${label} hint=${hint} value=${draft[key]} problem=${problems[key]}
      onInput=${(/** @type {string} */ value) => set({[key]: value})} />`;
  const isFixed = draft.scaling === 'fixed';
  const rates = draft.scaling === 'events' ? 'Events' : 'Kilobytes';
  return html`<form class="editor" onSubmit=${(/** @type {Event} */ event) => {
    event.preventDefault();
    if (!hasProblem && !isSame) apply();
  }}>
    ${
      isOld &&
      html`<p class="warn" role="status">
      <b>Another caller has changed it meanwhile.</b> Applying this will be refused, and both will be
        compared.</p>`
    }
    <fieldset><legend>Scaling</legend>
      <label class="field">By<${Select} value=${draft.scaling} options=${SCALINGS}
        onChange=${(scaling) => set({scaling})} /></label>
      ${isFixed ? null : field('targetRate', `${rates} a second and segment`)}
      ${isFixed ? null : field('scaleFactor', 'Split into at most', 'segments')}
      ${field('minSegments', isFixed ? 'Segments' : 'Segments at least')}
    </fieldset>
    <fieldset><legend>Retention</legend>
      <label class="field">By<${Select} value=${draft.retention} options=${RETENTIONS}
        onChange=${(retention) => set({retention})} /></label>
      ${
        draft.retention === 'none'
          ? null
          : html`${field('min', 'Kept in any case', limitText(draft.retention, draft.min))}
        <label class="check"><input type="checkbox" checked=${draft.unlimited}
          onChange=${() => set({unlimited: !draft.unlimited})} />and without limit</label>
        ${draft.unlimited ? null : field('max', 'Kept at most', limitText(draft.retention, draft.max))}`
      }
    </fieldset>
    <fieldset><legend>More</legend>
      <label class="field">Tags, one a line<textarea rows="3" value=${draft.tags}
        onInput=${onText((text) => set({tags: text}))}></textarea></label>
      ${field('rollover', 'Rollover size', 'bytes, 0: as segment stores do')}
        ${field('timeout', 'Silent writers hold up watermarks for', 'milliseconds, 0: the default')}
    </fieldset>
    <div class="row"><button type="submit" class="primary" disabled=${hasProblem || isSame}>Apply…</button>
      <button type="button" onClick=${onEnd}>Leave it</button>
      ${isSame ? html`<span class="muted">nothing is changed yet</span>` : null}</div>
  </form>`;
}

/** @param {string} kind @param {string} text */
function limitText(kind, text) {
  if (!/^\d+$/.test(text)) return '';
  return kind === 'size' ? bytes(BigInt(text)) : duration(Number(text));
}

/** @param {{label: string, hint: string, value: any, problem?: string, onInput: (value: string) => void}} props */
function Field({label, hint, value, problem, onInput}) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${label}</label>
    <span class="row"><input id=${id} type="text" inputmode="numeric" autocomplete="off" value=${value}
      aria-invalid=${problem ? 'true' : undefined} aria-describedby=${`${id}-h`} onInput=${onText(onInput)} />
    <span id=${`${id}-h`} class=${problem ? 'bad' : 'muted'}>${problem ?? hint}</span></span></div>`;
}

/** What `stream update` is given for the same. @param {Exact<StreamSettings>} config */
function commandOf({scaling, retention, tags, rolloverSizeBytes, timestampAggregationTimeout}) {
  const {type, targetRate, scaleFactor, minSegments} = scaling;
  const byRate = cli`--scale ${`${type}:${targetRate}`} --factor ${scaleFactor} --min ${minSegments}`;
  const scale = type === 'fixed' ? cli`--segments ${minSegments}` : byRate;
  const unit = retention?.type === 'time' ? 'ms' : 'B';
  const most = !retention || retention.max === UNLIMITED ? '' : `..${retention.max}${unit}`;
  const keep = cli`--retain ${retention ? `${retention.type}=${retention.min}${unit}${most}` : 'none'}`;
  const tag = tags.length ? tags.map((/** @type {string} */ one) => cli`--tag ${one}`) : [cli`--tag ${''}`];
  const rest = cli`--rollover ${`${rolloverSizeBytes}B`} --writer-timeout ${`${timestampAggregationTimeout}ms`}`;
  return [scale, keep, ...tag, rest].map((line) => line.replace(/^sluice /, ' ')).join('');
}

/**
 * Three configurations side by side: as it was edited, as it is now, as it was wanted.
 * @param {OfStream & {edited: StreamConfiguration, wanted: Exact<StreamSettings>}} props
 */
function Compare({scope, stream, edited, wanted}) {
  const [now, setNow] = useState(/** @type {any} */ (null));
  useEffect(() => {
    const call = new AbortController();
    api.get(under`scopes/${scope}/streams/${stream}`, {signal: call.signal}).then(
      (found) => setNow(found.config),
      (error) => {
        if (call.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setNow({problem: error.detail});
      },
    );
    return () => call.abort();
  }, []);
  if (!now) return html`<p class="muted">Looks at what it is now…</p>`;
  if (now.problem) return html`<p class="bad">${now.problem}</p>`;
  const lines = /** @type {[string, (config: any) => string][]} */ ([
    ['Scaling', (config) => scalingText(config.scaling)],
    ['Retention', (config) => retentionText(config.retention)],
    ['Tags', (config) => config.tags.join(', ') || 'none'],
    ['Rollover size', (config) => number(config.rolloverSizeBytes)],
    ['Silent writers', (config) => number(config.timestampAggregationTimeout)],
  ]);
  return html`<table class="plain compare"><thead><tr><th></th><th scope="col">you began with</th>
    <th scope="col">it is now</th><th scope="col">you want</th></tr></thead>
    <tbody>${lines.map(
      ([what, text]) => html`<tr key=${what}><th scope="row">${what}</th><td>${text(edited)}</td>
      <td class=${text(edited) === text(now) ? '' : 'warn'}>${text(now)}</td>
      <td class=${text(edited) === text(wanted) ? '' : 'differs'}>${text(wanted)}</td></tr>`,
    )}</tbody></table>
    <p class="muted">Nothing has happened. Leave the dialog and the editor to edit it as it is now.</p>`;
}
