package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
	"strconv"
)

// Operation is what a client did, and what it was answered: a line of a history. Times are of one monotonic clock.
// Without a return the client does not know how it ended: it has happened at some moment since the call, or will, or
// never does.
type Operation struct {
	Client   int          `json:"client"`
	Stream   string       `json:"stream"`
	Kind     string       `json:"op"`
	Call     int64        `json:"call"`
	Return   *int64       `json:"return"`
	Status   string       `json:"status"`
	Config   string       `json:"config,omitempty"`
	Minimum  int          `json:"minimum,omitempty"`
	Epoch    int64        `json:"epoch,omitempty"`
	Segment  int64        `json:"segment,omitempty"`
	Seals    []int64      `json:"seals,omitempty"`
	Ranges   [][2]float64 `json:"ranges,omitempty"`
	Segments []Segment    `json:"segments,omitempty"`
	Cut      []int64      `json:"cut,omitempty"`
	Txn      string       `json:"txn,omitempty"`
	Gateway  string       `json:"gateway,omitempty"`
	Among    []string     `json:"among,omitempty"`
	Found    []string     `json:"found,omitempty"`

	number         int
	settles        *Operation
	mayFindNothing bool
}

// UnmarshalJSON reads [id, low, high].
func (s *Segment) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]interface{}{&s.ID, &s.Low, &s.High})
}

func (o *Operation) isUnknown() bool { return o.Return == nil }

func (o *Operation) end() int64 {
	if o.Return == nil {
		return math.MaxInt64
	}
	return *o.Return
}

func (o *Operation) String() string {
	text := o.Kind
	if o.settles != nil {
		return "… " + o.settles.String()
	}
	for _, part := range []struct {
		is   bool
		what interface{}
	}{
		{o.Config != "", o.Config}, {o.Txn != "", o.Txn}, {o.Seals != nil, o.Seals}, {o.Ranges != nil, o.Ranges},
		{o.Kind == "epoch" || o.Kind == "check-scale", o.Epoch}, {o.Kind == "is-current", o.Segment},
		{o.Cut != nil, o.Cut},
	} {
		if part.is {
			text += fmt.Sprint(" ", part.what)
		}
	}
	if o.isUnknown() {
		return text + " -> ?"
	}
	text += " -> " + o.Status
	if o.Segments != nil {
		text += fmt.Sprint(" ", o.Segments)
	}
	return text
}

// changes says whether an operation may have happened without an answer; one that only reads is nothing then.
func (o *Operation) changes() bool {
	switch o.Kind {
	case "create", "update", "scale", "truncate", "seal", "delete", "commit", "abort":
		return true
	}
	return false
}

// read returns the operations by stream, and how many there are. A list is a read of each of the streams among which
// it was made: whether it has its name. So nothing that was acknowledged before is missing in it, nor is anything there
// that went before; it need not be one moment of all streams.
func read(from io.Reader) (map[string][]*Operation, int, error) {
	streams := map[string][]*Operation{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<24)
	count := 0
	for lines.Scan() {
		operation := &Operation{}
		if err := json.Unmarshal(lines.Bytes(), operation); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", count+1, err)
		}
		count++
		operation.number = count
		found := map[string]bool{}
		for _, name := range operation.Found {
			found[name] = true
		}
		for _, name := range operation.Among {
			if operation.isUnknown() {
				break
			}
			listed := *operation
			listed.Kind, listed.Stream, listed.Status = "listed", name, strconv.FormatBool(found[name])
			streams[name] = append(streams[name], &listed)
		}
		if operation.Kind != "list" && (!operation.isUnknown() || operation.changes()) {
			streams[operation.Stream] = append(streams[operation.Stream], operation)
		}
	}
	for _, operations := range streams {
		noteOverlaps(operations)
	}
	return streams, count, lines.Err()
}

// A deletion that finds the stream gone, although it was there when it was called, succeeds: another one was faster.
func noteOverlaps(operations []*Operation) {
	for _, one := range operations {
		for _, other := range operations {
			if one != other && one.Kind == "delete" && other.Kind == "delete" &&
				other.Call <= one.end() && other.end() >= one.Call {
				one.mayFindNothing = true
			}
		}
	}
}

// until is what was known at a time: what had not returned by then is without a return.
func until(operations []*Operation, time int64) []*Operation {
	known := []*Operation{}
	for _, operation := range operations {
		if operation.Call > time {
			continue
		}
		if operation.end() > time && !operation.isUnknown() {
			if !operation.changes() {
				continue
			}
			cut := *operation
			cut.Return, cut.Status, cut.Segments = nil, "", nil
			operation = &cut
		}
		known = append(known, operation)
	}
	return known
}

// returns are the times at which anything returned, in order.
func returns(operations []*Operation) []int64 {
	times := []int64{}
	for _, operation := range operations {
		if !operation.isUnknown() {
			times = append(times, *operation.Return)
		}
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return times
}
