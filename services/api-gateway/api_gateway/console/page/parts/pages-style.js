/** The style of pages beside the overview: loaded with the first of them, so that the first page need not carry it. */
const style = document.createElement('link');
style.rel = 'stylesheet';
style.href = new URL('../pages/pages.css', import.meta.url).href;
const loaded = new Promise((resolve, reject) => {
  style.onload = resolve;
  style.onerror = () => reject(new Error('the style of this page could not be loaded'));
});
document.head.append(style);
await loaded;
