/** What modules of the page draw with: one place names the vendored libraries. */
import {h} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import htm from 'htm';
/** @import {Slot} from './types.d.ts' */

/**
 * Tagged template that gives a Preact element. Slots become text nodes or properties, never markup.
 * @type {(markup: TemplateStringsArray, ...slots: Slot[]) => any}
 */
export const html = htm.bind(h);

/**
 * A module that is loaded once it is wanted; undefined until it is there.
 * @template T
 * @param {boolean} isWanted @param {() => Promise<T>} load @returns {T | undefined}
 */
export function useLater(isWanted, load) {
  const [found, setFound] = useState(/** @type {T | undefined} */ (undefined));
  useEffect(() => {
    if (isWanted && !found) void load().then(setFound);
  }, [isWanted]);
  return found;
}

/** A listener of a field that hands on what is written in it, or chosen. @param {(text: string) => void} take */
export function onText(take) {
  return (/** @type {any} */ event) => take(event.currentTarget.value);
}

export {createContext, Fragment, render} from 'preact';
export {
  useCallback,
  useContext,
  useEffect,
  useErrorBoundary,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'preact/hooks';
export {batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect} from '@preact/signals';
