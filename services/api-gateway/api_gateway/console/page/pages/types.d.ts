import type {FoundStream, MinuteModel} from 'api';
import type {Topology} from '../pictures/topology.js';
import type {Extras, Facts, History, Mode, Model, Overlay} from '../pictures/types.d.ts';

/** of the list of streams, as the gateway gives it; `key` and `gone` are this list's */
export interface StreamRow extends FoundStream {
  /** scope/name */
  key: string;
  gone: boolean;
}

/** A line of the last hour: its words, its name in the answer, its colour, and how a rate of it is written. */
export type HourLine = [string, Exclude<keyof MinuteModel, 'at'>, number, ((value: number) => string)?];

export interface SparkProps {
  label: string;
  /** by time, epoch ms; each value holds from `at` to `end` */
  points: {at: number; end: number; value: number}[];
  hue: number;
  /** epoch ms: where the hour ends */
  to: number;
  format: (value: number) => string;
}

export type Seen = {at: number; aggregate: string; types: string[]};

/** `asked`: where the last call began, epoch ms; `complete`: it came to the present */
export type KnownRates = History & {asked: number; searchedTo: number; complete: boolean};

export interface StageProps {
  model: Model;
  mode: Mode;
  facts: Facts;
  extras: Extras;
  overlays: Set<Overlay>;
  /** what `words.facts` needs of a segment */
  about: (rect: number) => any;
  /** whether it grows */
  live: boolean;
  canDivide: boolean;
  /** -1 for none */
  pinned: number;
  /** a routing key, '' for none */
  sought: string;
  address: {x?: string | null; view?: string | null};
  onAddress: (address: {x: string | null; view: string | null}) => void;
  onPin: (rect: number) => void;
  onDivide: (below: number, above: number, at: number) => void;
  onReady: (picture: Topology | null) => void;
  label: string;
}

export interface Draft {
  scaling: 'fixed' | 'events' | 'kbytes';
  targetRate: string;
  scaleFactor: string;
  minSegments: string;
  retention: 'none' | 'size' | 'time';
  min: string;
  max: string;
  unlimited: boolean;
  tags: string;
  rollover: string;
  timeout: string;
}

/** The same with each number to its last digit. */
export type Exact<T> = T extends number ? number | bigint : T extends object ? {[K in keyof T]: Exact<T[K]>} : T;

/** What the sliders of another policy stand at. */
export interface Wanted {
  kind: string;
  sinceMs: number;
  scaling: {minSegments: number; scaleFactor: number; cooldownMs: number};
  retention: {type: 'size' | 'time'; min: number | bigint; max: number | bigint};
}

/** What a part of a stream's page is told first. */
export interface OfStream {
  scope: string;
  stream: string;
}
