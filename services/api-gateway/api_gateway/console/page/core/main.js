/** The frame of the page: header, navigation, the page that the address names, dialogs, the live region. */
import {Header, Nav, openSearch, openTime} from '../parts/header.js';
import {Dialogs} from '../parts/dialog.js';
import {LiveRegion, say} from '../parts/announce.js';
import {Contained, Skeleton} from '../parts/panel.js';
import {html, render, signal, useEffect, useRef, useState, useLater} from './html.js';
import {href, navigate, pageKey, place, routes} from './router.js';
import {routes as all} from './routes.js';
import {bindKeys} from './keys.js';
import {liveState, paused, tooOld, asOf} from './live.js';
import {useMe, useOverview} from './store.js';
import {at, setAt} from './time.js';
import {clockTime} from './format.js';
/** @import {PageModule} from './types.d.ts' */

/** @type {Map<string, PageModule>} */
const loaded = new Map();
const help = signal(/** @type {any} */ (null));

function App() {
  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => {
      event.preventDefault();
      document.getElementById('main')?.focus();
    }}>To the content</a>
    <${Header} />
    <${Nav} />
    <main id="main" tabindex="-1"><${Banners} /><${Entrance} /></main>
    <${Dialogs} />
    ${help.value ? html`<${help.value} close=${() => (help.value = null)} />` : null}
    <${LiveRegion} />`;
}

function Banners() {
  const {route} = place.value;
  const {data, problem} = useOverview();
  return html`
    ${
      !data && problem?.kind === 'busy'
        ? html`<div class="banner warn" role="status">Not serving yet: ${problem.detail}</div>`
        : null
    }
    ${
      tooOld.value
        ? html`<div class="banner warn">This page is older than its gateway. <button type="button"
      onClick=${() => location.reload()}>Reload</button></div>`
        : null
    }
    ${
      at.value &&
      !route?.past &&
      html`<div class="banner past">This view knows only now: what stands here is not of that
      moment. <button type="button" class="small" onClick=${() => setAt(null)}>Show now</button></div>`
    }
    ${
      !at.value && liveState.value === 'old'
        ? html`<div class="banner warn" role="status">
      ${
        asOf.value
          ? html`<span>As of <b class="num">
        ${clockTime(asOf.value)}</b>: no news from the gateway since. Data stay, actions are
          off.</span>`
          : 'No word from the gateway yet. Data may be old, actions are off.'
      }</div>`
        : null
    }`;
}

/** The page that the address names, or the login where the gateway wants one. */
function Entrance() {
  const me = useMe();
  // Without credentials the gateway says that it wants some; it refuses those that count no more.
  const isWanted = me.problem?.kind === 'login' || (me.data?.authentication === true && !me.data.principal);
  const Login = useLater(isWanted, () => import('../parts/login.js'))?.Login;
  return isWanted ? Login && html`<${Login} />` : html`<${Outlet} />`;
}

/** A fault in a page leaves the frame as it is. */
function Outlet() {
  const {route, params, query, at: moment} = place.value;
  const [, draw] = useState(0);
  const [problem, setProblem] = useState(/** @type {Error | null} */ (null));
  const shown = useRef('');
  const module = route ? loaded.get(route.path) : undefined;

  useEffect(() => {
    setProblem(null);
    if (!route || loaded.has(route.path)) return undefined;
    let current = true;
    route.load().then(
      (found) => {
        loaded.set(route.path, found);
        if (current) draw((count) => count + 1);
      },
      (error) => current && setProblem(error),
    );
    return () => {
      current = false;
    };
  }, [route]);

  useEffect(() => {
    if (!module || shown.current === pageKey.value) return;
    const title = module.title(params);
    document.title = `${title} · Sluice`;
    if (shown.current !== '') {
      document
        .querySelectorAll('dialog[open]:not([data-busy])')
        .forEach((one) => /** @type {HTMLDialogElement} */ (one).close());
      const main = /** @type {HTMLElement} */ (document.getElementById('main'));
      main.scrollTop = 0;
      if (!main.contains(document.activeElement)) main.focus({preventScroll: true});
      say(title);
    }
    shown.current = pageKey.value;
  }, [module, pageKey.value]);

  if (!route)
    return html`<div class="state gone"><p><b>There is no such page.</b></p><a href=${href('/')}>Overview</a></div>`;
  if (problem)
    return html`<div class="state bad" role="alert"><p><b>This page could not be loaded.</b> ${problem.message}</p>
    <button type="button" onClick=${() => location.reload()}>Reload</button></div>`;
  if (!module) return html`<div class="page"><${Skeleton} lines=${8} /></div>`;
  const key = `${route.path} ${Object.values(params).join('/')}`;
  return html`<${Contained} key=${key} what="page"><${module.default} ...${{params, query, at: moment}} /><//>`;
}

routes.value = all;
for (const {path, key, label} of all) {
  if (key) bindKeys(`g ${key}`, `go to ${label?.toLowerCase()}`, 'Pages', () => navigate(href(path)));
}
bindKeys('/', 'search', 'Everywhere', openSearch);
bindKeys('t', 'time: now or a past moment', 'Everywhere', openTime);
bindKeys('p', 'pause or go on', 'Everywhere', () => {
  paused.value = !paused.value;
  say(paused.value ? 'paused' : 'live again');
});
bindKeys('?', 'all keys', 'Everywhere', async () => {
  help.value = (await import('../parts/help.js')).Help;
});

const root = /** @type {HTMLElement} */ (document.getElementById('page'));
root.replaceChildren();
render(html`<${App} />`, root);
