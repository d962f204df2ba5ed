/** The picture on the page: its canvas with what lies over it, and what is said where the pointer is. */
import {html, useEffect, useId, useRef, useSignal} from '../../core/html.js';
import {liveState, paused} from '../../core/live.js';
import {now, utc} from '../../core/time.js';
import {say} from '../../parts/announce.js';
import {Topology} from '../../pictures/topology.js';
import {kin, nameOf} from '../../pictures/topology/model.js';
import {facts, sentence} from '../../pictures/topology/words.js';
/** @import {Model} from '../../pictures/types.d.ts' */
/** @import {StageProps} from '../types.d.ts' */

const TIP_WIDTH = 300;

/** @param {StageProps} props */
export function Stage(props) {
  const {model, mode, facts: known, extras, overlays, live, canDivide, pinned, sought, address, label} = props;
  const base = useRef(null);
  const over = useRef(null);
  const lights = useRef(null);
  const map = useRef(null);
  const picture = useRef(/** @type {Topology | null} */ (null));
  const current = useRef(props);
  current.current = props;
  const tip = useSignal(/** @type {{x: number, y: number, rect: number, lines: string[] | null} | null} */ (null));
  const focused = useSignal({text: '', turn: 0});
  const id = useId();

  useEffect(() => {
    const made = new Topology(
      /** @type {any} */ ({base: base.current, over: over.current, lights: lights.current, map: map.current}),
      {
        onAddress: (next) => current.current.onAddress(next),
        onPin: (rect) => current.current.onPin(rect),
        onDivide: (below, above, at) => current.current.onDivide(below, above, at),
        onHover: (rect, x, y) => (tip.value = rect < 0 ? null : {x, y, rect, lines: null}),
        onMark: (lines, x, y) => (tip.value = lines && {x, y, rect: -1, lines}),
        onFocus: (rect) => {
          const text = sentence(current.current.model, rect, kin(current.current.model, rect));
          focused.value = {text, turn: focused.peek().turn + 1};
          say(text);
        },
        onDrawn: (figures) =>
          base.current &&
          Object.assign(/** @type {any} */ (base.current).dataset, {
            drawMs: figures.draw.toFixed(2),
            drawn: figures.count,
          }),
      },
      address,
    );
    picture.current = made;
    current.current.onReady(made);
    return () => {
      made.destroy();
      current.current.onReady(null);
    };
  }, []);

  useEffect(() => picture.current?.show(model), [model]);
  useEffect(
    () => picture.current?.set({mode, facts: known, extras, overlays, utc: utc.value, canDivide}),
    [mode, known, extras, overlays, utc.value, canDivide],
  );
  useEffect(() => picture.current?.pin(pinned), [pinned, model]);
  useEffect(() => {
    picture.current?.seek(sought || null);
  }, [sought, model]);
  useEffect(() => picture.current?.follow(address), [address.x, address.view]);
  useEffect(() => {
    if (!live) return undefined;
    /** @type {ReturnType<typeof setTimeout>} */
    let timer;
    const grow = () => {
      if (document.visibilityState === 'visible' && !paused.peek() && liveState.peek() !== 'old')
        picture.current?.grow(now());
      timer = setTimeout(grow, picture.current?.growthMs ?? 1000);
    };
    timer = setTimeout(grow, 1000);
    return () => clearTimeout(timer);
  }, [live]);

  const turn = focused.value.turn % 2;
  return html`<div class="picture-stage">
    <canvas ref=${base} aria-hidden="true"></canvas>
    <div ref=${over} class="over" tabindex="0" role="application" aria-roledescription="picture" aria-label=${label}
      aria-activedescendant=${focused.value.text ? `${id}-${turn}` : undefined} aria-describedby=${`${id}-keys`}>
      <span id=${`${id}-${turn}`} role="img" aria-label=${focused.value.text || 'nothing has the focus'}></span>
      <div ref=${lights} class="lights" aria-hidden="true"></div>
    </div>
    <span id=${`${id}-keys`}
      class="away">Arrows lead left and right through time, up and down through keys. Enter opens a segment, plus and
        minus zoom, 0 shows all. The same as a table: the button Table.</span>
    ${tip.value ? html`<${Tip} ...${tip.value} model=${model} about=${props.about} stage=${over.current} />` : null}
  </div>
  <canvas ref=${map} class="picture-map" aria-hidden="true"></canvas>`;
}

/**
 * @param {{x: number, y: number, rect: number, lines: string[] | null, model: Model, about: (rect: number) => any,
 *   stage: HTMLElement}} props
 */
function Tip({x, y, rect, lines, model, about, stage}) {
  const {clientWidth: width, clientHeight: height} = stage;
  const left = x + 18 + TIP_WIDTH > width ? Math.max(x - 18 - TIP_WIDTH, 0) : x + 18;
  const place = y < height / 2 ? `top:${y + 14}px` : `bottom:${height - y + 14}px`;
  const style = `left:${left}px;max-width:${TIP_WIDTH}px;${place}`;
  if (lines)
    return html`<div class="picture-tip" style=${style}>${lines.map((line, i) => html`<p key=${i}>${line}</p>`)}</div>`;
  if (rect >= model.count) return null;
  return html`<div class="picture-tip" style=${style}>
    <b class="id">${nameOf(model, rect)}</b>
    <dl class="facts">
      ${facts(model, rect, about(rect)).map(([what, value]) => html`<dt>${what}</dt><dd>${value}</dd>`)}</dl>
  </div>`;
}
