/**
 * What another policy would have decided, from the reports that the journal has: beside what happened, on one time
 * axis.
 *
 * The gateway replays the rules themselves. Of a scale what follows cannot be known, so that lane holds up to the first
 * difference; truncations are taken for carried out. Another target rate cannot be replayed at all, and the page says
 * so.
 */
import {html, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {api, Problem, toJson, under} from '../core/api.js';
import {bytes, cliDuration, count, duration, number, UNLIMITED} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {cli} from '../parts/cli.js';
import {codeWords, tally} from '../parts/decision-words.js';
import {Code} from '../parts/decision-list.js';
import {act, ActionButton, allowedOf} from '../parts/dialog.js';
import {Time} from '../parts/link.js';
import {Lines} from '../parts/lines.js';
import {Empty, Failed, Panel, Skeleton} from '../parts/panel.js';
import {Rows} from '../parts/rows.js';
import {patiently} from '../parts/searching.js';
import {AGES, FACTORS, PAUSES, SEGMENTS, SIZES, SPANS, Slider, steps} from '../parts/sliders.js';
import {Choice} from '../parts/choice.js';
import {Plain} from '../parts/plain.js';
import {laneRows} from '../pictures/lanes.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {Exact, OfStream, Wanted} from './types.d.ts' */
/** @import {Retention, Scaling, StreamConfiguration, StreamDescription, WhatIfAnswer, WhatIfBody} from 'api' */

const HINT = 'Point at a mark, or go along them with the arrows.';
const SETTLES_MS = 400;
const DAY_MS = 86_400_000;
/** What retention-spark has unless it is set otherwise; the stream's configuration does not hold it. */
const COOLDOWN_MS = 120_000;

/**
 * What the sliders stand at: the policy of today, but for what the address says.
 * @param {StreamConfiguration} config of the stream @param {Filters} query @returns {Wanted}
 */
export function wanted(config, query) {
  const {scaling, retention} = config;
  const kind = query.if ?? (scaling.type === 'fixed' && retention ? 'retention' : 'scaling');
  const type = /** @type {'size' | 'time'} */ (query.ifType ?? retention?.type ?? 'time');
  const same = retention?.type === type;
  const amount = (/** @type {string | undefined} */ text, /** @type {number | bigint} */ or) =>
    text === undefined || !/^\d+$/.test(text) ? or : safe(BigInt(text));
  return {
    kind,
    sinceMs: Number(amount(query.ifSpan, DAY_MS)),
    scaling: {
      minSegments: Number(amount(query.ifMin, scaling.minSegments)),
      scaleFactor: Number(amount(query.ifFactor, Math.max(scaling.scaleFactor, 2))),
      cooldownMs: Number(amount(query.ifPause, COOLDOWN_MS)),
    },
    retention: {
      type,
      min: amount(query.ifKeep, retention && same ? retention.min : type === 'time' ? DAY_MS : 2 ** 30),
      max: amount(query.ifMost, retention && same ? retention.max : UNLIMITED),
    },
  };
}

/** @param {bigint} value */
const safe = (value) => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);

/** @param {OfStream & {description: StreamDescription, etag?: string, query: Filters}} props */
export function WhatIf({scope, stream, description, etag, query}) {
  const {config} = description;
  const want = wanted(config, query);
  // The cool-down is in no configuration: left out, the replay has the one that is set.
  const {cooldownMs, ...scaling} = want.scaling;
  const other =
    want.kind === 'retention' ? {retention: want.retention} : {scaling: query.ifPause ? want.scaling : scaling};
  const body = {...other, since: `-${want.sinceMs}ms`};
  const possible = want.kind === 'retention' || config.scaling.type !== 'fixed';
  const found = useWhatIf(possible ? under`scopes/${scope}/streams/${stream}/what-if` : null, body);
  const tools = html`<${Choice} label="Which policy" small value=${want.kind}
    options=${['scaling', 'retention'].map((one) => [one, one])} onChange=${(kind) => setQuery({if: kind})} />`;

  return html`<${Panel} title="What if" tools=${tools} class="what-if">
    <form class="sliders" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
      ${
        want.kind === 'scaling'
          ? html`<${ScalingSliders} want=${want.scaling} config=${config.scaling} />`
          : html`<${RetentionSliders} want=${want.retention} config=${config.retention} />`
      }
      <${Slider} label="Look back" values=${steps(SPANS, want.sinceMs)} value=${want.sinceMs} words=${duration}
        onChange=${(/** @type {number} */ ms) => setQuery({ifSpan: ms})} />
    </form>
    ${
      possible
        ? html`<${Found} ...${found} />`
        : html`<${Empty}
      text="The stream has a fixed number of segments: no reports of load are made, so there is nothing to replay." />`
    }
    ${possible && found.data ? html`<${MakePolicy} ...${{scope, stream, description, etag, want}} />` : null}
  <//>`;
}

/** @param {{want: Wanted['scaling'], config: Scaling}} props */
function ScalingSliders({want, config}) {
  const unit = config.type === 'events' ? 'events/s' : 'KB/s';
  return html`
    <${Slider} label="Minimum" values=${steps(SEGMENTS, want.minSegments, config.minSegments)} value=${want.minSegments}
      present=${config.minSegments} words=${(/** @type {number} */ value) => count(value, 'segment')}
      onChange=${(/** @type {number} */ value) => setQuery({ifMin: value})} />
    <${Slider} label="Factor" values=${steps(FACTORS, want.scaleFactor)} value=${want.scaleFactor}
      present=${Math.max(config.scaleFactor, 2)} words=${(/** @type {number} */ value) => `into ${value} at most`}
      onChange=${(/** @type {number} */ value) => setQuery({ifFactor: value})} />
    <${Slider} label="Cool-down" values=${steps(PAUSES, want.cooldownMs)} value=${want.cooldownMs}
      present=${COOLDOWN_MS}
      words=${duration} onChange=${(/** @type {number} */ value) => setQuery({ifPause: value})} />
    ${
      config.type === 'fixed'
        ? null
        : html`<p class="muted">The target stays ${number(config.targetRate)} ${unit} a segment. What another target
          would do cannot be computed:
      segment stores report that a segment is hot or cold by the target it had, never its rate.</p>`
    }`;
}

/** @param {{want: Wanted['retention'], config: Retention | undefined}} props */
function RetentionSliders({want, config}) {
  const isTime = want.type === 'time';
  const words = (/** @type {number | bigint} */ value) => limitText(want.type, value);
  const same = config?.type === want.type;
  const round = isTime ? AGES : SIZES;
  return html`
    <div class="slider"><span aria-hidden="true">By</span><${Choice} label="By" small value=${want.type}
      options=${[['time', 'age'], ['size', 'size']]}
      onChange=${(ifType) => setQuery({ifType, ifKeep: '', ifMost: ''})} /></div>
    <${Slider} label="Keep at least" values=${steps(round, want.min)} value=${want.min}
      present=${same ? config.min : undefined} words=${words}
      onChange=${(value) => setQuery({ifKeep: String(value), ifMost: String(value > want.max ? value : want.max)})} />
    <${Slider} label="At most" values=${steps(round, want.max, UNLIMITED).filter((one) => one >= want.min)}
      value=${want.max} present=${same ? config.max : undefined} words=${words}
      onChange=${(value) => setQuery({ifMost: String(value)})} />`;
}

/** @param {{data: WhatIfAnswer | undefined, problem: Problem | null, running: boolean, retry: () => void}} props */
function Found({data, problem, running, retry}) {
  if (problem) return html`<${Failed} problem=${problem} retry=${retry} />`;
  if (!data) return html`<${Skeleton} lines=${4} />`;
  return html`<div class=${running ? 'outdated' : ''} aria-busy=${String(running)}>
    <${Says} data=${data} />
    <${BothLanes} data=${data} />
    ${data.kept && data.kept.at.length > 1 ? html`<${Kept} kept=${data.kept} />` : null}
    ${
      data.notes.length > 0 &&
      html`<ul class="notes">
      ${data.notes.map((/** @type {string} */ note) => html`<li key=${note}>${note}</li>`)}</ul>`
    }
  </div>`;
}

/**
 * Without what only says that an earlier decision is under way: the journal does not record these.
 * @param {WhatIfAnswer} data @returns {WhatIfAnswer}
 */
export function decisive(data) {
  return {...data, would: data.would.filter((one) => !one.passing)};
}

/** The answer in a sentence or two. @param {{data: WhatIfAnswer}} props */
export function Says({data}) {
  const {happened, would, firstDifference, kind, kept} = data;
  if (happened.length === 0 && would.length === 0) {
    return html`<p class="says">No report in this span: nothing was decided, and nothing would have been.</p>`;
  }
  const both = html`Happened: <b>${tally(happened)}</b>. Would have: <b>${tally(would)}</b>.`;
  if (firstDifference === undefined && tally(happened) !== tally(would)) {
    return html`<p class="says">Happened: <b>
      ${tally(happened)}</b>. Not all of the reports behind it are recorded in this span, so it cannot be
        compared.</p>`;
  }
  if (firstDifference === undefined) return html`<p class="says">${both} The same decisions at the same times.</p>`;
  const last = (/** @type {number[]} */ values) => values[values.length - 1];
  const saved = kept && kept.at.length > 0 ? last(kept.would) - last(kept.happened) : 0;
  return html`<p class="says">
    ${both} They
      differ ${
        firstDifference < data.since ? 'since before this span' : html`from <${Time} at=${firstDifference} /> on`
      }.
    ${
      kind === 'retention'
        ? kept && kept.at.length > 0
          ? ` At the end ${bytes(Math.abs(saved))} ${saved < 0 ? 'less' : 'more'} would be kept.`
          : ''
        : ' It holds up to the first difference: after it the stream would have had other segments, and other reports.'
    }</p>`;
}

/** @param {{data: WhatIfAnswer}} props */
function BothLanes({data}) {
  const model = useMemo(() => laneRows(data, codeWords), [data]);
  const table = () => {
    const rows = [
      ...data.happened.map((one) => ({...one, lane: 'happened'})),
      ...data.would.map((one) => ({...one, lane: 'would have'})),
    ].sort((one, other) => one.at - other.at);
    return html`<${Plain} heads=${['At', 'Lane', 'Decision', 'Reason']}>
      ${rows.map(
        (row, index) => html`<tr key=${index}><td><${Time} at=${row.at} /></td><td>${row.lane}</td><td>
        <${Code} code=${row.code} /></td><td>${row.reason}</td></tr>`,
      )}<//>`;
  };
  return html`<${Rows} label="What was decided, and what would have been" model=${model} high=${30} table=${table}
    hint=${`${data.kind === 'retention' ? '◀ truncated' : '▲ split  ▼ merge'}  ○ nothing done. ${HINT}`} />`;
}

/** @param {{kept: {at: number[], happened: number[], would: number[]}}} props */
function Kept({kept}) {
  const series = [
    {label: 'happened', values: kept.happened, hue: 1},
    {label: 'would have', values: kept.would, hue: 2, dashed: true},
  ];
  return html`<h3>Bytes kept</h3>
    <${Lines} label="Bytes kept: what happened, and what would have" times=${kept.at} format=${bytes} height=${130}
      series=${series} />`;
}

/** @param {OfStream & {description: StreamDescription, etag?: string, want: Wanted}} props */
function MakePolicy({scope, stream, description, etag, want}) {
  const {config} = description;
  const {cooldownMs, ...scaling} = want.scaling;
  const next =
    want.kind === 'scaling'
      ? {...config, scaling: {...config.scaling, ...scaling}}
      : {...config, retention: want.retention};
  const same =
    want.kind === 'scaling'
      ? config.scaling.minSegments === scaling.minSegments && config.scaling.scaleFactor === scaling.scaleFactor
      : toJson(config.retention) === toJson(want.retention);
  const change = () =>
    act({
      title: `Change the ${want.kind} policy of ${scope}/${stream}`,
      what: html`<p>From ${policyWords(config, want.kind)} to ${policyWords(next, want.kind)}. The rest of the
        configuration stays.</p>`,
      verb: 'Make it the policy',
      method: 'PUT',
      path: under`scopes/${scope}/streams/${stream}`,
      body: next,
      ifMatch: etag,
      dryRun: true,
      cli: commandLine(scope, stream, want),
      compare: () => html`<p>Close this: the sliders show the policy that is in force now.</p>`,
    });
  return html`<p class="make-policy">
    <${ActionButton} onClick=${change}
      allowed=${same ? {allowed: false, why: 'this is the policy already'} : allowedOf(description, 'update')}>Make this
        the policy<//>
    ${
      want.kind === 'scaling' &&
      cooldownMs !== COOLDOWN_MS &&
      html`<span class="muted">The cool-down is no part of it:
      it is a setting of retention-spark, for all streams.</span>`
    }
  </p>`;
}

/** @param {string} scope @param {string} stream @param {Wanted} want */
function commandLine(scope, stream, want) {
  const name = `${scope}/${stream}`;
  if (want.kind === 'scaling')
    return cli`stream update ${name} --min ${want.scaling.minSegments} --factor ${want.scaling.scaleFactor}`;
  const {type, min, max} = want.retention;
  const amount = (/** @type {number | bigint} */ value) =>
    type === 'time' ? cliDuration(Number(value)) : String(value);
  return cli`stream update ${name} --retain ${`${type}=${amount(min)}${max === UNLIMITED ? '' : `..${amount(max)}`}`}`;
}

/** A policy in words. @param {Exact<StreamConfiguration>} config of a stream @param {string} kind */
function policyWords(config, kind) {
  if (kind === 'scaling')
    return `at least ${count(config.scaling.minSegments, 'segment')}, split into ${config.scaling.scaleFactor} at most`;
  if (!config.retention) return 'no retention';
  const {type, min, max} = config.retention;
  return `${limitText(type, min)} to ${limitText(type, max)} by ${type === 'time' ? 'age' : 'size'}`;
}

/** A limit of a retention policy in words. @param {'size' | 'time'} type @param {number | bigint} value */
function limitText(type, value) {
  return value === UNLIMITED ? 'unlimited' : type === 'time' ? duration(Number(value)) : bytes(value);
}

/**
 * The gateway's answer for what the sliders stand at, once they rest.
 * @param {string | null} path @param {Exact<WhatIfBody>} body
 */
function useWhatIf(path, body) {
  const [state, setState] = useState({
    data: /** @type {any} */ (undefined),
    problem: /** @type {Problem | null} */ (null),
    running: false,
  });
  const [turn, setTurn] = useState(0);
  const first = useRef(true);
  const key =
    path === null ? '' : path + JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  useEffect(() => {
    if (path === null) return undefined;
    const call = new AbortController();
    setState((before) => ({...before, running: true}));
    const run = async () => {
      try {
        const {data} = await patiently(
          () => api.send('POST', path, {body, asks: true, signal: call.signal}),
          call.signal,
        );
        setState({data: decisive(data), problem: null, running: false});
      } catch (error) {
        if (call.signal.aborted) return;
        if (!(error instanceof Problem)) throw error;
        setState({data: undefined, problem: error, running: false});
      }
    };
    const timer = setTimeout(run, first.current ? 0 : SETTLES_MS);
    first.current = false;
    return () => {
      clearTimeout(timer);
      call.abort();
    };
  }, [key, turn]);
  return {...state, retry: () => setTurn(turn + 1)};
}
