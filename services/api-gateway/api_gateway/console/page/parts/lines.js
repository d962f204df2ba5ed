/**
 * Lines over time, drawn by uPlot, which is loaded with the first of them.
 *
 * html`<${Lines} label="Calls per second" times=${[ms…]} series=${[{label: 'reads', values: […], hue: 1}]}
 * format=${perS} />`
 */
import {html, useEffect, useRef, useState} from '../core/html.js';
import {utc} from '../core/time.js';
import {exactText, tickText} from '../pictures/axis.js';
/** @import {LinesProps} from './types.d.ts' */

/** @type {Promise<typeof import('uplot')> | undefined} */
let loading;

/** uPlot, once. */
function library() {
  loading ??= new Promise((resolve, reject) => {
    const style = document.createElement('link');
    style.rel = 'stylesheet';
    style.href = new URL('../vendor/uPlot.css', import.meta.url).href;
    const script = document.createElement('script');
    script.src = new URL('../vendor/uPlot.js', import.meta.url).href;
    // The script makes a global of it.
    script.onload = () => resolve(/** @type {any} */ (globalThis).uPlot);
    script.onerror = () => reject(new Error('the library for lines could not be loaded'));
    document.head.append(style, script);
  });
  return loading;
}

/**
 * A custom property of the page as the colour that a canvas takes, in the present theme.
 * @param {string} name as `--accent`
 */
export function colour(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** @param {LinesProps} props */
export function Lines({label, times, series, format = String, height = 120, span}) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const plot = useRef(/** @type {import('uplot') | null} */ (null));
  const [problem, setProblem] = useState('');
  const theme = useTheme();
  const shape = `${series.map((one) => `${one.label}${one.hue}${one.dashed}`).join()}|${height}|${theme}|${utc.value}`;
  const data = /** @type {import('uplot').AlignedData} */ ([
    times.map((at) => at / 1000),
    ...series.map((one) => one.values),
  ]);
  const latest = useRef(data);
  latest.current = data;

  useEffect(() => {
    let current = true;
    const element = /** @type {HTMLDivElement} */ (box.current);
    const observer = new ResizeObserver(() => plot.current?.setSize({width: element.clientWidth, height}));
    library().then(
      (uPlot) => {
        if (!current) return;
        const shown = {width: element.clientWidth, height, span, format, series};
        plot.current = new uPlot(optionsOf(uPlot, shown), latest.current, element);
        observer.observe(element);
      },
      (error) => current && setProblem(error.message),
    );
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
  return html`<figure class="lines" aria-label=${label} ref=${box} style=${`min-height:${height}px`}>
    ${problem ? html`<p class="bad">${problem}</p>` : null}</figure>`;
}

/**
 * What uPlot is told of the lines.
 * @param {typeof import('uplot')} uPlot
 * @param {Required<Pick<LinesProps, 'height' | 'format'>> & Pick<LinesProps, 'series' | 'span'> & {width: number}}
 *   shown
 * @returns {import('uplot').Options}
 */
function optionsOf(uPlot, {width, height, span, format, series}) {
  const clock = utc.value ? 'utc' : 'local';
  const grid = {stroke: colour('--line'), width: 1};
  const axis = {stroke: colour('--muted'), grid, ticks: {show: false}, font: '11px system-ui, sans-serif'};
  return {
    width,
    height,
    ms: 1e-3,
    legend: {show: series.length > 1},
    cursor: {y: false},
    tzDate: (s) => (utc.value ? uPlot.tzDate(new Date(s * 1000), 'Etc/UTC') : new Date(s * 1000)),
    axes: [
      {
        ...axis,
        values: (_, splits, _axis, _space, step) => splits.map((at) => tickText(at * 1000, step * 1000, clock)),
      },
      {...axis, size: 62, values: (_, splits) => splits.map(format)},
    ],
    scales: {
      x: span ? {range: [span[0] / 1000, span[1] / 1000]} : {},
      y: {range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1]},
    },
    series: [
      {label: 'at', value: (_, at) => (at === null ? '–' : exactText(at * 1000, clock))},
      ...series.map(({label, hue, dashed}, index) => ({
        label,
        stroke: colour(`--hue-${hue ?? index + 1}`),
        width: 1.5,
        dash: dashed ? [4, 4] : undefined,
        points: {show: false},
        value: (/** @type {any} */ _, /** @type {number | null} */ value) => (value === null ? '–' : format(value)),
      })),
    ],
  };
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
