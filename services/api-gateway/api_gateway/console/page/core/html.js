// @ts-check
/** What modules of the page draw with: one place names the vendored libraries. */
import {h} from 'preact';
import htm from 'htm';

/** Tagged template that gives a Preact element. Values become text nodes or properties, never markup. */
export const html = htm.bind(h);

export {createContext, Fragment, render} from 'preact';
export {
  useCallback, useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState,
} from 'preact/hooks';
export {batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect} from '@preact/signals';
