export interface Callbacks {
  /** the view has changed: what the address says */
  onAddress: (address: {x: string | null; view: string | null}) => void;
  /** a rectangle, -1 for none, at pixels of the stage */
  onHover: (rect: number, x: number, y: number) => void;
  /** the words of an overlay's mark */
  onMark: (lines: string[] | null, x: number, y: number) => void;
  /** a rectangle was chosen, -1: none any more */
  onPin: (rect: number) => void;
  /** the line between two segments was dragged to a key */
  onDivide: (below: number, above: number, at: number) => void;
  /** arrows led to a rectangle */
  onFocus: (rect: number) => void;
  onDrawn?: (milliseconds: {draw: number; count: number}) => void;
}

export interface Held {
  container: number;
  /** host:port; none: no store held it */
  store?: string;
  /** epoch ms */
  from: number;
  /** epoch ms; none: it does still */
  to?: number;
}

export type Clock = 'local' | 'utc' | 'since';

/** `hue` is a class of the style sheet */
export type StoreMark = {number: number; hue: string};

/** A cut: byte offset by segment id; -1 for a segment that it has not reached. */
export type Cut = Map<string, number | bigint>;

/** Every id that the answer has, folded or not. `rect` is the rectangle it is part of, -1 if it is folded away.
`end` is Infinity while it is written to; `bytes` is -1 where unknown. */
export interface Known {
  id: string[];
  low: Float64Array;
  high: Float64Array;
  born: Float64Array;
  end: Float64Array;
  bytes: Float64Array;
  rect: Int32Array;
}

/** Rectangles by index. `born` and `end` in epoch ms, `end` Infinity while it is written to; `first` and `last` are the
columns it covers, [first, last), `last` being the number of columns while it is written to. `bornEpoch`, `endEpoch`
are numbers of epochs, `endEpoch` the first one without it, -1 while it is written to. */
export interface Model {
  count: number;
  id: string[];
  number: Float64Array;
  low: Float64Array;
  high: Float64Array;
  born: Float64Array;
  end: Float64Array;
  bornEpoch: Float64Array;
  endEpoch: Float64Array;
  first: Int32Array;
  last: Int32Array;
  bytes: Float64Array;
  flags: Uint8Array;
  /** how long it lived, in ms, and how much was written to it, whatever moment is shown; -1 while it is written to */
  lasted: Float64Array;
  total: Float64Array;
  /** of those that a restore found behind its back-up: which one, counted back from the restore; else 0 */
  found: Uint8Array;
  known: Known;
  /** of each id its place in `known` */
  index: Map<string, number>;
  /** columns */
  epochs: {count: number; epoch: Float64Array; at: Float64Array; cause: string[]};
  head: Cut;
  subscribers: {name: string; updatedAt: number; cut: Cut}[];
  now: number;
  /** whether now is a past moment: what is known of now only, such as what was truncated, is left out */
  past: boolean;
  /** whether some segments are being created: these lie behind now */
  creating: boolean;
  /** when the first epoch began */
  since: number;
  /** whether the stream is: nothing is written to it, and nothing grows */
  sealed: boolean;
  merged: boolean;
  folded: boolean;
  /** how many segments are folded away, or would be */
  duplicates: number;
  target: {type: string; rate: number} | null;
}

export interface CutStep {
  low: number;
  high: number;
  /** epoch ms */
  at: number;
  /** whether the time is known, else it is in proportion */
  exact: boolean;
  id: string;
}

/**
 * What is known of lengths: `length` of a segment now, bytes; `samples` of it, ascending: bytes that it had at times.
 */
export interface Lengths {
  length: Map<string, number>;
  samples: Map<string, {at: number[]; bytes: number[]}>;
}

export type Drag =
  | {kind: 'move' | 'brush'; x: number; y: number; hasMoved: boolean}
  | {kind: 'divide'; below: number; above: number; x: number; y: number; hasMoved: boolean};

export type Context = CanvasRenderingContext2D;

/** The pixels of the rectangles that are visible: x, y, width, height of each, and which rectangle it is.
`gap` is the paper between two of them, in pixels: none where most are too small for it. */
export type Placed = {count: number; rect: Int32Array; box: Float32Array; gap: number};

export type Range = [number, number];

/** A scale: segments that go, by id, and the ranges of those that come. */
export interface Scale {
  sealed: string[];
  ranges: Range[];
}

export type Mode = 'flow' | 'rate' | 'size' | 'store' | 'age';

/** What is known now of a segment that is written to; `length` in bytes. */
export type Rate = {bytesPerS: number; eventsPerS: number; length: number; store?: string};

/**
 * Past rates: bytes per second in buckets of `bucketMs` from `from` (epoch ms) on, -1 where not recorded, by segment
 * id.
 */
export type History = {from: number; bucketMs: number; segments: Map<string, number[]>};

export interface Facts {
  /** by the id of the segment */
  rates: Map<string, Rate>;
  history: History | null;
  /** the store that has a segment's container now */
  storeOf: (number: number) => string | undefined;
  /** all of the cluster, so that each has the same number and colour on every stream's page */
  stores: string[];
}

export type Class = {label: string; fill: string; ink: string; count: number; mark?: string};

export interface Coloring {
  title: string;
  /** the class of each rectangle */
  of: Uint8Array;
  /** the last one is "not known" */
  classes: Class[];
  /** the class of each one's rate of now, drawn at the edge of now; -1 if it has none */
  edge: Int8Array | null;
  /** whether a later class is more than an earlier one */
  isOrdered: boolean;
  /** the class of a past rate (bytes/s), if that is known */
  classOfRate: ((value: number) => number) | null;
}

/** The colours of a theme: `steps` have an order, `rates` are below, between and above. */
export type Palette = typeof import('./topology/colors.js').LIGHT;

export interface Lit {
  /** rectangle, -1 for none */
  hovered: number;
  /** of what is hovered, or else has the focus */
  kin: {before: number[]; after: number[]};
  /** -1 for none */
  focused: number;
  /** -1 for none */
  pinned: number;
  /** keys, between those of their neighbours */
  divider: {at: number[]; low: number; high: number} | null;
  /** pixels */
  brush: {y0: number; y1: number} | null;
  /** where a routing key lies, and what had it */
  sought: {position: number; rects: number[]} | null;
  /** pixels */
  pointer: {x: number; y: number} | null;
}

/** `x0`, `x1` are epoch ms or columns, `y0`, `y1` keys; the others are pixels of the plot. */
export interface View {
  axis: 'time' | 'epoch';
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  follows: boolean;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A rectangle that has the focus, and the place in it where the arrows go on: of the axis, and a key. */
export type Focus = {rect: number; x: number; key: number};

export type Overlay =
  | 'scales'
  | 'decisions'
  | 'head'
  | 'truncations'
  | 'subscribers'
  | 'pasted'
  | 'held'
  | 'config'
  | 'watermark'
  | 'gaps';

/** what is drawn beside the segments; times in epoch ms */
export interface Extras {
  pasted: Cut | null;
  held: {epoch: number; count: number; since: number}[];
  config: {at: number; text: string}[];
  truncations: {at: number; cut: Cut; text: string}[];
  decisions: {at: number; code: string; reason: string}[];
  /** since when all of them are known; Infinity: of no time */
  decidedFrom: number;
  watermark: {lower: number; upper: number; at: number} | null;
  history: History | null;
  lengths: Lengths;
}

export type Flag = {
  overlay: Overlay;
  kind: 'scale' | 'hot' | 'cold' | 'config';
  x: number;
  at: number;
  count: number;
  /** of a scale: why it was, in a word; empty if that is not known, or differs among those that stand here */
  word?: string;
  lines: string[];
};

export type Stair = {
  overlay: Overlay;
  name: string;
  tone: number;
  lines: string[];
  steps: {x: number; y0: number; y1: number; exact: boolean}[];
};

export type Span = {overlay: Overlay; x0: number; x1: number; lines: string[]};

export type Marks = {flags: Flag[]; stairs: Stair[]; held: Span[]; bands: Span[]; watermark: Span | null};
