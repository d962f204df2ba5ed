/** Partitions of Sluice's topics: who owns them, how many records wait, and how long the oldest has been open. */
import {html} from '../core/html.js';
import {count, duration, number, time} from '../core/format.js';
import {Badge} from '../parts/badges.js';
import {Plain} from '../parts/plain.js';
/** @import {PartitionModel} from 'api' */

/** From this age on an open record is marked. */
const OLD_MS = 10_000;

/** "commit 0–3, 7; journal 4" of what an instance owns. @param {PartitionModel[]} items @param {string} instance */
export function partitionsOf(items, instance) {
  /** @type {Map<string, number[]>} */
  const own = new Map();
  for (const one of items) {
    if (one.owner === instance) own.set(short(one.topic), [...(own.get(short(one.topic)) ?? []), one.partition]);
  }
  if (own.size === 0) return html`<span class="muted">none</span>`;
  return [...own].map(([topic, partitions]) => `${topic} ${ranges(partitions)}`).join('; ');
}

/** "0–3, 7". @param {number[]} numbers */
export function ranges(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  /** @type {[number, number][]} */
  const found = [];
  for (const one of sorted) {
    const last = found.at(-1);
    if (last && last[1] === one - 1) last[1] = one;
    else found.push([one, one]);
  }
  return found
    .map(([from, to]) => (from === to ? String(from) : to === from + 1 ? `${from}, ${to}` : `${from}–${to}`))
    .join(', ');
}

/** @param {string} topic */
const short = (topic) => topic.replace(/^sluice\./, '');

/** @param {{items: PartitionModel[], at: number}} props */
export function PartitionsByTopic({items, at}) {
  /** @type {Map<string, PartitionModel[]>} */
  const topics = new Map();
  for (const one of items) topics.set(one.topic, [...(topics.get(one.topic) ?? []), one]);
  return html`<${Plain} heads=${['Topic', '#Partitions', '#Waiting', '#Oldest open', '#Written in all', 'Each']}>
      ${[...topics].map(([topic, own]) => {
        const oldest = Math.max(...own.map((one) => one.oldestOpenMs ?? 0));
        const unowned = own.filter((one) => !one.owner && one.lag > 0).length;
        return html`<tr key=${topic}><td class="id">${short(topic)}</td><td class="num">${number(own.length)}</td>
        <td class="num">${number(own.reduce((sum, one) => sum + (one.lag ?? 0), 0))}</td>
        <td class="num">
          ${
            oldest > OLD_MS ? html`<${Badge} tone="warn">${duration(oldest)}<//>` : oldest > 0 ? duration(oldest) : '–'
          }</td>
        <td class="num">${number(own.reduce((sum, one) => sum + Number(one.end ?? 0), 0))}</td>
        <td>${unowned > 0 ? html`<${Badge} tone="bad">${count(unowned, 'partition')} without an owner<//> ` : null}
          <details><summary>by partition</summary><${Each} items=${own} /></details></td></tr>`;
      })}<//>
    <p class="muted">As of ${time(at)}.</p>`;
}

/** @param {{items: PartitionModel[]}} props */
function Each({items}) {
  return html`<${Plain} heads=${['#Partition', 'Owner', '#Waiting', '#Oldest open', '#End']}>
      ${items.map(
        (one) => html`<tr key=${one.partition}><td class="num">${one.partition}</td><td class="id">
          ${one.owner ?? html`<span class="muted">none</span>`}</td><td class="num">${number(one.lag)}</td>
      <td class="num">${one.oldestOpenMs ? duration(one.oldestOpenMs) : '–'}</td><td class="num">
        ${number(one.end)}</td></tr>`,
      )}<//>`;
}
