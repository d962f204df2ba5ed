/** Records that could not be handled, by cause: looked into, replayed, dropped. Their values are foreign text. */
import '../parts/pages-style.js';
import {html, useEffect, useMemo, useState} from '../core/html.js';
import {api, under} from '../core/api.js';
import {bytes, count, number, words} from '../core/format.js';
import {setQuery} from '../core/router.js';
import {useOverview, useResource} from '../core/store.js';
import {bytesOf, hexLines, jsonOf} from '../core/values.js';
import {Badge} from '../parts/badges.js';
import {Cli, cli, Copy} from '../parts/cli.js';
import {ActionButton, mayChange} from '../parts/dialog.js';
import {Age, AggregateLink, RequestLink, Time} from '../parts/link.js';
import {Panel} from '../parts/panel.js';
import {Choice} from '../parts/choice.js';
import {drop, replay} from './letter-actions.js';
import {letterGroups, letterKey} from './letter-values.js';
/** @import {Filters} from '../core/types.d.ts' */
/** @import {DeadLetterItem} from 'api' */

const PAGE = 100;
const SHOWN = 20;
const SHOWN_CHARACTERS = 20_000;
const SHOWN_LINES = 256;
const SHOWN_REASON = 4000;
const NAMED = /^\d+\/\d+$/;

export const title = () => 'Dead letters';

/** @param {{query: Filters}} props */
export default function DeadLetters({query}) {
  const settled = query.settled === 'yes';
  const [pages, setPages] = useState(1);
  const letters = useResource('dead-letters', {
    query: {settled, pages},
    keep: true,
    read: (signal) => read(settled, pages, signal),
  });
  const records = useOverview().data?.deadLetterRecords;
  useEffect(() => {
    if (letters.data) letters.reload();
  }, [records]);
  const groups = useMemo(() => letterGroups(letters.data?.items ?? []), [letters.data]);

  const more = letters.data?.next ? '+' : '';
  const found = letters.data && `${number(letters.data.items.length)}${more} in ${count(groups.length, 'group')}`;
  return html`<div class="page">
    <div class="title"><h1>Dead letters</h1><span class="muted num">${found}</span>
      <span class="tools"><label class="check"><input type="checkbox" checked=${settled}
        onChange=${() => setQuery({settled: settled ? '' : 'yes'})} /> also those replayed or dropped</label>
        <${Cli} line=${settled ? cli`dead-letter list --settled` : cli`dead-letter list`} /></span></div>
    ${NAMED.test(query.letter ?? '') ? html`<${Named} key=${query.letter} name=${query.letter} />` : null}
    <${Panel} of=${letters} class="bare" flush lines=${6}
      emptyText="Records that no service could handle are listed here, by their cause. There are none."
      emptyCli=${cli`dead-letter list --settled`}>${(data) => html`
      ${groups.map(
        (group, index) => html`<${Group} key=${group.key} group=${group} isOpen=${index === 0 || groups.length < 4} />`,
      )}
      ${
        data.next
          ? html`<div class="row"><button type="button" disabled=${letters.loading}
        onClick=${() => setPages(pages + 1)}>Older ones</button></div>`
          : null
      }`}<//>
  </div>`;
}

/**
 * So many pages of letters, all of them read anew: those behind the first depend on where that one ends.
 * @param {boolean} settled @param {number} pages @param {AbortSignal} signal
 */
async function read(settled, pages, signal) {
  /** @type {DeadLetterItem[]} */
  const items = [];
  let next;
  for (let page = 0; page === 0 || (next && page < pages); page++) {
    const found = await api.get('dead-letters', {query: {settled, limit: PAGE, after: next}, signal});
    items.push(...found.items);
    next = found.next;
  }
  return {items, next};
}

/**
 * The letter that the address names, which the list may not have: it is old, or settled.
 * @param {{name: string}} props partition/offset
 */
function Named({name}) {
  const [partition, offset] = name.split('/');
  const letter = useResource(under`dead-letters/${partition}/${offset}`);
  return html`<${Panel} title=${`Dead letter ${name}`} of=${letter} class="letters" flush lines=${2}>
    ${(/** @type {DeadLetterItem} */ data) => html`<ul><${One} letter=${data} isOpen selected=${false} /></ul>`}<//>`;
}

/** @param {{group: ReturnType<typeof letterGroups>[number], isOpen: boolean}} props */
function Group({group, isOpen}) {
  const [selected, select] = useState(/** @type {Set<string>} */ (new Set()));
  const [most, setMost] = useState(SHOWN);
  const {letters} = group;
  const openOnes = letters.filter((letter) => !letter.settled);
  // What was selected may be settled meanwhile.
  const picked = openOnes.filter((letter) => selected.has(letterKey(letter)));
  // One after the other in the order in which they came.
  const chosen = (picked.length > 0 ? picked : openOnes).reverse();
  const all = picked.length > 0 ? ` ${chosen.length} chosen` : chosen.length === 1 ? '' : ` all ${chosen.length}`;
  /** @param {string} key */
  function toggle(key) {
    const next = new Set(selected);
    if (!next.delete(key)) next.add(key);
    select(next);
  }
  return html`<details class="panel letters" open=${isOpen}>
    <summary><span class="what"><b class="id">${group.topic || 'no topic'}</b>
      ${group.type ? html` <span>${group.type}</span>` : null}<span class="reason" title=${group.reason.slice(0, 2000)}>
        ${group.reason.slice(0, 400) || 'no reason given'}</span></span>
      <span class="num muted">
        ${count(letters.length, 'letter')}, last <${Age} at=${letters[0].at} /> ago</span></summary>
    ${
      letters.length === 1
        ? null
        : html`<div class="tools">${
            chosen.length > 0
              ? html`<${ActionButton} small
                allowed=${group.topic ? mayChange('deadLetters') : {allowed: false, why: 'it comes from no topic'}}
                onClick=${() => void replay(chosen)}>Replay${all}<//>
      <${ActionButton} small danger allowed=${mayChange('deadLetters')}
        onClick=${() => void drop(chosen)}>Drop${all}<//>`
              : html`<span class="muted">All of these are settled.</span>`
          }</div>`
    }
    <ul>${letters.slice(0, most).map(
      (letter) => html`<${One} key=${letterKey(letter)} letter=${letter} isOpen=${false}
      selected=${selected.has(letterKey(letter))}
      toggle=${letters.length > 1 ? () => toggle(letterKey(letter)) : undefined} />`,
    )}</ul>
    ${
      letters.length > most &&
      html`<button type="button" class="quiet" onClick=${() => setMost(most + SHOWN)}>
      ${Math.min(SHOWN, letters.length - most)} more of ${letters.length - most}</button>`
    }
  </details>`;
}

/** @param {{letter: DeadLetterItem, isOpen: boolean, selected: boolean, toggle?: () => void}} props */
function One({letter, isOpen, selected, toggle}) {
  const [open, setOpen] = useState(isOpen);
  const key = letterKey(letter);
  return html`<li class="letter"><div class="head">
      ${
        letter.settled || !toggle
          ? html`<span class="box"></span>`
          : html`<input type="checkbox" aria-label=${`choose ${key}`} checked=${selected} onChange=${toggle} />`
      }
      <button type="button" class="small quiet id" aria-expanded=${String(open)}
        onClick=${() => setOpen(!open)}><span aria-hidden="true">${open ? '▾' : '▸'}</span> ${key}</button>
      <${Time} at=${letter.at} /><span class="cut" title=${letter.key}><${Key} text=${letter.key} /></span>
      <span class="muted cut" title=${letter.service}>${letter.service}</span>
      ${
        letter.settled &&
        html`<${Badge} tone=${letter.settled === 'replayed' ? 'ok' : 'idle'}>${words(letter.settled)}<//>`
      }
      ${
        letter.settled
          ? null
          : html`<span class="row end"><${ActionButton} small
        allowed=${letter.topic ? mayChange('deadLetters') : {allowed: false, why: 'it comes from no topic'}}
        onClick=${() => void replay([letter])}>Replay<//><${ActionButton} small danger
            allowed=${mayChange('deadLetters')} onClick=${() => void drop([letter])}>Drop<//></span>`
      }
    </div>${open ? html`<${Value} letter=${letter} />` : null}</li>`;
}

/** The key of a record: the aggregate where it is one. @param {{text: string}} props */
function Key({text}) {
  return /^(scope|stream|group|table|commits|txn|prepared):/.test(text)
    ? html`<${AggregateLink} aggregate=${text} />`
    : html`<span class="id">${text.slice(0, 200)}</span>`;
}

/** @param {{letter: DeadLetterItem}} props */
function Value({letter}) {
  const decoded = useMemo(() => jsonOf(letter), [letter]);
  const request = requestIn(decoded?.data);
  const [form, setForm] = useState(decoded === null ? 'hex' : 'decoded');
  const [whole, setWhole] = useState(false);
  const value = useMemo(() => bytesOf(letter), [letter]);
  const most = whole ? 40 : 1;
  const lines = form === 'hex' ? hexLines(value, SHOWN_LINES * most) : [];
  const text = form === 'hex' ? lines.join('\n') : form === 'text' ? letter.value : (decoded?.text ?? '');
  const shown = text.slice(0, SHOWN_CHARACTERS * most);
  const isCut = shown.length < text.length || (form === 'hex' && lines.length * 16 < value.length);
  const forms = [...(decoded ? ['decoded'] : []), ...(letter.encoding === 'text' ? ['text'] : []), 'hex'];
  return html`<div class="value"><p class="reason">${letter.reason.slice(0, SHOWN_REASON)}</p>
    <div class="row"><${Choice} label="shown as" value=${form} options=${forms.map((one) => [one, one])}
      onChange=${setForm} />
      <span class="muted num">${bytes(value.length)}</span>
      ${request ? html`<span class="muted">request <${RequestLink} id=${request} /></span>` : null}
      <span class="spread"></span><${Copy} text=${shown} label="copy value" />
      <${Cli} line=${cli`dead-letter show ${letterKey(letter)}`} /></div>
    <pre tabindex="0" aria-label="value">${shown}</pre>
    ${
      isCut
        ? html`<p class="muted">The value goes
      on. ${
        whole
          ? 'The command above shows all of it.'
          : html`<button type="button" class="small" onClick=${() => setWhole(true)}>Show more</button>`
      }</p>`
        : null
    }
  </div>`;
}

/** The request in a value that is one, '' if it is none. @param {any} data */
const requestIn = (data) => (data !== null && typeof data === 'object' && typeof data.id === 'string' ? data.id : '');
