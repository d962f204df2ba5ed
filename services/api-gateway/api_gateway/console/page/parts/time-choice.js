/** The choice of the moment that the page shows, and of the zone in which times are written. */
import {html, onText, useEffect, useRef, useState} from '../core/html.js';
import {duration, time} from '../core/format.js';
import {clock, moment, setAt, setUtc, utc} from '../core/time.js';

const HINT = 'as the command line takes it';
const WRONG = 'not a moment: -10m, 2026-01-31T12:00:00Z (UTC without a zone), epoch ms';
const AGO = ['-1m', '-10m', '-1h', '-1d'];

/** @param {{close: () => void}} props */
export function TimeChoice({close}) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [text, setText] = useState('');
  const chosen = text === '' ? null : moment(text);
  const isWrong = text !== '' && Number.isNaN(chosen);
  useEffect(() => {
    box.current?.showPopover();
    box.current?.querySelector('input')?.focus();
  }, []);
  /** @param {string | null} to */
  function show(to) {
    setAt(to);
    box.current?.hidePopover();
  }
  return html`<div popover="auto" ref=${box} class="pop" role="dialog" aria-label="Time"
    onToggle=${(event) => event.newState === 'closed' && close()}>
    <form onSubmit=${(/** @type {Event} */ event) => {
      event.preventDefault();
      if (text && !isWrong) show(text);
    }}>
      <label class="field">Show a past moment
        <input type="text" placeholder="-10m or 2026-01-31T12:00:00Z" value=${text}
          aria-invalid=${isWrong ? 'true' : undefined} onInput=${onText((text) => setText(text.trim()))} /></label>
      <p class="muted">${isWrong ? WRONG : chosen ? `${time(chosen)}, ${duration(clock.value - chosen)} ago` : HINT}</p>
      <div class="row">
        ${AGO.map((one) => html`<button type="button" key=${one} onClick=${() => show(one)}>${one}</button>`)}
          <button type="button" onClick=${() => show(null)}>now</button><span class="spread"></span>
          <button type="submit" class="primary" disabled=${!text || isWrong}>Show</button></div>
    </form>
    <label class="check"><input type="checkbox" checked=${utc.value}
      onChange=${() => setUtc(!utc.value)} /> times in UTC</label>
  </div>`;
}
