/**
 * The frame: cluster, search, now or a past moment, whether the page is live, what is wrong, who calls; and the
 * navigation.
 */
import {html, signal, useEffect} from '../core/html.js';
import {api} from '../core/api.js';
import {href, place, routes} from '../core/router.js';
import {useAbout, useMe, useOverview} from '../core/store.js';
import {age, liveState, paused, renew} from '../core/live.js';
import {at, clock, moment, setAt} from '../core/time.js';
import {clockTime, count, exact, number, time} from '../core/format.js';
import {Badge} from './badges.js';
import {readOnly, rights} from './dialog.js';
/** @import {Me} from 'api' */

const search = signal(/** @type {any} */ (null));

/** Open the search; its module is loaded then. */
export async function openSearch() {
  search.value = (await import('./search.js')).Search;
}

const choice = signal(/** @type {any} */ (null));

/** Open the choice of the moment. */
export async function openTime() {
  choice.value = (await import('./time-choice.js')).TimeChoice;
}

export function Header() {
  const about = useAbout().data,
    me = useMe().data;
  useEffect(() => {
    readOnly.value = me?.readOnly || about?.mode === 'read-only' ? 'this page is read-only' : '';
    rights.value = me?.rights ?? {};
  }, [me, about]);
  useEffect(() => {
    document.documentElement.toggleAttribute('data-past', at.value !== null);
  }, [at.value]);
  return html`<header class="top">
    <a class="brand" href=${href('/')} title=${about ? `Sluice ${about.version}` : 'Sluice'}>
      <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true"><rect width="32" height="32" rx="7"
        fill="currentColor" /><path d="M7 9h7v6H7zm11 0h7v3h-7zm0 5h7v9h-7zM7 17h7v6H7z" fill="var(--surface)" /></svg>
      <b>Sluice</b><span class="cluster">${about?.cluster}</span>
    </a>
    <button type="button" class="search" onClick=${openSearch}><span>Search streams, requests, actions</span>
      <kbd>/</kbd></button>
    <${Problems} />
    <${TimeChoice} />
    <${LiveDot} />
    <${Who} me=${me} />
    ${search.value ? html`<${search.value} close=${() => (search.value = null)} />` : null}
  </header>`;
}

/** What needs attention, each a link to where it stands. */
function Problems() {
  const {data} = useOverview();
  if (!data) return html`<span class="problems"></span>`;
  const {deadLetters = 0, workflows} = data;
  return html`<span class="problems">
    ${
      !data.ready &&
      html`<a href=${href('/cluster')} title=${data.problems.join('; ')}>
      <${Badge} tone="bad">not ready<//></a>`
    }
    ${
      workflows.failing > 0 &&
      html`<a href=${href('/workflows', {state: 'failing'})}><${Badge} tone="bad">${workflows.failing} failing<//></a>`
    }
    ${
      deadLetters > 0 &&
      html`<a href=${href('/dead-letters')}><${Badge} tone="warn">${count(deadLetters, 'dead letter')}<//></a>`
    }
  </span>`;
}

/** Now, or the moment that is shown; the choice is loaded when it is first opened. */
function TimeChoice() {
  const shown = at.value ? moment(at.value) : null;
  const Choice = choice.value;
  return html`<span class="time-choice">
    <button type="button" aria-haspopup="dialog" class=${shown === null ? 'quiet' : 'past'}
      title=${shown === null ? exact(clock.value) : exact(shown)} onClick=${openTime}>
      ${
        shown === null
          ? html`now <span class="num muted">${clockTime(clock.value)}</span>`
          : html`as of <b class="num">${time(shown)}</b>`
      }</button>
    ${
      shown === null
        ? null
        : html`<button type="button" class="small" onClick=${() => setAt(null)}>back to now</button>`
    }
    ${Choice ? html`<${Choice} close=${() => (choice.value = null)} />` : null}
  </span>`;
}

const LIVE = /** @type {Record<string, [string, string]>} */ ({
  live: ['ok', 'live'],
  connecting: ['idle', 'connecting'],
  stale: ['warn', 'late'],
  old: ['bad', 'no news'],
});

/** Whether the page is live, with the age of the last news; a click pauses. */
function LiveDot() {
  const [tone, word] = paused.value ? ['idle', 'paused'] : at.value ? ['idle', 'past'] : LIVE[liveState.value];
  const seconds = Math.floor(age.value / 1000);
  return html`<button type="button" class=${`live quiet ${tone}`} aria-pressed=${paused.value}
    onClick=${() => (paused.value = !paused.value)}
    title=${paused.value ? 'go on (p)' : `last news ${seconds} s ago; pause (p)`}>
    <span class="dot" aria-hidden="true"></span>${word}
      ${
        liveState.value === 'live' || paused.value || at.value ? null : html` <span class="num">${seconds} s</span>`
      }</button>`;
}

async function leave() {
  await api.leave();
  renew();
  location.reload();
}

/** @param {{me: Me | undefined}} props */
function Who({me}) {
  if (!me) return null;
  return html`<span class="who">
    ${
      me.principal
        ? html`<span class="cut" title="who calls, as the journal records it">${me.principal}</span>
      ${me.authentication ? html`<button type="button" class="small quiet" onClick=${leave}>log out</button>` : null}`
        : null
    }
    ${
      readOnly.value ? html`<${Badge} tone="info" title="nothing can be changed from here">read-only<//>` : null
    }</span>`;
}

/** All pages that have a label, by group, with what needs attention. */
export function Nav() {
  const {data} = useOverview();
  const labelled = routes.value.filter((one) => one.label);
  const groups = [...new Set(labelled.map((one) => one.group ?? ''))];
  const current = place.value.path.split('/')[1] ?? '';
  const marks = /** @type {Record<string, [number | undefined, string]>} */ ({
    '/workflows': [data?.workflows?.failing, 'failing'],
    '/dead-letters': [data?.deadLetters, 'open'],
  });
  return html`<nav aria-label="Pages">
    ${groups.map(
      (group) => html`<div key=${group} class="group">
      ${group ? html`<div class="head">${group}</div>` : null}
      ${labelled
        .filter((one) => (one.group ?? '') === group)
        .map(({path, label}) => {
          const [count, word] = marks[path] ?? [0, ''];
          return html`<a key=${path} href=${href(path)} aria-current=${path === `/${current}` ? 'page' : undefined}>
          <span>${label}</span>${
            count
              ? html`<span class=${`count ${path === '/workflows' ? 'bad' : 'warn'}`} title=${`${count} ${word}`}>
            ${number(count)}<span class="away"> ${word}</span></span>`
              : null
          }</a>`;
        })}
    </div>`,
    )}
  </nav>`;
}
