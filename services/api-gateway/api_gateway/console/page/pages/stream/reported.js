/** What decisions on a stream rest on: its hot and cold segments, and the cuts that retention may take. */
import {html} from '../../core/html.js';
import {under} from '../../core/api.js';
import {bytes, count, segment, words} from '../../core/format.js';
import {useResource} from '../../core/store.js';
import {Cli, cli} from '../../parts/cli.js';
import {Age, Time} from '../../parts/link.js';
import {Failed, Panel} from '../../parts/panel.js';
import {Plain} from '../../parts/plain.js';
/** @import {OfStream} from '../types.d.ts' */
/** @import {ReportedModel} from 'api' */

const REPORTED_MS = 30_000;

/** @param {OfStream} props */
export function Reported({scope, stream}) {
  const {data, problem, reload} = useResource(`${under`scopes/${scope}/streams/${stream}`}/reports`, {
    every: REPORTED_MS,
    of: [`stream:${scope}/${stream}`],
  });
  return html`<${Panel} title="Reported">
    ${problem && !data ? html`<${Failed} problem=${problem} retry=${reload} />` : null}
    ${data ? html`<${Loads} data=${data} /><${RetentionSet} data=${data} />` : null}
    ${
      data?.complete === false &&
      html`<p class="warn">What came before <${Time} at=${data.searchedTo} /> took too long to read.</p>`
    }
    <p><${Cli} line=${cli`stream reports ${`${scope}/${stream}`}`} /></p>
  <//>`;
}

/** @param {ReportedModel} data */
const within = ({complete, searchedTo}) => (complete === false ? html`since <${Time} at=${searchedTo} />` : 'in 7 d');

/** @param {{data: ReportedModel}} props */
function Loads({data}) {
  const last = data.loadReportedAt
    ? html`the last report on load came <${Age} at=${data.loadReportedAt} /> ago`
    : html`no report on load came ${within(data)}`;
  if (data.loads.length === 0) return html`<p>No segment is hot or cold; ${last}.</p>`;
  return html`<${Plain} heads=${['Segment', 'Load', 'Since', 'Last report']}>
    ${data.loads.map(
      (one) => html`<tr key=${one.segment}><td>${segment(one.segment)}</td><td>${words(one.load)}</td>
        <td><${Time} at=${one.since} /></td><td><${Time} at=${one.reportedAt} /></td></tr>`,
    )}
  <//><p>${last}.</p>`;
}

/** @param {{data: ReportedModel}} props */
function RetentionSet({data}) {
  const {at, bytes: sizes} = data.retentionSet;
  if (!data.retentionReportedAt) return html`<p>No report on retention came ${within(data)}.</p>`;
  const last = html`the last report came <${Age} at=${data.retentionReportedAt} /> ago`;
  if (at.length === 0) return html`<p>Retention has no cut to choose from; ${last}.</p>`;
  return html`<p>Retention chooses from ${count(at.length, 'cut')} sampled since <${Time} at=${at[0]} />: truncating at
    one frees ${bytes(sizes[0])} to ${bytes(sizes[sizes.length - 1])}; ${last}.</p>`;
}
