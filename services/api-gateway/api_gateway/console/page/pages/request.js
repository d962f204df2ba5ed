/**
 * What became of a call: every record that belongs to a request, over all topics, as a timeline and as a table, with
 * the answer or what is still under way.
 */
import '../parts/pages-style.js';
import {html, useEffect, useMemo, useRef, useState} from '../core/html.js';
import {toJson, under} from '../core/api.js';
import {count, duration, exact, time} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {useResource} from '../core/store.js';
import {moment} from '../core/time.js';
import {Badge} from '../parts/badges.js';
import {cli, Cli} from '../parts/cli.js';
import {AggregateLink, RequestLink, Time} from '../parts/link.js';
import {Empty, Panel} from '../parts/panel.js';
import {Rows} from '../parts/rows.js';
import {Plain} from '../parts/plain.js';
import {Choice} from '../parts/choice.js';
import {isVoid, timelineRows} from '../pictures/timeline.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {RequestHistory, StepModel} from 'api' */

const FOLLOW_MS = 3000;
const HINT =
  '● record  ■ entry of the journal, hollow: void  ▬ waiting, deciding and steps. ' +
  'Point at one, or go along them with the arrows; Enter marks it below.';
const FURTHER = /** @type {[string, string][]} */ ([
  ['-1h', '1 h'],
  ['-1d', '1 d'],
  ['-7d', '7 d'],
]);

/** @param {Record<string, string>} params */
export const title = ({id}) => `Request ${id}`;

/** @param {{params: Record<string, string>, query: Filters}} props */
export default function RequestPage({params: {id}, query}) {
  return html`<${Request} key=${id} id=${id} query=${query} />`;
}

/** @param {{id: string, query: Filters}} props */
function Request({id, query}) {
  const [further, setFurther] = useState(0);
  const [before, setBefore] = useState(/** @type {number | undefined} */ (undefined));
  const since = query.since ?? FURTHER[further][0];
  // The bound is fixed while the page is open: it would be another call each time it is drawn.
  const sinceMs = useMemo(() => Math.floor(moment(since)), [since]);
  const found = useResource(under`requests/${id}`, {query: {since: sinceMs, before}});
  const running = (found.data?.running.length ?? 0) > 0;
  const nothing = found.data !== undefined && found.data.steps.length === 0;
  useEffect(() => {
    if (!nothing) return;
    if (found.data.complete === false) setBefore(found.data.searchedTo);
    else if (query.since === undefined && further < FURTHER.length - 1) setFurther(further + 1);
  }, [nothing, found.data]);
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(found.reload, FOLLOW_MS);
    return () => clearInterval(timer);
  }, [running, sinceMs]);
  return html`<div class="page">
    <div class="title"><h1>Request <span class="id">${id}</span></h1>
      <span class="tools"><${Cli} line=${cli`trace ${id} --since ${since}`} />
        ${found.data?.steps.length > 0 ? html`<${Export} id=${id} trace=${found.data} />` : null}</span></div>
    <${Panel} title="History" tools=${html`<${Further} since=${since} />`} of=${found}
      gone=${(problem) => html`<${Empty} text=${problem.detail} cli=${cli`trace ${id} --since 1d`} />`}
      empty=${(data) => data.steps.length === 0 && data.complete !== false}
      emptyText=${html`No record since ${time(sinceMs)} belongs to this request.`}
          emptyCli=${cli`trace ${id} --since 30d`}>
      ${(trace) => html`<${History} trace=${trace} />`}<//>
  </div>`;
}

/** @param {{since: string}} props */
function Further({since}) {
  return html`<span class="muted">look back</span><${Choice} label="How far back" small value=${since}
    options=${FURTHER} onChange=${(value) => setQuery({since: value})} />`;
}

/** @param {{trace: RequestHistory}} props */
function History({trace}) {
  const [unfolded, setUnfolded] = useState(false);
  const [chosen, setChosen] = useState(/** @type {any} */ (null));
  const model = useMemo(
    () => timelineRows(trace, {now: trace.searchedTo ?? trace.steps.at(-1)?.at ?? 0, unfolded}),
    [trace, unfolded],
  );
  const others = new Set(
    trace.steps.map((step) => step.request).filter((/** @type {string} */ id) => id !== trace.request),
  );
  return html`
    <${Ending} trace=${trace} />
    ${
      trace.complete === false
        ? html`<p>
      <${Badge} tone="warn">searched back to ${time(trace.searchedTo)}<//> What lies before is not known
        yet.</p>`
        : null
    }
    ${
      trace.steps.length > 0
        ? html`
      <${Rows} label="The records of the request by topic and key" model=${model} high=${26} since hint=${HINT}
        onOpen=${(/** @type {any} */ item) => item.step && setChosen(item.step)} />
      ${
        others.size > 0
          ? html`<p><button type="button" class="small" aria-expanded=${String(unfolded)}
        onClick=${() => setUnfolded(!unfolded)}>
          ${unfolded ? 'Fold' : 'Unfold'} ${count(others.size, 'follow-up')}</button></p>`
          : null
      }
      <${Steps} trace=${trace} chosen=${chosen} unfolded=${unfolded || others.size === 0} />`
        : null
    }`;
}

/** How it ended, or what it is still about. @param {{trace: RequestHistory}} props */
function Ending({trace}) {
  const {answer, running, principal, began, steps} = trace;
  const by = principal ? html` for <b>${principal}</b>` : null;
  return html`<div class="ending">
    <p class="says">${began ? html`Sent <${Time} at=${began} path="/journal" />${by}. ` : null}
      ${
        answer
          ? html`<${Badge} tone=${answer.reason ? 'warn' : 'ok'}>${answer.status}<//> after <b>
        ${duration(answer.after)}</b>
          ${answer.reason ? `: ${answer.reason}` : '.'}`
          : steps.length > 0
            ? 'No answer in the journal.'
            : null
      }</p>
    ${running.map(
      (one) =>
        html`<p key=${one.aggregate}>Still under way: <b>
          ${one.kind}</b> on <${AggregateLink} aggregate=${one.aggregate} /> since <${Time} at=${one.since}
            path="/workflows" />${
              one.attempts
                ? html`; step <code>
              ${one.step}</code> <${Badge} tone="bad">failed ${count(one.attempts, 'time')}<//> ${one.lastError}`
                : one.lastError
                  ? html`; step <code>${one.step}</code> ${one.lastError}`
                  : '.'
            }</p>`,
    )}
  </div>`;
}

/** @param {{trace: RequestHistory, chosen: StepModel | null, unfolded: boolean}} props */
function Steps({trace, chosen, unfolded}) {
  const row = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => row.current?.scrollIntoView({block: 'nearest'}), [chosen]);
  const steps = unfolded ? trace.steps : trace.steps.filter((step) => step.request === trace.request);
  return html`<${Plain} class="steps" heads=${['Time', '#Since start', '#Took', 'What', 'Where', 'By', 'Says']}>
      ${steps.map(
        (step) => html`<tr key=${`${step.topic} ${step.partition} ${step.offset} ${step.entry ?? -1}`}
          ref=${step === chosen ? row : undefined}
          class=${`${step === chosen ? 'chosen' : ''} ${isVoid(step) ? 'void' : ''}`}>
      <td class="num" title=${exact(step.at)}>${time(step.at)}
        <small>.${String(step.at % 1000).padStart(3, '0')}</small></td><td class="num">+${step.sinceStart} ms</td>
        <td class="num">${step.took} ms</td>
      <td>${isVoid(step) ? html`<${Badge} tone="warn">${step.what}<//>` : step.what}</td>
      <td class="id">${step.topic.replace(/^sluice\./, '')} ${step.partition}@${step.offset}</td><td class="id">
        ${step.by.split('/').at(-1)}</td>
      <td class="long">${step.request === trace.request ? null : html`<${RequestLink} id=${step.request} />: `}
        ${step.says}</td></tr>`,
      )}<//>`;
}

/** @param {{id: string, trace: RequestHistory}} props */
function Export({id, trace}) {
  function save() {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([toJson(trace, 2)], {type: 'application/json'}));
    link.download = `request-${id.replaceAll(/[^\w.-]/g, '_')}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  }
  return html`<button type="button" onClick=${save}>Export as JSON</button>`;
}
