package main

import (
	"fmt"
	"hash/fnv"
	"sort"
)

// Segment is the id and the key range of a segment.
type Segment struct {
	ID        int64
	Low, High float64
}

func (s Segment) number() int64 { return s.ID & 0xFFFFFFFF }

func (s Segment) in(epoch int64) Segment { return Segment{epoch<<32 | s.number(), s.Low, s.High} }

// Epoch is a set of segments, by key range. What a roll duplicates has the reference of the original.
type Epoch struct {
	Reference int64
	Segments  []Segment
}

func (e Epoch) ids() map[int64]bool {
	ids := make(map[int64]bool, len(e.Segments))
	for _, segment := range e.Segments {
		ids[segment.ID] = true
	}
	return ids
}

// Phase is how far a transaction is. Ending is COMMITTING or COMMITTED, as long as nobody has seen which.
type Phase string

const (
	Open      Phase = "OPEN"
	Ending    Phase = "ENDING"
	Committed Phase = "COMMITTED"
	Aborting  Phase = "ABORTING"
	Aborted   Phase = "ABORTED"
)

// Transaction of an epoch. One that is ending may be seen as committed once it could have been merged, either in the
// epoch it was opened in or behind a roll.
type Transaction struct {
	ID         string
	Epoch      int64
	Phase      Phase
	Mergeable  bool
	HasRolled  bool
	CommitTurn int
}

// Pending is what an operation has begun: it is completed by the second half of the operation, or, if nobody knows how
// that ended and with a scale, whose reply is not waited for, at any later moment.
type Pending struct {
	Kind      string
	By        int
	Unawaited bool
	Next      *Epoch
}

// State is what clients may know of one stream. It is never changed: steps return copies. The epoch of index First is
// the head; epochs before it are known for ever, as are transactions of a stream that was deleted.
type State struct {
	Exists       bool
	Sealed       bool
	Config       string
	Minimum      int
	Epochs       []Epoch
	First        int64
	NextNumber   int64
	Deletions    int
	Commits      int
	Pending      *Pending
	Transactions []Transaction
	text         string
}

func (s *State) active() int64 { return int64(len(s.Epochs) - 1) }

func (s *State) current() Epoch { return s.Epochs[s.active()] }

func (s *State) pends(kind string) bool { return s.Pending != nil && s.Pending.Kind == kind }

func (s *State) copy() *State {
	copied := *s
	copied.text = ""
	copied.Transactions = append([]Transaction(nil), s.Transactions...)
	return &copied
}

// described is the same for equal states only.
func (s *State) described() string {
	if s.text == "" {
		pending := "nothing"
		if s.Pending != nil {
			pending = fmt.Sprintf("%s of %d", s.Pending.Kind, s.Pending.By)
			if s.Pending.Next != nil {
				pending += fmt.Sprint(" to ", s.Pending.Next.Segments)
			}
		}
		s.text = fmt.Sprint(s.Exists, s.Sealed, " ", s.Config, s.Epochs, s.First, s.NextNumber, s.Deletions,
			s.Commits, " pending: ", pending, s.Transactions)
	}
	return s.text
}

func (s *State) hash() uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(s.described()))
	return hash.Sum64()
}

// with appends epochs, and numbers on behind their segments.
func (s *State) with(epochs ...Epoch) *State {
	next := s.copy()
	next.Epochs = append(append([]Epoch(nil), s.Epochs...), epochs...)
	for _, epoch := range epochs {
		for _, segment := range epoch.Segments {
			if segment.number() >= next.NextNumber {
				next.NextNumber = segment.number() + 1
			}
		}
	}
	next.noteMergeable()
	return next
}

// planned are segments of the next epoch for these ranges.
func (s *State) planned(epoch int64, ranges [][2]float64) []Segment {
	segments := make([]Segment, len(ranges))
	for i, bounds := range ranges {
		segments[i] = Segment{epoch<<32 | (s.NextNumber + int64(i)), bounds[0], bounds[1]}
	}
	return segments
}

func equalRanges(count int) [][2]float64 {
	ranges := make([][2]float64, count)
	width := 1.0 / float64(count)
	for i := range ranges {
		ranges[i] = [2]float64{float64(i) * width, float64(i+1) * width}
	}
	ranges[count-1][1] = 1.0
	return ranges
}

func byRange(segments []Segment) []Segment {
	sorted := append([]Segment(nil), segments...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Low < sorted[j].Low })
	return sorted
}

// begun is the state with a first half done. Whoever waits for the operation sees the second half; by: which one.
func (s *State) begun(kind string, op *Operation, next *Epoch) *State {
	begun := s.copy()
	begun.Pending = &Pending{kind, op.number, op.isUnknown() || kind == "scale", next}
	return begun
}

// completed is the state with the second half done of what is pending; nil if something else must be first.
func (s *State) completed() *State {
	done := s.copy()
	done.Pending = nil
	switch s.Pending.Kind {
	case "seal":
		for i := range done.Transactions {
			transaction := &done.Transactions[i]
			switch transaction.Phase {
			case Open:
				transaction.Phase = Aborted
			case Ending:
				if !transaction.Mergeable {
					return nil
				}
				transaction.Phase = Committed
			}
		}
		done.Sealed = true
	default:
		if s.Pending.Next != nil {
			done = done.with(*s.Pending.Next)
		}
	}
	return done
}

func (s *State) noteMergeable() {
	for i := range s.Transactions {
		transaction := &s.Transactions[i]
		if transaction.Phase == Ending && transaction.Epoch == s.current().Reference {
			transaction.Mergeable = true
		}
	}
}

// rolled is the state after the first of the commits that wait in an older epoch has rolled the stream: the segments of
// its epoch come once more, then the active ones. Its batch may have had others of the epoch.
func (s *State) rolled(epoch int64) *State {
	number := s.active() + 1
	duplicate := func(of Epoch, in int64) Epoch {
		segments := make([]Segment, len(of.Segments))
		for i, segment := range of.Segments {
			segments[i] = segment.in(in)
		}
		return Epoch{of.Reference, segments}
	}
	next := s.with(duplicate(s.Epochs[epoch], number), duplicate(s.current(), number+1))
	first := -1
	for i := range next.Transactions {
		transaction := &next.Transactions[i]
		if transaction.Phase != Ending || transaction.Epoch != epoch {
			continue
		}
		transaction.Mergeable = true
		if !transaction.HasRolled && (first < 0 || transaction.CommitTurn < next.Transactions[first].CommitTurn) {
			first = i
		}
	}
	next.Transactions[first].HasRolled = true
	return next
}

// later are the states that this one may become without any operation, itself first.
func (s *State) later() []*State {
	states := []*State{s}
	for i := 0; i < len(states); i++ {
		state := states[i]
		if state.Pending != nil && state.Pending.Unawaited {
			if done := state.completed(); done != nil {
				states = append(states, done)
			}
		}
		if !state.Exists || state.Pending != nil && state.Pending.Kind != "seal" {
			continue
		}
		epochs := map[int64]bool{}
		for _, t := range state.Transactions {
			if t.Phase == Ending && !t.HasRolled && t.Epoch != state.current().Reference && !epochs[t.Epoch] {
				epochs[t.Epoch] = true
				states = append(states, state.rolled(t.Epoch))
			}
		}
	}
	return states
}
