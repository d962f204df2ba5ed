/** Bytes that clients wrote, as text, JSON and hex. Pure: what it gives is shown as text nodes only. */
import {parseJson, toJson} from './api.js';
/** @import {Value} from './types.d.ts' */

/** The value as bytes. @param {Value} of @returns {Uint8Array} */
export function bytesOf({encoding, value}) {
  if (encoding === 'text') return new TextEncoder().encode(value);
  return Uint8Array.from(atob(value), (one) => one.charCodeAt(0));
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

/** The value as indented JSON; null if it is none. @param {Value} of @returns {{text: string, data: any} | null} */
export function jsonOf({encoding, value}) {
  if (encoding !== 'text') return null;
  try {
    const data = parseJson(value);
    return {text: toJson(data, 2), data};
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
