// @ts-check
/**
 * Lines over time, drawn by uPlot, which is loaded with the first of them.
 *
 *     html`<${Lines} label="Calls per second" times=${[ms…]} series=${[{label: 'reads', values: […], hue: 1}]} format=${perS} />`
 */
import {html, useEffect, useRef, useState} from '../core/html.js';
import {exactText, tickText} from '../pictures/axis.js';
import {utc} from '../core/time.js';

/** @type {Promise<any> | undefined} */
let loading;

/** uPlot, once. @returns {Promise<any>} */
function library() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement('link');
    style.rel = 'stylesheet';
    style.href = new URL('../vendor/uPlot.css', import.meta.url).href;
    const script = document.createElement('script');
    script.src = new URL('../vendor/uPlot.js', import.meta.url).href;
    // @ts-ignore - the script makes a global of it
    script.onload = () => resolve(globalThis.uPlot);
    script.onerror = () => reject(new Error('the library for lines could not be loaded'));
    document.head.append(style, script);
  });
  return loading;
}

/** A custom property of the page as the colour that a canvas takes, in the present theme. @param {string} name as `--accent` */
export function colour(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/**
 * @param {object} props
 * @param {string} props.label for readers of the screen
 * @param {number[]} props.times epoch ms, rising
 * @param {{label: string, values: (number | null)[], hue?: number, dashed?: boolean}[]} props.series null: not known
 * @param {(value: number) => string} [props.format]
 * @param {number} [props.height] px
 * @param {[number, number]} [props.span] epoch ms
 */
export function Lines({label, times, series, format = String, height = 120, span}) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const [problem, setProblem] = useState('');
  const theme = useTheme();
  const shape = `${series.map((one) => `${one.label}${one.hue}${one.dashed}`).join()}|${height}|${theme}|${utc.value}`;
  const data = [times.map((at) => at / 1000), ...series.map((one) => one.values)];
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    let current = true;
    const element = /** @type {HTMLDivElement} */ (box.current);
    const observer = new ResizeObserver(() => plot.current?.setSize({width: element.clientWidth, height}));
    library().then((uPlot) => {
      if (!current) return;
      const axis = {stroke: colour('--muted'), grid: {stroke: colour('--line'), width: 1}, ticks: {show: false}, font: '11px system-ui, sans-serif'};
      plot.current = new uPlot({
        width: element.clientWidth, height, ms: 1e-3, legend: {show: series.length > 1}, cursor: {y: false},
        tzDate: (/** @type {number} */ s) => (utc.value ? uPlot.tzDate(new Date(s * 1000), 'Etc/UTC') : new Date(s * 1000)),
        axes: [{...axis, values: (/** @type {any} */ _, /** @type {number[]} */ splits, /** @type {number} */ __, /** @type {number} */ ___, /** @type {number} */ step) =>
          splits.map((at) => tickText(at * 1000, step * 1000, utc.value ? 'utc' : 'local'))}, {...axis, size: 62, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(format)}],
        scales: {x: span ? {range: [span[0] / 1000, span[1] / 1000]} : {}, y: {range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1]}},
        series: [{label: 'at', value: (/** @type {any} */ _, /** @type {number | null} */ at) => (at === null ? '–' : exactText(at * 1000, utc.value ? 'utc' : 'local'))}, ...series.map((one, index) => ({
          label: one.label, stroke: colour(`--hue-${one.hue ?? index + 1}`), width: 1.5, dash: one.dashed ? [4, 4] : undefined, points: {show: false},
          value: (/** @type {any} */ _, /** @type {number | null} */ value) => (value === null ? '–' : format(value)),
        }))],
      }, latest.current, element);
      observer.observe(element);
    }, (error) => current && setProblem(error.message));
    return () => {
      current = false;
      observer.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData(data);
  });
  return html`<figure class="lines" aria-label=${label} ref=${box} style=${`min-height:${height}px`}>${problem ? html`<p class="bad">${problem}</p>` : null}</figure>`;
}

/** 'light' or 'dark', and what colours are forced: drawings are made anew when it changes. */
export function useTheme() {
  const [theme, setTheme] = useState(themeNow());
  useEffect(() => {
    const queries = ['(prefers-color-scheme: dark)', '(forced-colors: active)'].map((query) => matchMedia(query));
    const change = () => setTheme(themeNow());
    queries.forEach((query) => query.addEventListener('change', change));
    return () => queries.forEach((query) => query.removeEventListener('change', change));
  }, []);
  return theme;
}

function themeNow() {
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  return `${dark ? 'dark' : 'light'}${matchMedia('(forced-colors: active)').matches ? ' forced' : ''}`;
}
