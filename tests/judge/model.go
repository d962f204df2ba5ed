package main

import "strconv"

// What each operation may answer in a state, and what it makes of it. An empty result: this answer is not possible.
//
// A change holds the stream from its beginning to its end, and others wait for it. Both halves are visible, so both are
// operations here: the second is `settles` of the first. Reads and transactions do not wait.
func step(s *State, o *Operation) []*State {
	if o.settles != nil {
		if s.Pending == nil || s.Pending.By != o.settles.number {
			return nil
		}
		// A stream that is being sealed waits for its commits, which may roll it.
		possible := []*State{}
		for _, later := range s.later() {
			possible = append(possible, states(later.completed())...)
		}
		return possible
	}
	switch o.Kind {
	case "exists":
		return when(s, o.Status == strconv.FormatBool(s.Exists))
	case "listed":
		return when(s, o.Status == strconv.FormatBool(s.Exists) || s.pends("create"))
	case "configuration":
		if o.Status == "NOT_FOUND" {
			return when(s, !s.Exists)
		}
		return when(s, s.Exists && o.Status == "OK" && s.Config == o.Config)
	case "ping", "state":
		return ofTransaction(s, o)
	}
	possible := []*State{}
	for _, later := range s.later() {
		possible = append(possible, inOrder(later, o)...)
	}
	if o.isUnknown() {
		possible = append(possible, s)
	}
	return possible
}

func inOrder(s *State, o *Operation) []*State {
	switch o.Kind {
	case "open", "commit", "abort":
		return ofTransaction(s, o)
	case "scale":
		return scale(s, o)
	case "create", "update", "truncate", "seal", "delete":
		if s.Pending != nil {
			return nil
		}
		return change(s, o)
	}
	return query(s, o)
}

func states(s *State) []*State {
	if s == nil {
		return nil
	}
	return []*State{s}
}

func when(s *State, possible bool) []*State {
	if !possible {
		return nil
	}
	return []*State{s}
}

// succeeds says whether the operation may have had its effect.
func (o *Operation) succeeds(status string) bool { return o.isUnknown() || o.Status == status }

func change(s *State, o *Operation) []*State {
	if o.Kind == "create" {
		return create(s, o)
	}
	if !s.Exists {
		if o.Kind == "delete" && o.Status == "SUCCESS" {
			return when(s, o.mayFindNothing && s.Deletions > 0)
		}
		return when(s, o.Status == "STREAM_NOT_FOUND")
	}
	switch {
	case o.Kind == "delete":
		return remove(s, o)
	case o.Kind == "seal":
		if s.Sealed {
			return when(s.begun("nothing", o, nil), o.succeeds("SUCCESS"))
		}
		return when(s.begun("seal", o, nil), o.succeeds("SUCCESS"))
	case s.Sealed:
		return when(s, o.Status == "STREAM_SEALED")
	case o.Kind == "truncate":
		return truncate(s, o)
	}
	if !o.succeeds("SUCCESS") {
		return nil
	}
	var next *Epoch
	if len(s.current().Segments) != o.Minimum {
		epoch := s.active() + 1
		next = &Epoch{epoch, s.planned(epoch, equalRanges(o.Minimum))}
	}
	begun := s.begun("update", o, next)
	begun.Config, begun.Minimum = o.Config, o.Minimum
	return states(begun)
}

func create(s *State, o *Operation) []*State {
	if s.Exists {
		return when(s, o.Status == "STREAM_EXISTS")
	}
	if !o.succeeds("SUCCESS") {
		return nil
	}
	created := s.copy()
	created.Exists, created.Config, created.Minimum = true, o.Config, o.Minimum
	return states(created.with(Epoch{0, s.planned(0, equalRanges(o.Minimum))}).begun("create", o, nil))
}

func remove(s *State, o *Operation) []*State {
	possible := []*State{}
	if s.Sealed && o.succeeds("SUCCESS") {
		left := &State{NextNumber: s.NextNumber, Deletions: s.Deletions + 1, Transactions: s.Transactions}
		possible = append(possible, left)
	}
	if o.Status == "SUCCESS" && o.mayFindNothing && s.Deletions > 0 || o.Status == "STREAM_NOT_SEALED" && !s.Sealed {
		possible = append(possible, s)
	}
	return possible
}

// truncate: clients send the segments of a whole epoch, each with offset 0.
func truncate(s *State, o *Operation) []*State {
	for number := s.First; number <= s.active(); number++ {
		ids := s.Epochs[number].ids()
		if !sameIDs(ids, o.Cut) {
			continue
		}
		if !o.succeeds("SUCCESS") {
			return nil
		}
		truncated := s.copy()
		truncated.First = number
		return states(truncated)
	}
	return when(s, o.Status == "FAILURE")
}

func scale(s *State, o *Operation) []*State {
	if s.pends("scale") {
		same := contains(s.Pending.Next.Segments, o.Ranges)
		return when(s, o.Status == "FAILURE" || same && o.Status == "STARTED" && o.Epoch == s.active())
	}
	if s.Pending != nil {
		return when(s, s.Pending.Kind == "seal" && o.Status == "FAILURE")
	}
	if !s.Exists || s.Sealed {
		return when(s, o.Status == "FAILURE")
	}
	active, survivors := s.current().ids(), []Segment{}
	for _, id := range o.Seals {
		if !active[id] {
			return when(s, o.Status == "PRECONDITION_FAILED")
		}
		delete(active, id)
	}
	for _, segment := range s.current().Segments {
		if active[segment.ID] {
			survivors = append(survivors, segment)
		}
	}
	created := s.planned(s.active()+1, o.Ranges)
	if len(survivors)+len(created) < s.Minimum {
		return when(s, o.Status == "PRECONDITION_FAILED")
	}
	if !o.isUnknown() && (o.Status != "STARTED" || o.Epoch != s.active() || !sameSegments(o.Segments, created)) {
		return nil
	}
	return states(s.begun("scale", o, &Epoch{s.active() + 1, byRange(append(survivors, created...))}))
}

func query(s *State, o *Operation) []*State {
	if !s.Exists {
		return when(s, o.Status == "NOT_FOUND" || o.Kind == "check-scale" && o.Status == "INVALID_INPUT")
	}
	switch o.Kind {
	case "segments", "is-current":
		if s.pends("create") {
			return when(s, o.Status == "INTERNAL")
		}
		if o.Kind == "is-current" {
			return when(s, o.Status == strconv.FormatBool(!s.Sealed && s.current().ids()[o.Segment]))
		}
		return when(s, o.Status == "OK" && (s.Sealed && len(o.Segments) == 0 ||
			!s.Sealed && sameSegments(o.Segments, s.current().Segments)))
	case "head":
		head := s.Epochs[s.First].ids()
		return when(s, o.Status == "OK" && sameIDs(head, o.Cut))
	case "check-scale":
		return when(s, o.Status == s.progress(o.Epoch))
	case "epoch":
		return epochQuery(s, o)
	}
	return nil
}

func (s *State) progress(epoch int64) string {
	switch {
	case epoch > s.active():
		return "INVALID_INPUT"
	case epoch != s.active() && epoch != s.current().Reference:
		return "SUCCESS"
	}
	return "IN_PROGRESS"
}

// An epoch that is to come is known a little before it is the active one.
func epochQuery(s *State, o *Operation) []*State {
	if o.Status == "NOT_FOUND" {
		return when(s, o.Epoch > s.active())
	}
	if o.Epoch <= s.active() {
		return when(s, sameSegments(o.Segments, s.Epochs[o.Epoch].Segments))
	}
	next := s.Pending != nil && s.Pending.Next != nil && o.Epoch == s.active()+1 &&
		sameSegments(o.Segments, s.Pending.Next.Segments)
	for _, later := range s.later()[1:] {
		next = next || o.Epoch <= later.active() && sameSegments(o.Segments, later.Epochs[o.Epoch].Segments)
	}
	return when(s, next)
}

func contains(segments []Segment, ranges [][2]float64) bool {
	known := map[[2]float64]bool{}
	for _, segment := range segments {
		known[[2]float64{segment.Low, segment.High}] = true
	}
	for _, bounds := range ranges {
		if !known[bounds] {
			return false
		}
	}
	return true
}

func sameIDs(ids map[int64]bool, others []int64) bool {
	for _, id := range others {
		if !ids[id] {
			return false
		}
	}
	return len(ids) == len(others)
}

func sameSegments(one, other []Segment) bool {
	if len(one) != len(other) {
		return false
	}
	one, other = byRange(one), byRange(other)
	for i := range one {
		if one[i] != other[i] {
			return false
		}
	}
	return true
}
