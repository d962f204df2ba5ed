/** What is known of dead letters by their values. Pure. */
/** @import {DeadLetterItem} from 'api' */

/** @param {DeadLetterItem} letter */
export const letterKey = (letter) => `${letter.partition}/${letter.offset}`;

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
