/**
 * What the page's modules need of a browser before they are imported: an address, a history, what is kept, a document
 * that is seen. A unit that needs more of it belongs to the tests with a browser.
 */
import {readFileSync} from 'node:fs';
import {registerHooks} from 'node:module';
import {pathToFileURL} from 'node:url';

const PAGE = pathToFileURL(`${process.env.SLUICE_PAGE}/`);
const shell = readFileSync(new URL('index.html', PAGE), 'utf8');
const {imports} = JSON.parse(/<script type="importmap">(.*?)<\/script>/s.exec(shell)?.[1] ?? '');

registerHooks({
  resolve(specifier, context, next) {
    const path = imports[specifier]?.replace('./page/', '') ?? /^page\/(.*)/.exec(specifier)?.[1];
    return next(path ? new URL(path, PAGE).href : specifier, context);
  },
  load(url, context, next) {
    return next(url, url.startsWith(PAGE.href) ? {...context, format: 'module'} : context);
  },
});

/** @type {Map<string, string>} */
const kept = new Map();
const page = new EventTarget();

Object.assign(globalThis, {
  document: Object.assign(new EventTarget(), {baseURI: 'http://127.0.0.1/ui/', visibilityState: 'visible'}),
  addEventListener: page.addEventListener.bind(page),
  dispatchEvent: page.dispatchEvent.bind(page),
  location: {hash: ''},
  history: {pushState() {}, replaceState() {}},
});
Object.defineProperty(globalThis, 'localStorage', {
  value: {
    getItem: (/** @type {string} */ name) => kept.get(name) ?? null,
    setItem: (/** @type {string} */ name, /** @type {string} */ value) => kept.set(name, value),
  },
});
