import type {Problem} from '../core/api.js';
import type {Query, Reply, ResourceOptions, ResourceView} from '../core/types.d.ts';

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

/** What a decision's code means, and whether such a decision changes the stream. */
export type Code = {acts: boolean; means: string};

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
  /** as CSS; all columns share what is left */
  width?: string;
  cell: (row: R) => any;
  num?: boolean;
  sort?: boolean;
  hint?: string;
}

/** What a list is ordered by: what a row has, or with a `path` what that call says of it. */
export interface Order {
  of: (found: any) => string | number;
  path?: (row: any) => string | null;
  options?: ResourceOptions;
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

export interface PanelProps {
  /** a heading; without one the panel has a head only to say that its data are old */
  title?: any;
  /** where the data come from; without it children are drawn as they are */
  of?: ResourceView;
  /** without it, a list of no items is */
  empty?: (data: any) => boolean;
  /** what would be here */
  emptyText?: any;
  /** the command that makes one */
  emptyCli?: string;
  /** on the right of the head */
  tools?: any;
  class?: string;
  /** whether the content goes to the edges */
  flush?: boolean;
  /** of the skeleton */
  lines?: number;
  /** the tombstone, for what is not there (any more) */
  gone?: (problem: Problem) => any;
  /** a function of the data, or elements */
  children: any;
}

export interface TableProps<R = any> {
  /** for readers of the screen */
  label: string;
  rows: R[];
  columns: Column<R>[];
  rowKey: (row: R) => string;
  /** the link behind Enter and a click */
  open?: (row: R) => string | null;
  /** key of the column, with a leading "-" downwards */
  sort?: string;
  onSort?: (sort: string) => void;
  /** when rows changed, epoch ms by key: they are marked for 2 s */
  marks?: Map<string, number>;
  /** as CSS; else as high as its rows, at most the window */
  height?: string | number;
  rowClass?: (row: R) => string;
  /** gets the rows that are in the document, after each drawing */
  onVisible?: (rows: R[]) => void;
}

export interface Item {
  /** epoch ms */
  at: number;
  /** where a bar ends, epoch ms; a mark has none */
  to?: number;
  /** what it is, in one line */
  says: string;
  /** classes of the style sheet */
  look: string;
  /** what stands in it */
  text?: any;
}

export interface Row {
  label: string;
  /** by time; bars may lie one over another, marks over them */
  items: Item[];
  /** elements behind them */
  behind?: any;
}

export interface RowsModel {
  rows: Row[];
  /** epoch ms */
  from: number;
  to: number;
  /** times that are marked through all rows */
  lines?: {at: number; label: string}[];
  /** spans of which nothing is known */
  gaps?: {from: number; to: number; label: string}[];
}

/** What has focus: a position in the rows, and the label of its row. */
export type Lit = {row: number; item: number; label: string};

export interface RowsProps {
  /** what the picture shows, for readers of the screen */
  label: string;
  model: RowsModel;
  /** how high a row is, px */
  high: number;
  /** whether times are those since the beginning, in place of a clock's */
  since?: boolean;
  /** pressed, or Enter */
  onOpen?: (item: any) => void;
  /** stands where nothing has focus */
  hint?: string;
  legend?: any;
  /** draws the same as text, once it is opened */
  table?: () => any;
  /** the height from which it scrolls, px */
  most?: number;
}
