/** The gateway's stream of events, as a browser would open it; whoever imports this has it in place of the network. */

/** Every stream that was opened, in order. @type {Feed[]} */
export const feeds = [];

export class Feed extends EventTarget {
  /** @param {URL} url */
  constructor(url) {
    super();
    this.url = url;
    this.isClosed = false;
    /** @type {(() => void) | null} */
    this.onerror = null;
    feeds.push(this);
  }

  /** @param {string} type @param {{position?: string, [name: string]: any}} data */
  push(type, data) {
    this.dispatchEvent(new MessageEvent(type, {data: JSON.stringify(data), lastEventId: data.position}));
  }

  close() {
    this.isClosed = true;
  }
}

Object.assign(globalThis, {EventSource: Feed});
