/** Values of dead letters: bytes, text, hex, JSON, and what is known of them. Pure. */
/** @import {DeadLetterItem} from 'api' */

/** @param {DeadLetterItem} letter */
export const letterKey = (letter) => `${letter.partition}/${letter.offset}`;

/** The value as bytes. @param {DeadLetterItem} letter @returns {Uint8Array} */
export function bytesOf(letter) {
  if (letter.encoding === 'text') return new TextEncoder().encode(letter.value);
  return Uint8Array.from(atob(letter.value), (one) => one.charCodeAt(0));
}

/**
 * Lines of offset, 16 bytes in hex, and what of them can be read.
 * @param {Uint8Array} bytes @param {number} most lines
 */
export function hexLines(bytes, most) {
  const lines = [];
  for (let from = 0; from < bytes.length && lines.length < most; from += 16) {
    const part = [...bytes.subarray(from, from + 16)];
    const hex = part.map((one) => one.toString(16).padStart(2, '0'));
    const left = hex.slice(0, 8).join(' '),
      right = hex.slice(8).join(' ');
    const text = part.map((one) => (one >= 32 && one < 127 ? String.fromCharCode(one) : '·')).join('');
    lines.push(`${from.toString(16).padStart(6, '0')}  ${left.padEnd(23)}  ${right.padEnd(23)}  ${text}`);
  }
  return lines;
}

/**
 * The name of the command or message in the value, '' if it has none. Looks at its beginning, for values may be large.
 * @param {DeadLetterItem} letter
 */
export function typeOf(letter) {
  if (letter.encoding !== 'text') return '';
  return /"type"\s*:\s*"([^"]{1,80})"/.exec(letter.value.slice(0, 4000))?.[1] ?? '';
}

/** What a reason has in common with others of the same cause. @param {string} reason */
export function reasonKey(reason) {
  return reason
    .slice(0, 300)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…')
    .replaceAll(/\d+/g, '#');
}

/** Groups by topic, type and reason, the one with the latest letter first. @param {DeadLetterItem[]} letters */
export function letterGroups(letters) {
  /** @type {Map<string, {key: string, topic: string, type: string, reason: string, letters: DeadLetterItem[]}>} */
  const groups = new Map();
  for (const letter of letters) {
    const type = typeOf(letter),
      key = `${letter.topic}\n${type}\n${reasonKey(letter.reason)}`;
    const group = groups.get(key) ?? {key, topic: letter.topic, type, reason: letter.reason, letters: []};
    group.letters.push(letter);
    groups.set(key, group);
  }
  return [...groups.values()].sort((one, other) => other.letters[0].at - one.letters[0].at);
}
