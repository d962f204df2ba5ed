/**
 * Replay and drop of dead letters: one, some, a group. Several go one after the other, and stop at the first that comes
 * back.
 */
import {html} from '../core/html.js';
import {api, Problem, under} from '../core/api.js';
import {count} from '../core/format.js';
import {now} from '../core/time.js';
import {bytesOf} from '../core/values.js';
import {act} from '../parts/dialog.js';
import {cli} from '../parts/cli.js';
import {RequestLink} from '../parts/link.js';
import {letterKey} from './letter-values.js';
/** @import {DeadLetterItem} from 'api' */

/** How long the answer to a replayed request is waited for before the next letter. */
const ANSWER_MS = 20_000;
const POLL_MS = 500;

/** @param {DeadLetterItem} letter */
function path(letter, what = '') {
  return under`dead-letters/${letter.partition}/${letter.offset}` + (what && `/${what}`);
}

/** @param {DeadLetterItem} letter */
function name(letter) {
  return `dead letter ${letterKey(letter)}`;
}

/** @param {DeadLetterItem[]} letters */
function line(letters, verb = 'replay') {
  return (
    letters
      .slice(0, 20)
      .map((letter) => cli`dead-letter ${verb} ${letterKey(letter)}`)
      .join('; ') + (letters.length > 20 ? '; …' : '')
  );
}

/** @param {DeadLetterItem[]} letters from a topic, not settled */
export function replay(letters) {
  const [first] = letters;
  return act({
    title: letters.length === 1 ? `Replay ${name(first)}` : `Replay ${count(letters.length, 'dead letter')}`,
    verb: 'Replay',
    method: 'POST',
    path: path(first, 'replay'),
    cli: line(letters),
    what: html`<p>${letters.length === 1 ? 'The record goes' : 'The records go'} back into <span class="id">
      ${first.topic || 'their topics'}</span>; a request gets an id of its own.</p>`,
    effects:
      letters.length === 1
        ? html`One record is sent, at least once. It cannot be taken back.`
        : html`Up to ${letters.length} records are sent, one after the other. Each is followed to its answer; the first
          that comes back stops the rest.`,
    canStop: letters.length > 1,
    run: (report, stopped) => replayAll(letters, report, stopped),
  });
}

/** @param {DeadLetterItem[]} letters @param {(progress: any) => void} report @param {() => boolean} stopped */
async function replayAll(letters, report, stopped) {
  const sent = [];
  for (const [index, letter] of letters.entries()) {
    if (stopped()) break;
    if (letters.length > 1) report(html`<b class="num">${index + 1} of ${letters.length}</b>: ${letterKey(letter)}.`);
    const before = now();
    let request = '';
    try {
      const reply = await api.send('POST', path(letter, 'replay'));
      request = reply.data.request ?? '';
    } catch (error) {
      if (!(error instanceof Problem) || sent.length === 0) throw error;
      return ended(sent, letters, html`<p class="bad">Stopped at ${letterKey(letter)}: ${stopWords(error)}</p>`);
    }
    sent.push({letter, request});
    if (index === letters.length - 1) break;
    const end = await outcome(request, before);
    if (end !== 'answered') {
      return ended(
        sent,
        letters,
        html`<p class="bad">Stopped: ${letterKey(letter)} ${end === 'back' ? 'came back' : 'has no answer yet'}.</p>`,
      );
    }
  }
  return ended(sent, letters, sent.length < letters.length ? html`<p>Stopped here.</p>` : null);
}

/** Why several letters stopped at one. @param {Problem} problem */
function stopWords({kind, detail}) {
  return kind === 'unknown' ? 'its outcome is not known' : detail;
}

/** @param {{letter: DeadLetterItem, request: string}[]} sent @param {DeadLetterItem[]} letters @param {any} more */
function ended(sent, letters, more) {
  const last = sent.filter((one) => one.request).slice(-10);
  return html`<b>${sent.length} of ${letters.length} sent.</b>${more}
    ${
      last.length > 0 &&
      html`<ul>
      ${last.map(
        ({letter, request}) => html`<li key=${request}>
        ${letterKey(letter)}: follow <${RequestLink} id=${request} /></li>`,
      )}</ul>`
    }`;
}

/**
 * What became of a replayed record.
 * @param {string} request '' of what is no request @param {number} since
 * @returns {Promise<'answered' | 'back' | 'silent'>}
 */
async function outcome(request, since) {
  const end = Date.now() + ANSWER_MS;
  try {
    while (Date.now() < end) {
      const {items} = await api.get('dead-letters', {query: {limit: 20}});
      // Clocks differ: a letter is newer than the replay if it holds the new request.
      if (items.some((/** @type {DeadLetterItem} */ one) => request && one.value.includes(request))) return 'back';
      if (!request) return 'answered';
      if (await isAnswered(request, since)) return 'answered';
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  } catch (error) {
    // That its answer cannot be read now does not take back that it was sent.
    if (!(error instanceof Problem)) throw error;
  }
  return 'silent';
}

/** @param {string} request @param {number} since epoch ms, by the gateway's clock */
async function isAnswered(request, since) {
  try {
    const trace = await api.get(under`requests/${request}`, {query: {since: since - 60_000}});
    return Boolean(trace.answer);
  } catch (error) {
    if (error instanceof Problem && (error.kind === 'missing' || error.kind === 'busy')) return false;
    throw error;
  }
}

/** @param {DeadLetterItem[]} letters not settled */
export function drop(letters) {
  const [first] = letters;
  return act({
    title: letters.length === 1 ? `Drop ${name(first)}` : `Drop ${count(letters.length, 'dead letter')}`,
    verb: 'Drop',
    danger: true,
    method: 'POST',
    path: path(first, 'drop'),
    confirm: letters.length === 1 ? letterKey(first) : `${letters.length} letters`,
    cli: line(letters, 'drop'),
    what: 'They need no more attention: they leave this list and cannot be replayed any more.',
    effects: html`${letters.length === 1 ? 'One letter' : count(letters.length, 'letter')}, ${count(
      letters.reduce((sum, one) => sum + bytesOf(one).length, 0),
      'byte',
    )} of values. Kafka keeps them until their time is over.`,
    canStop: letters.length > 1,
    async run(report, stopped) {
      let dropped = 0;
      for (const letter of letters) {
        if (stopped()) break;
        if (letters.length > 1) report(html`<b class="num">${dropped + 1} of ${letters.length}</b>.`);
        try {
          await api.send('POST', path(letter, 'drop'));
        } catch (error) {
          if (!(error instanceof Problem) || dropped === 0) throw error;
          return html`<b>${dropped} of ${letters.length} dropped.</b>
            <p class="bad">Stopped at ${letterKey(letter)}: ${stopWords(error)}</p>`;
        }
        dropped++;
      }
      return html`<b>${dropped} of ${letters.length} dropped.</b>`;
    },
  });
}
