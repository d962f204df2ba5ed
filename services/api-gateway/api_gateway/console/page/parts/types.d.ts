import type {Problem} from '../core/api.js';
import type {Query, Reply} from '../core/types.d.ts';

export type Hit = {type: string; name: string; detail?: string; address?: string; run?: () => unknown; why?: string};

export interface Search {
  /** as they were found, in the gateway's order, or as `join` puts them together */
  items: any[];
  /** what the first answer has beside `items` */
  head: any;
  /** epoch ms: how far everything was looked at */
  searchedTo: number | null;
  /** epoch ms: of what lies before not all is kept */
  keptFrom: number | null;
  /** nothing is left to be searched */
  complete: boolean;
  /** as many items are held as there may be */
  full: boolean;
  running: boolean;
  problem: Problem | null;
  goOn: () => void;
  stop: () => void;
}

export type Tone = 'ok' | 'warn' | 'bad' | 'busy' | 'idle' | 'info';

export type Code = {words: string; acts: boolean; means: string};

export interface Action {
  /** what and on what: "Seal demo/orders" */
  title: string;
  /** a sentence or two */
  what?: any;
  /** on the button */
  verb: string;
  /** whether something is lost */
  danger?: boolean;
  /** the name to type, where there is no undo */
  confirm?: string;
  /** the command that does the same */
  cli?: string;
  method: 'POST' | 'PUT' | 'DELETE';
  path: string;
  body?: any;
  query?: Query;
  ifMatch?: string;
  ifNoneMatch?: string;
  /** whether the call understands `?dryRun=true` (E2) */
  dryRun?: boolean;
  /** elements in place of what a dry run says */
  effects?: any;
  /** the words of success, from the reply; else "Done." */
  done?: (reply: Reply) => any;
  /** what to show at 412, beside the reason */
  compare?: (problem: Problem) => any;
  /** in place of the call: gives elements for the end; `report` shows how far it is. Raises Problem */
  run?: (report: (progress: any) => void, stopped: () => boolean) => Promise<any>;
  /** whether `run` looks at `stopped` */
  canStop?: boolean;
}

export interface Column<R = any> {
  key: string;
  title: any;
  /** as CSS; 'auto', or none, takes what is left */
  width?: string;
  cell: (row: R) => any;
  num?: boolean;
  sort?: boolean;
  hint?: string;
}

/** What a list of a scope has of it, with the scope. */
export type InScope<T> = T & {scope: string};

export interface LinesProps {
  /** for readers of the screen */
  label: string;
  /** epoch ms, rising */
  times: number[];
  /** null: not known */
  series: {label: string; values: (number | null)[]; hue?: number; dashed?: boolean}[];
  format?: (value: number) => string;
  /** px */
  height?: number;
  /** epoch ms */
  span?: [number, number];
}

/** How far an action is that its dialog shows. */
export type Progress =
  | {step: 'asks'}
  | {step: 'sent'; since: number; progress?: any}
  | {step: 'done'; reply?: Reply; ended?: any}
  | {step: 'refused' | 'unknown'; problem: Problem};
