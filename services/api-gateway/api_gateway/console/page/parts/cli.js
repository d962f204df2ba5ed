/** "Copy as `sluice …`": the command that shows or does the same. */
import {html, useState} from '../core/html.js';
import {say} from './announce.js';

const COPIED_MS = 1500;

/** A word as a shell takes it. @param {string | number | bigint} word */
export function quoted(word) {
  const text = String(word);
  return /^[\w@%+=:,./#-]+$/.test(text) && !text.startsWith('#') ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * The line of a command: cli`stream show ${scope}/${name}` quotes what is put in.
 * @param {TemplateStringsArray} texts @param {...any} words
 */
export function cli(texts, ...words) {
  // A name in two parts, `${scope}/${name}`, is one word of the shell.
  const line = String.raw({raw: texts}, ...words.map((word) => String(word).replaceAll(' ', '\u0000')));
  return (
    'sluice ' +
    line
      .split(' ')
      .filter(Boolean)
      .map((word) => quoted(word.replaceAll('\u0000', ' ')))
      .join(' ')
  );
}

/** @param {string} text */
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Without TLS beyond loopback there is no clipboard interface.
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'away';
  (document.querySelector('dialog[open]') ?? document.body).append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

/** A button that copies. @param {{text: string, label?: string}} props */
export function Copy({text, label = 'copy'}) {
  const [copied, setCopied] = useState(false);
  async function run() {
    await copy(text);
    setCopied(true);
    say('copied');
    setTimeout(() => setCopied(false), COPIED_MS);
  }
  return html`<button type="button" class="small quiet" onClick=${run} title=${`copy: ${text}`}>
    ${copied ? 'copied' : label}</button>`;
}

/** A command as text with its button. @param {{line: string}} props what `cli` gave */
export function Cli({line}) {
  return html`<span class="cli"><code title=${line}>${line}</code><${Copy} text=${line} /></span>`;
}
