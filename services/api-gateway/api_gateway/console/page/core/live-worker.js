/**
 * The shared worker: all tabs of this page have one event stream together.
 *
 * A browser opens six connections to an origin over HTTP/1.1. With a stream in each tab the seventh request would wait
 * for ever.
 */
import {liveSource} from './live-source.js';
/** @import {Message} from './types.d.ts' */

/** A tab that has not been heard of for so long is gone; browsers slow the timers of hidden tabs to one a minute. */
const GONE_MS = 180_000;

/** @type {Map<MessagePort, {of: string[], lastAt: number}>} */
const tabs = new Map();
/** @type {ReturnType<typeof liveSource> | null} */
let live = null;

/** Whether the stream is there, and how far the server's clock is ahead; null until it has said so. */
let isLost = false;
/** @type {number | null} */
let offset = null;

/** @param {Message} message */
function emit(message) {
  isLost = message.type === 'lost';
  if (message.data?.now) offset = message.data.now - Date.now();
  for (const port of tabs.keys()) port.postMessage(message);
}

function union() {
  const gone = Date.now() - GONE_MS;
  for (const [port, tab] of tabs) if (tab.lastAt < gone) tabs.delete(port);
  live?.watch(new Set([...tabs.values()].flatMap((tab) => tab.of)));
}

// @ts-expect-error - the checker's library is that of a window
self.onconnect = (/** @type {MessageEvent} */ event) => {
  const [port] = event.ports;
  port.onmessage = ({data}) => {
    if (data.type === 'renew') return live?.renew();
    const isNew = data.type === 'watch' && !tabs.has(port);
    // What a tab comes to watch joins behind what the others do.
    if (data.type === 'close' || tabs.get(port)?.of.join() !== data.of.join()) tabs.delete(port);
    if (data.type !== 'close') tabs.set(port, {of: data.of, lastAt: Date.now()});
    const isFirst = live === null;
    live ??= liveSource(data.base, emit);
    union();
    // It was sent nothing while it was none of these: before it was opened, while it slept or lay in a cache.
    if (isNew && !isFirst) port.postMessage({type: 'many', data: {now: offset === null ? 0 : Date.now() + offset}});
    if (isNew && isLost) port.postMessage({type: 'lost', data: {}});
  };
  port.start();
};
