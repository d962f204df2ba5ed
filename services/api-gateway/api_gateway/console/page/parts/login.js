/** Who is it: user and password, or a token, for a session of this browser. Neither is kept here. */
import {html, onText, useState} from '../core/html.js';
import {api, Problem} from '../core/api.js';
import {renew} from '../core/live.js';

/** The form in place of a page that the gateway shows to users alone. */
export function Login() {
  const [user, setUser] = useState('');
  const [password, setPassword] = useState('');
  const [byToken, setByToken] = useState(false);
  const [why, setWhy] = useState('');

  /** @param {Event} event */
  async function enter(event) {
    event.preventDefault();
    setWhy('');
    try {
      await api.enter(byToken ? `Bearer ${password}` : `Basic ${base64(`${user}:${password}`)}`);
      renew();
      location.reload();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setWhy(error.kind === 'login' ? 'No such user, or another password.' : error.detail);
    }
  }

  return html`<div class="page"><form class="panel login" onSubmit=${enter}><div class="content">
    <h1>Log in</h1>
    ${
      byToken
        ? null
        : html`<label class="field">User<input type="text" required autocomplete="username"
      spellcheck=${false} value=${user} onInput=${onText(setUser)} /></label>`
    }
    <label class="field">${byToken ? 'Token' : 'Password'}<input type="password" required
      autocomplete="current-password" value=${password} onInput=${onText(setPassword)} /></label>
    ${why ? html`<p class="bad" role="alert">${why}</p>` : null}
    <div class="row"><button type="submit" class="primary">Log in</button><label class="check"><input type="checkbox"
      checked=${byToken} onChange=${() => setByToken(!byToken)} /> by token</label></div>
  </div></form></div>`;
}

/** Text as base64 of its UTF-8. @param {string} text */
function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
