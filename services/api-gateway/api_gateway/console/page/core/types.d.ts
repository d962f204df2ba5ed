import type {Problem} from './api.js';

export interface ResourceState<T = any> {
  /** undefined before the first answer */
  data: T | undefined;
  /** why the last call gave nothing; `data` are those before it */
  problem: Problem | null;
  loading: boolean;
  etag: string;
  /** epoch ms by this clock, 0 before */
  fetchedAt: number;
}

export interface ResourceOptions {
  query?: Query;
  /** what it is fetched anew for: `stream:S/N`, `scope:S`, `cluster`, `*` */
  of?: string[];
  /** which of these changes count */
  when?: (change: Change) => boolean;
  /** fetched anew each so many ms, for what no event tells */
  every?: number;
  /** whether the call understands `at` */
  past?: boolean;
  /** show the data of the last address until those of a new one are there (for filters) */
  keep?: boolean;
  /** fetches the data where one GET does not do; path and query are their name then */
  read?: (signal: AbortSignal) => Promise<any>;
}

/** what `useResource` gives, and `Panel` takes as `of` */
export type ResourceView<T = any> = ResourceState<T> & {reload: () => void};

export type Filters = Record<string, string>;

export type Place = {
  path: string;
  params: Record<string, string>;
  query: Filters;
  at: string | null;
  route: Route | null;
};

export type Change = {aggregate: string; version: number; types: string[]; at: number};

/** a `lost` has no data; the others are the events of the gateway */
export type Message = {type: string; data?: any; resumed?: boolean};

export type ProblemKind =
  | 'refused'
  | 'missing'
  | 'changed'
  | 'forbidden'
  | 'login'
  | 'busy'
  | 'unknown'
  | 'unreachable';

export type Reply = {data: any; etag: string; request: string; status: number};

export type Query = Record<string, string | number | bigint | boolean | null | undefined>;

export type Binding = {keys: string; what: string; run: (event: KeyboardEvent) => void; group: string};

export interface Route {
  path: string;
  label?: string;
  group?: string;
  key?: string;
  past?: boolean;
  load: () => Promise<PageModule>;
}

export interface PageModule {
  title: (params: Record<string, string>) => string;
  default: (props: {params: Record<string, string>; query: Record<string, string>; at: string | null}) => any;
}

export type Slot = ((...values: any[]) => any) | object | string | number | bigint | boolean | null | undefined;

/** Bytes that a client wrote, as an answer has them. */
export interface Value {
  encoding: 'text' | 'base64';
  value: string;
}
