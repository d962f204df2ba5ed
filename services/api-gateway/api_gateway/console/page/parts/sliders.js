/**
 * Sliders over amounts that are round and far apart: bytes, spans of time, small numbers. Each names its value in
 * words,
 * for the reader of the screen too. A value that is none of the round ones has a place among them.
 */
import {html, useId} from '../core/html.js';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** @param {number} unit @param {number[]} amounts */
const each = (unit, amounts) => amounts.map((one) => one * unit);

export const SIZES = [
  ...each(MIB, [1, 10, 50, 100, 250, 500]),
  ...each(GIB, [1, 2, 5, 10, 20, 50, 100, 250, 500, 1024, 5120]),
];
export const AGES = [
  ...each(MINUTE, [1, 5, 15, 30]),
  ...each(HOUR, [1, 3, 6, 12]),
  ...each(DAY, [1, 2, 3, 7, 14, 30, 90, 365]),
];
export const PAUSES = [0, 10_000, 30_000, ...each(MINUTE, [1, 2, 5, 10, 20, 30]), ...each(HOUR, [1, 3, 6])];
export const SPANS = [HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 3 * DAY, 7 * DAY];
export const SEGMENTS = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128];
export const FACTORS = [2, 3, 4, 5, 6, 8, 10, 12, 16];

/**
 * In order, each once, with `extra` among them.
 * @param {(number | bigint)[]} values @param {(number | bigint)[]} extra
 */
export function steps(values, ...extra) {
  const known = new Map([...values, ...extra].map((one) => [String(one), one]));
  return [...known.values()].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0));
}

/**
 * @param {{label: string, values: (number | bigint)[], value: number | bigint, words: (value: any) => string, onChange:
 *   (value: any) => void,
 *   disabled?: boolean, present?: number | bigint}} props `present`: what the policy has today; another value is marked
 */
export function Slider({label, values, value, words, onChange, disabled = false, present}) {
  const id = useId();
  const index = Math.max(
    0,
    values.findIndex((one) => String(one) === String(value)),
  );
  const other = present !== undefined && String(present) !== String(value);
  return html`<div class=${`slider ${other ? 'other' : ''}`}>
    <label for=${id}>${label}</label>
    <input id=${id} type="range" min="0" max=${values.length - 1} step="1" value=${index} disabled=${disabled}
      aria-valuetext=${words(value)} onInput=${(event) => onChange(values[Number(event.currentTarget.value)])} />
    <output for=${id}>${words(value)}${other ? html` <small>now ${words(present)}</small>` : null}</output>
  </div>`;
}
